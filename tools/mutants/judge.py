"""What becomes of a mutant: the tests that reach it run, stage by stage, until one fails."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tools.mutants.choice import Mutant
from tools.mutants.copies import Copy, Run
from tools.mutants.plugin import file_of
from tools.mutants.stages import Stage

CRASH = "crash"
"""The process ended by a signal of its own."""


class Kill(NamedTuple):
    """What found a mutant."""

    test: str
    how: str
    """``failure``, ``time`` (a test, or the run, took too long), ``import`` (of a file of tests) or ``crash``."""


def killed(copy: Copy, mutant: Mutant, stages: Iterable[Stage]) -> Kill | None:
    """What finds the mutant first; None if all tests pass."""
    for stage in stages:
        left = dict(stage.tests)
        while left and (kill := _attempt(copy, mutant, stage, left)) is not None:
            if (stage.in_memory and kill.how == "failure") or kill.how == "import":
                return kill
            # The machine may have been too busy for it: the mutant alone has to make the difference.
            alone = {test: limit for test, limit in left.items() if test == kill.test}
            if not alone or (_run(copy, stage, alone) is None and _attempt(copy, mutant, stage, alone) is not None):
                return kill
            del left[kill.test]
    return None


def _attempt(copy: Copy, mutant: Mutant, stage: Stage, tests: dict[str, float | None]) -> Kill | None:
    copy.write(mutant)
    try:
        return _run(copy, stage, tests)
    finally:
        copy.restore(mutant)


def _run(copy: Copy, stage: Stage, tests: dict[str, float | None]) -> Kill | None:
    events = copy.folder.with_suffix(".events")
    events.write_text("", encoding="utf-8")
    plan = {"choose": {"tests": tests, "events": str(events)}}
    files = list(dict.fromkeys(file_of(test) for test in tests))
    return told(copy.pytest(["-x", *files], plan, stage.environment, stage.limit), events)


def told(run: Run, events: Path) -> Kill | None:
    """What a run's status and its events say."""
    if run.status == 0:
        return None
    noted = [json.loads(line) for line in events.read_text(encoding="utf-8").splitlines()]
    found = next((Kill(name, event) for event, name in noted if event != "start"), None)
    if found is not None:
        return found
    last = next((name for event, name in reversed(noted) if event == "start"), "the import of the tests")
    if run.status is None:
        return Kill(last, "time")
    return Kill(last, CRASH if run.status < 0 else "import")
