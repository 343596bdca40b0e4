"""Results: a line for each mutant in a file, from which an interrupted run goes on, and the table at the end."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tools.mutants.choice import SHARES

FIRST, REST, SURVIVED, UNREACHED = "first", "rest", "survived", "unreached"
MOST_OF_REST = 3
"""So many mutants may be found by the rest alone."""


class Result(NamedTuple):
    """What became of one mutant."""

    mutant: str
    room: str
    outcome: str
    test: str
    """What found it; empty if nothing did."""
    how: str
    tests: int
    """How many tests reach it."""
    seconds: float


class Results:
    """The file of results."""

    def __init__(self, place: Path, resume: bool) -> None:
        self._place = place
        self.known: dict[str, Result] = {}
        if resume and place.exists():
            rows = (json.loads(line) for line in place.read_text(encoding="utf-8").splitlines())
            self.known = {row["mutant"]: Result(**row) for row in rows}
        else:
            place.write_text("", encoding="utf-8")

    def add(self, result: Result) -> None:
        """Keeps one, in the file too."""
        self.known[result.mutant] = result
        with self._place.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result._asdict()) + "\n")


def line(result: Result) -> str:
    """One mutant's fate."""
    found = f" by {result.test} ({result.how})" if result.test else ""
    return f"{result.outcome:<9} {result.mutant}{found}, {result.tests} tests reach it, {result.seconds:.0f} s"


def table(results: Iterable[Result], names: tuple[str, str]) -> Iterator[str]:
    """The table by room, and the names of all that the first selection did not find."""
    every = list(results)
    columns = {FIRST: f"killed by {names[0]}", REST: f"only by {names[1]}", SURVIVED: "survived"}
    columns[UNREACHED] = "not reached"
    heads = " ".join(f"{head:>22}" for head in columns.values())
    yield f"{'room':<14} {'mutants':>8} {heads}"
    for room in (*SHARES, "all"):
        of_room = [result for result in every if room in ("all", result.room)]
        counts = " ".join(f"{sum(result.outcome == outcome for result in of_room):>22}" for outcome in columns)
        yield f"{room:<14} {len(of_room):>8} {counts}"
    hows = Counter(result.how for result in every if result.how)
    seconds = [result.seconds for result in every] or [0.0]
    yield "\nfound by: " + (", ".join(f"{how} {count}" for how, count in hows.most_common()) or "nothing")
    yield f"seconds for a mutant: {statistics.median(seconds):.0f} (median), {max(seconds):.0f} (most)"
    for outcome in (REST, SURVIVED, UNREACHED):
        found = [result for result in every if result.outcome == outcome]
        if found:
            yield f"\n{columns[outcome]}:"
            yield from (f"  {line(result)}" for result in found)


def is_sharp(results: Iterable[Result]) -> bool:
    """Whether few enough mutants are found by the rest alone."""
    return sum(result.outcome == REST for result in results) <= MOST_OF_REST
