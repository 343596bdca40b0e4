"""Which mutants a seed gives: lines of each room by its share, and one change of each line."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tools.mutants.operators import Change, changes

PACKAGE = "src/forebay"
SHARES = {"core": 40, "network": 25, "transactions": 20, "spark": 15}
"""Mutants of each room, in percent."""
CORE = ("_send", "_accumulator", "_delivery", "_records", "_sender", "_columnar", "_arrow", "_runtime")
ROOMS = {
    "core": (*CORE, "model/_arguments.py", "model/_cluster.py", "model/_gate.py"),
    "network": ("_network", "_protocol"),
    "transactions": ("_transactions",),
    "spark": ("spark",),
}
TWIN = '"""The interpreted '
"""How a module begins that stands in for a .pxd: the compiled form has nothing of it."""
LONGEST = 60
"""Characters of a text that a mutant's name shows."""


class Mutant(NamedTuple):
    """A change of one file."""

    room: str
    path: str
    """Relative to the repository."""
    change: Change

    @property
    def name(self) -> str:
        """Tells it from all others of one commit."""
        change = self.change
        after = _shortened(change.after) or "nothing"
        place = f"{self.path}:{change.line}:{change.start + 1}"
        return f"{place} {change.operator}: {_shortened(change.before)} -> {after}"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def choose(root: Path, seed: int, count: int) -> list[Mutant]:
    """The mutants of a seed, by file and line; those of a smaller count are among those of a larger one."""
    chosen = []
    for room, number in numbers(count, SHARES).items():
        texts = {path: (root / path).read_text(encoding="utf-8") for path in modules(root, ROOMS[room])}
        chosen += [
            Mutant(room, path, change) for path, change in sample(texts, number, random.Random(f"{room} {seed}"))
        ]
    return sorted(chosen, key=lambda mutant: (mutant.path, mutant.change.line))


def numbers(count: int, shares: Mapping[str, int]) -> dict[str, int]:
    """How many of ``count`` each share gets; the largest remainders are rounded up."""
    whole = sum(shares.values())
    found = {name: count * share // whole for name, share in shares.items()}
    by_remainder = sorted(shares, key=lambda name: -(count * shares[name] % whole))
    for name in by_remainder[: count - sum(found.values())]:
        found[name] += 1
    return found


def modules(root: Path, places: Iterable[str]) -> list[str]:
    """The modules of a room, relative to the repository, without those that stand in for C."""
    package = root / PACKAGE
    files: set[Path] = set()
    for place in places:
        files |= {package / place} if place.endswith(".py") else set((package / place).rglob("*.py"))
    written = (path for path in sorted(files) if not path.read_text(encoding="utf-8").startswith(TWIN))
    return [path.relative_to(root).as_posix() for path in written]


def sample(texts: Mapping[str, str], count: int, generator: random.Random) -> Iterator[tuple[str, Change]]:
    """Up to ``count`` changes, each of another line; every line that can be changed is as likely as any other."""
    lines: dict[tuple[str, int], list[Change]] = defaultdict(list)
    for path, text in sorted(texts.items()):
        for change in changes(text):
            lines[path, change.line].append(change)
    order = generator.sample(list(lines), len(lines))
    found = 0
    for path, line in order:
        if found == count:
            return
        of_line = lines[path, line]
        real = (change for change in generator.sample(of_line, len(of_line)) if change.is_real(texts[path]))
        for change in islice(real, 1):
            found += 1
            yield path, change
