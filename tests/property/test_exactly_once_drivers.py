"""Two drivers at work at once, attempts of stages, speculation, zombies, time-outs and ids that expire.

``tests/property/exactly_once.py`` plays them in every order that a few switches can make.  The rules as they were
(``exactly_once_before.py``) have to be refuted: else this could not fail.
"""

from __future__ import annotations

import random

import pytest

from forebay.errors import KafkaError
from forebay.model import TransactionIdentity
from forebay.spark.exactly_once import driver, protocol
from forebay.spark.exactly_once.protocol import Claim, State, TaskOutcome, Write
from forebay.spark.exactly_once.task import Worker
from tests.fakes.transactions import World
from tests.property.exactly_once import (
    BROKEN_RULE,
    DOUBLED,
    ENDS_NEWER,
    HOLDS_READERS,
    LAST,
    LOST_IS_READ,
    TAKEN_UNSETTLED,
    Explorer,
    Life,
    Schedule,
    Setting,
    Topic,
    Zombie,
    play,
)
from tests.property.exactly_once_before import Before


class Now:
    """``Rules`` of the package."""

    def __init__(self) -> None:
        self._workers: dict[str, Worker] = {}

    def begin(self, topic: Topic) -> Claim:
        return driver.begin(topic, "p")

    def commit(self, topic: Topic, outcomes: list[TaskOutcome]) -> None:
        driver.commit(topic, "p", outcomes, NOW_MS)

    def abort(self, topic: Topic, outcomes: list[TaskOutcome], claim: Claim) -> None:
        driver.abort(topic, "p", outcomes, claim)

    def task_id(self, worker: str, claim: Claim, partition: int, attempt: int) -> str:
        return self._workers.setdefault(worker, Worker(random.Random(worker).random)).next_id("p", claim)

    def is_loud(self, error: KafkaError) -> bool:
        return isinstance(error, protocol.UnknownOutcomeError)

    def is_named(self, error: KafkaError) -> bool:
        return isinstance(error, NAMED)


NAMED = (
    protocol.LateTransactionError,
    protocol.NonDeterministicReplayError,
    protocol.TakenOverError,
    protocol.UnfinishedWriteError,
    protocol.UnknownOutcomeError,
)
NOW_MS = 1_000_000
MOST = 2_000
"""Schedules of one long setting."""
ONE, TWO = Write("query", 0), Write("query", 1)
STAGE = Setting((Life("A", (ONE,)),), (Zombie("Z", "A", 0, 0),))
"""A zombie of a stage's earlier attempt: Spark has begun the numbers of attempts again."""
SPECULATION = Setting((Life("A", (ONE,)),), (Zombie("Z", "A", 1, 1),))
STALE = Setting((Life("A", (ONE,)), Life("B", (ONE, TWO))))
"""A driver, and its successor."""
KEPT = Setting((Life("A", (ONE,)), Life("B", (ONE, TWO), workers="A")))
"""The same, and the successor has the very workers: a query that its application has started again."""
KEPT_AND_ZOMBIE = Setting(
    (Life("A", (ONE,)), Life("B", (ONE, TWO), workers="A", one_worker=True)), (Zombie("Z", "A", 0, 1, worker="A0"),)
)
"""And a zombie of the first driver in one of them, so that both drivers have seen two transactions there."""
ZOMBIE_FIRST: Schedule = ((9, "Z"),)
TROUBLE = STAGE._replace(time_out=True, expiry=True)
EVERYTHING = STALE._replace(zombies=STAGE.zombies, time_out=True, expiry=True)
SETTINGS = {
    "stage": (STAGE, 2),
    "speculation": (SPECULATION, 2),
    "stale driver": (STALE, 1),
    "kept workers": (KEPT, 1),
    "trouble": (TROUBLE, 1),
}
"""With how many switches."""


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", SETTINGS)
def test_no_order_of_steps_breaks_a_rule(name: str, version: int) -> None:
    setting, switches = SETTINGS[name]
    explored = Explorer(setting._replace(version=version), Now, switches=switches).run()
    assert explored.found == {}
    assert explored.states > 100


