"""Every crash of an exactly-once write, one and two in a row: no row is missing and none is doubled, in silence.

The decisions are those of the product (``forebay.spark.exactly_once.driver`` and ``protocol``); Kafka and Spark are
``tests.fakes.transactions``.  A driver crashes before each thing that others can see, is started again, and crashes
again.  Between the runs open transactions time out or not, Spark calls ``abort`` or dies with the driver, and the
repeated write has the same rows in each task or not.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import NamedTuple

import pytest

from forebay.spark.exactly_once import driver
from forebay.spark.exactly_once.protocol import (
    LateTransactionError,
    NonDeterministicReplayError,
    TakenOverError,
    TaskOutcome,
    Write,
)
from tests.fakes.transactions import World

TASKS = 3
ROWS = 6
WRITE = Write("query", 7)
FINE, REFUSED = "fine", "refused"


class Crash(BaseException):
    """The driver's process is gone."""


class Case(NamedTuple):
    """What happens beside the crashes."""

    times_out_first: bool
    times_out_second: bool
    aborts: bool
    deterministic: bool
    retried: bool


def rows_of(partition: int, run: int, case: Case) -> list[int]:
    shift = 0 if case.deterministic else run
    return [row for row in range(ROWS) if (row + shift) % TASKS == partition]


def attempt_write(world: World, case: Case, run: int, outcomes: list[TaskOutcome]) -> None:
    claim = driver.begin(world, world.prefix)
    for partition in range(TASKS):
        rows = rows_of(partition, run, case)
        if case.retried and partition == 0:
            # It ended, and was lost with its executor.
            world.task(claim, WRITE, partition, rows, worker="lost")
        outcomes.append(world.task(claim, WRITE, partition, rows))
    driver.commit(world, world.prefix, outcomes, world.now_ms)


def run_once(world: World, case: Case, run: int, crash_at: int | None) -> int:
    """One life of the driver; how many steps it made.  Raises Crash if it did not get to its end."""
    seen = itertools.count()

    def before_step(name: str) -> None:
        if next(seen) == crash_at:
            raise Crash(name)

    world.before_step = before_step
    outcomes: list[TaskOutcome] = []
    try:
        attempt_write(world, case, run, outcomes)
    except Crash:
        world.before_step = lambda name: None
        if case.aborts and len(outcomes) == TASKS:
            # The commit process alone died: Spark calls abort with every message.
            driver.abort(world, world.prefix, outcomes, outcomes[0].claim)
        raise
    return next(seen)


def rest(world: World, case: Case, run: int) -> None:
    """The time between two runs."""
    if (case.times_out_first, case.times_out_second)[run]:
        world.time_out()


def steps_of(case: Case, crashes: tuple[int, ...]) -> int:
    world = World()
    for run, crash in enumerate(crashes):
        with pytest.raises(Crash):
            run_once(world, case, run, crash)
        rest(world, case, run)
    try:
        return run_once(world, case, len(crashes), None)
    except NonDeterministicReplayError:
        return len(world.steps)


def play(case: Case, crashes: tuple[int, ...]) -> str:
    world = World()
    for run, crash in enumerate(crashes):
        try:
            run_once(world, case, run, crash)
        except NonDeterministicReplayError:
            return refused(world, case)
        except Crash:
            pass
        rest(world, case, run)
    try:
        run_once(world, case, len(crashes), None)
        # And once more, as after a crash before Spark wrote its own log.
        run_once(world, case, len(crashes) + 1, None)
    except NonDeterministicReplayError:
        return refused(world, case)
    assert Counter(world.visible) == Counter(range(ROWS)), (case, crashes, world.steps)
    return FINE


def refused(world: World, case: Case) -> str:
    """Only a source that is not deterministic may come to this, and nothing may be doubled."""
    assert not case.deterministic and (case.times_out_first or case.times_out_second)
    assert set(Counter(world.visible).values()) <= {1}
    return REFUSED


CASES = [Case(*values) for values in itertools.product((False, True), repeat=len(Case._fields))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(k for k, v in case._asdict().items() if v) or "none")
def test_every_pair_of_crashes(case: Case) -> None:
    found: Counter[str] = Counter()
    first = steps_of(case, ())
    for one in range(first):
        found[play(case, (one,))] += 1
        for two in range(steps_of(case, (one,))):
            found[play(case, (one, two))] += 1
    assert found[FINE] > 150
    loses = case.times_out_first or case.times_out_second
    assert (found[REFUSED] > 0) == (loses and not case.deterministic)


def test_two_drivers_at_once_end_in_an_error_of_the_older_one() -> None:
    case = Case(False, False, aborts=False, deterministic=True, retried=False)
    world = World()
    old = driver.begin(world, "p")
    reports = [world.task(old, WRITE, partition, rows_of(partition, 0, case)) for partition in range(TASKS)]
    attempt_write(world, case, 1, [])
    with pytest.raises((TakenOverError, LateTransactionError)):
        driver.commit(world, "p", reports, world.now_ms)
    assert Counter(world.visible) == Counter(range(ROWS))
