"""The files that a record visits from ``send()`` to its callback: ``python -m tools.road [--most N]``.

One keyed record with a callback, idempotent, without compression, over the in-memory network, in the interpreted form:
each Python function that runs is counted, with its file, in four legs.  Nothing counts of what stands in for sockets,
clock and broker.  The count is a measure of how far a reader has to go, not of time.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "forebay"
STAND_IN = "testing"
INTERPRETED_ONLY = "_runtime/owner.py"
"""A check that the compiled form leaves out: no record meets it there."""
BROKER = ROOT / "tests" / "fakes"


LEGS = (
    "send that begins a batch",
    "send into an open batch",
    "the turn that sends",
    "the turn that gets the answer",
)


class Leg:
    """What ran in one part of the way: functions by file, and the changes from one file to another."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.functions: set[tuple[str, str]] = set()
        self.changes = 0
        self._last = ""

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    def note(self, file: str, function: str) -> None:
        """A function of this file was entered."""
        self.functions.add((file, function))
        self.changes += file != self._last
        self._last = file

    def row(self) -> str:
        return f"{self.name:<36}{len(self.functions):>10}{len(self.files):>7}{self.changes:>9}"


@contextmanager
def walked(leg: Leg, package: Path = PACKAGE, broker: Path = BROKER) -> Iterator[Leg]:
    """Notes in ``leg`` each function of ``package`` that is entered on this thread, but for what ``broker`` calls."""
    inside = 0  # calls of the broker's that have not returned

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal inside
        path = Path(frame.f_code.co_filename)
        if broker in path.parents:
            inside += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and inside == 0 and package in path.parents:
            file = path.relative_to(package).as_posix()
            if not file.startswith(STAND_IN) and file != INTERPRETED_ONLY:
                leg.note(file, frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        yield leg
    finally:
        sys.setprofile(None)


def legs() -> list[Leg]:
    """The four legs of one record's way, in order."""
    from tests.fakes.world import World

    delivered: list[tuple[Any, Any]] = []

    def told(report: Any) -> None:
        delivered.append((report.metadata, report.error))

    def send() -> None:
        world.producer.send("test", key=b"key", value=b"value", on_delivery=told)

    def turn() -> None:
        world.sender.run_once(world.now)

    world = World(idempotent=True, linger_ms=5, topics={"test": 1})
    for step in (send, send, turn):  # what is imported or made once is no part of the way
        step()
    world.run(20)
    delivered.clear()
    done = []
    for name, step in zip(LEGS, (send, send, turn, turn), strict=True):
        if step is turn:
            world.advance(5)
            world.selector.wakeup()
        with walked(Leg(name)) as leg:
            step()
        done.append(leg)
    if [error for _, error in delivered] != [None, None]:
        raise SystemExit(f"road: the records were not delivered in these turns: {delivered}")
    return done


def main(arguments: list[str] | None = None) -> int:
    """Prints a row for each leg, and all files; 1 if there are more than ``--most``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--most", type=int, default=0, help="fail when the record visits more files than this")
    parser.add_argument("--files", action="store_true", help="list the files")
    options = parser.parse_args(arguments)
    if os.environ.get("FOREBAY_INTERPRETED") != "1":
        # Functions of the compiled form are not seen by a profiler.
        os.environ["FOREBAY_INTERPRETED"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "tools.road", *(arguments or sys.argv[1:])])
    done = legs()
    files = sorted(set().union(*(leg.files for leg in done)))
    print(f"{'leg':<36}{'functions':>10}{'files':>7}{'changes':>9}")
    for leg in done:
        print(leg.row())
    print(f"{'files altogether':<46}{len(files):>7}")
    if options.files:
        print("\n".join(files))
    return int(0 < options.most < len(files))


if __name__ == "__main__":
    sys.exit(main())