# Two switches among two drivers, or one with all that can happen: minutes.
@pytest.mark.rest("as the settings above, further")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("setting", "switches"), [(STALE, 2), (KEPT, 2), (TROUBLE, 2), (EVERYTHING, 1)])
def test_no_order_of_more_steps_breaks_a_rule(setting: Setting, switches: int, version: int) -> None:
    explored = Explorer(setting._replace(version=version), Now, switches=switches, most=MOST).run()
    assert explored.found == {}
    assert explored.states > 1000


@pytest.mark.parametrize("version", [1, 2])
def test_what_an_older_driver_found_open_is_never_a_newer_ones(version: int) -> None:
    setting = KEPT_AND_ZOMBIE._replace(version=version)
    explored = Explorer(setting, Now, switches=2, after=ZOMBIE_FIRST, most=MOST).run()
    assert explored.found == {}
    assert explored.states > 1000


def test_below_version_2_a_worker_needs_other_ids_for_each_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.spark.exactly_once.task.FENCED_BY_ENDS", 0)
    setting = KEPT_AND_ZOMBIE._replace(version=1)
    assert ENDS_NEWER in Explorer(setting, Now, switches=2, after=ZOMBIE_FIRST).run(until=ENDS_NEWER).found


def test_an_error_of_a_driver_says_what_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    def raw(topic: Topic, me: TransactionIdentity, state: State, prefix: str) -> TransactionIdentity:
        return topic.write(me, state)

    monkeypatch.setattr("forebay.spark.exactly_once.driver._write", raw)
    assert BROKEN_RULE in Explorer(STALE, Now, switches=1).run(until=BROKEN_RULE).found


WITHOUT = {
    "the look at a refused commit": (TROUBLE, "protocol.is_aborted", lambda identity, found: True, DOUBLED),
    "the sweep": (SPECULATION, "driver._sweep", lambda *arguments: True, HOLDS_READERS),
    "the look at the claim": (KEPT, "driver._holds", lambda topic, me: True, ENDS_NEWER),
}
"""What makes the difference: without it, which rule is broken."""


@pytest.mark.parametrize("part", WITHOUT)
def test_each_part_is_needed(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    setting, name, instead, rule = WITHOUT[part]
    monkeypatch.setattr(f"forebay.spark.exactly_once.{name}", instead)
    assert rule in Explorer(setting, Now, switches=2).run(until=rule).found


@pytest.mark.parametrize(("version", "most"), [(2, 16), (1, 4000)])
def test_kept_workers_use_few_ids_where_an_end_fences(version: int, most: int) -> None:
    world, chance = World(version=version), random.Random(3)
    for number in range(1000):
        claim = driver.begin(world, "p")
        write = Write("query", number)
        # Any idle worker may get any task.
        outcomes = [
            world.task(claim, write, task, [(number, task)], worker=f"{chance.randrange(4)}") for task in range(4)
        ]
        driver.commit(world, "p", outcomes, NOW_MS)
    assert len(world.visible) == 4000 and not world.doubled()
    assert most / 2 < len(world.entries) - 1 <= most


@pytest.mark.parametrize("version", [1, 2])
def test_before_a_zombie_of_a_stages_attempt_doubled_rows(version: int) -> None:
    found = Explorer(STAGE._replace(version=version), Before, switches=1).run().found
    assert {DOUBLED, LOST_IS_READ, TAKEN_UNSETTLED} <= set(found)


def test_before_an_expired_id_doubled_rows() -> None:
    setting = Setting((Life("A", (ONE,)),), expiry=True)
    assert DOUBLED in Explorer(setting, Before, switches=1).run().found


@pytest.mark.parametrize("version", [1, 2])
def test_before_a_speculative_copy_held_readers(version: int) -> None:
    found = Explorer(SPECULATION._replace(version=version), Before, switches=1).run().found
    assert HOLDS_READERS in found


# A lists what is open when B has decided, and fences it by name when B has committed it.  B dies, and the next driver
# takes the refusal of its own commit for a loss.
STALE_DRIVER: Schedule = ((2, "B"), (14, "A"), (16, "B"), (18, "A"), (19, LAST))


@pytest.mark.parametrize("version", [1, 2])
def test_before_a_stale_driver_ended_its_successors_transactions(version: int) -> None:
    found = Explorer(STALE._replace(version=version), Before, switches=2).run(until=ENDS_NEWER).found
    assert ENDS_NEWER in found


def test_before_a_stale_driver_doubled_rows() -> None:
    assert DOUBLED in play(STALE, Before(), STALE_DRIVER).found
