"""The driver's side on transactions in memory; every crash is in ``tests/property/test_exactly_once_model.py``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from forebay.errors import KafkaTimeoutError
from forebay.spark.exactly_once import driver, protocol
from forebay.spark.exactly_once.protocol import (
    Fate,
    LateTransactionError,
    TakenOverError,
    TaskOutcome,
    UnfinishedWriteError,
    UnknownOutcomeError,
    Write,
)
from tests.fakes.transactions import World

WRITE = Write("q", 0)


def written(world: World, claim: protocol.Claim, write: Write = WRITE) -> list[TaskOutcome]:
    return [world.task(claim, write, partition, [f"{write}:{partition}"]) for partition in range(2)]


def open_ids(world: World) -> list[str]:
    return [name for name in world.ongoing("p-") if name != "p-driver"]


def test_a_write_becomes_readable_with_its_commit_and_the_topic_says_done() -> None:
    world = World()
    claim = driver.begin(world, "p")
    outcomes = written(world, claim)
    assert world.visible == []
    driver.commit(world, "p", outcomes, world.now_ms)
    assert world.visible == ["q/0:0", "q/0:1"]
    state = protocol.decode(world.records[-1])
    assert state.decision is not None and state.decision.done
    assert state.versions == (("q", 0),)


def test_a_repeated_write_adds_nothing() -> None:
    world = World()
    driver.commit(world, "p", written(world, driver.begin(world, "p")), world.now_ms)
    records = len(world.records)
    driver.commit(world, "p", written(world, driver.begin(world, "p")), world.now_ms)
    assert world.visible == ["q/0:0", "q/0:1"]
    assert len(world.records) == records


def test_a_write_without_rows_is_one_record() -> None:
    world = World()
    claim = driver.begin(world, "p")
    driver.commit(world, "p", [world.task(claim, WRITE, 0, [])], world.now_ms)
    assert len(world.records) == 1
    assert protocol.decode(world.records[0]).version_of("q") == 0


def test_attempts_that_were_not_chosen_are_aborted_at_the_commit() -> None:
    world = World()
    claim = driver.begin(world, "p")
    world.task(claim, WRITE, 0, ["of a lost attempt"])
    driver.commit(world, "p", written(world, claim), world.now_ms)
    assert world.visible == ["q/0:0", "q/0:1"]
    assert world.ongoing("p-") == []


def test_what_a_dead_run_left_open_is_aborted_and_other_prefixes_are_left_alone() -> None:
    world = World()
    written(world, driver.begin(world, "p"))
    other = world.init("p-eu-0123456789abcdef-0")
    world.produce(other, ["another job's"])
    driver.begin(world, "p")
    assert world.ongoing("p-") == ["p-eu-0123456789abcdef-0"]


def decided_and_lost(world: World) -> None:
    """A write whose driver dies behind the decision, and comes back when the transactions have timed out."""
    claim = driver.begin(world, "p")
    outcomes = written(world, claim)
    world.before_step = dying_at("end")
    with pytest.raises(SystemExit):
        driver.commit(world, "p", outcomes, world.now_ms)
    world.before_step = lambda name: None
    world.time_out()


def dying_at(wanted: str, time: int = 1) -> Callable[[str], None]:
    seen: list[str] = []

    def before(name: str) -> None:
        seen.append(name)
        if name == wanted and seen.count(wanted) == time:
            raise SystemExit

    return before


def test_lost_rows_are_brought_back_by_the_same_write_and_no_other_may_pass() -> None:
    world = World()
    decided_and_lost(world)
    with pytest.raises(UnfinishedWriteError):
        written(world, driver.begin(world, "p"), Write("q", 1))
    driver.commit(world, "p", written(world, driver.begin(world, "p")), world.now_ms)
    assert sorted(world.visible) == ["q/0:0", "q/0:1"]


def decided_and_gone(world: World) -> None:
    """A write whose driver dies between its two ends, and whose ids expire."""
    outcomes = written(world, driver.begin(world, "p"))
    world.before_step = dying_at("end", 2)
    with pytest.raises(SystemExit):
        driver.commit(world, "p", outcomes, world.now_ms)
    world.before_step = lambda name: None
    world.time_out()
    world.init(outcomes[1].task.identity.transactional_id)  # type: ignore[union-attr]


def test_a_refusal_that_does_not_say_aborted_is_an_error_until_the_user_answers() -> None:
    world = World()
    decided_and_gone(world)
    for _ in range(2):
        with pytest.raises(UnknownOutcomeError, match="Write q/0 was decided.* task 1, 1 rows in t 0, p-"):
            driver.begin(world, "p")
        # What is known is written down: its id may be gone, too, when the user answers.
        world.expire()
    state = world.last_state()
    assert state.decision is not None
    assert [task.fate for task in state.decision.tasks] == [Fate.COMMITTED, Fate.OPEN]


def test_unknown_rows_stay_as_they_are_or_are_written_once_more() -> None:
    world = World()
    decided_and_gone(world)
    claim = driver.begin(world, "p", abandon="q/0")
    driver.commit(world, "p", written(world, claim, Write("q", 1)), world.now_ms)
    assert world.visible == ["q/0:0", "q/1:0", "q/1:1"]
    world = World()
    decided_and_gone(world)
    claim = driver.begin(world, "p", rewrite="q/0")
    assert (claim.unfinished, claim.lost) == (WRITE, (1,))
    driver.commit(world, "p", written(world, claim), world.now_ms)
    assert world.visible == ["q/0:0", "q/0:1"]


def test_a_write_that_is_committed_does_not_fail_for_what_else_is_open(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    outcomes = written(world, driver.begin(world, "p"))

    def before(name: str) -> None:
        if name == "list":
            raise KafkaTimeoutError("a broker is away")

    world.before_step = before
    driver.commit(world, "p", outcomes, world.now_ms)
    assert world.visible == ["q/0:0", "q/0:1"]
    assert caplog.messages == ["What else is open under p holds readers up to its timeout: a broker is away"]


def test_a_driver_whose_claim_is_gone_aborts_nothing() -> None:
    world = World()
    written(world, driver.begin(world, "p"))
    world.before_step = lambda name: world.init("p-driver") and None if name == "list" else None
    with pytest.raises(TakenOverError):
        driver.begin(world, "p")
    world.before_step = lambda name: None
    assert len(open_ids(world)) == 2


def test_lost_rows_can_be_given_up() -> None:
    world = World()
    decided_and_lost(world)
    claim = driver.begin(world, "p", abandon="q/0")
    assert claim.unfinished is None
    driver.commit(world, "p", written(world, claim, Write("q", 1)), world.now_ms)
    assert world.visible == ["q/1:0", "q/1:1"]


def test_rows_lost_between_the_decision_and_its_end_are_an_error() -> None:
    world = World()
    outcomes = written(world, driver.begin(world, "p"))
    ended: list[str] = []

    def before(name: str) -> None:
        ended.append(name)
        if ended.count("end") == 1 and name == "end":
            world.time_out()

    world.before_step = before
    with pytest.raises(UnfinishedWriteError, match="its tasks 0, 1 timed out"):
        driver.commit(world, "p", outcomes, world.now_ms)


def test_an_old_drivers_decision_is_refused() -> None:
    world = World()
    outcomes = written(world, driver.begin(world, "p"))
    world.before_step = lambda name: world.init("p-driver") and None if name == "write" else None
    with pytest.raises(TakenOverError, match="transactionalIdPrefix=p has begun a write"):
        driver.commit(world, "p", outcomes, world.now_ms)
    assert world.visible == [] and world.records == []


def test_a_driver_whose_own_id_was_forgotten_is_told_so_and_its_write_can_be_repeated() -> None:
    world = World()
    outcomes = written(world, driver.begin(world, "p"))

    def forget(step: str) -> None:
        if step == "write":
            world.expire()

    world.before_step = forget
    with pytest.raises(LateTransactionError, match="Kafka has forgotten p-driver.*repeat the write"):
        driver.commit(world, "p", outcomes, world.now_ms)
    world.before_step = lambda step: None
    assert world.visible == []
    driver.commit(world, "p", written(world, driver.begin(world, "p")), world.now_ms)
    assert world.visible == ["q/0:0", "q/0:1"]


def test_an_abort_takes_back_what_is_not_decided() -> None:
    world = World()
    claim = driver.begin(world, "p")
    outcomes = written(world, claim)
    world.task(claim, WRITE, 9, ["of a task that failed"])
    assert driver.abort(world, "p", outcomes, claim) == "3 transactions were aborted, no row of it will be read"
    assert world.ongoing("p-") == []
    world = World()
    claim = driver.begin(world, "p")
    written(world, claim)
    assert driver.abort(world, "p", [], None).startswith("0 transactions were aborted")
    assert len(open_ids(world)) == 2, "without a claim nobody knows whose they are"
    assert driver.abort(world, "p", [], claim).startswith("2 transactions were aborted")
    assert open_ids(world) == []


def test_an_abort_leaves_what_is_decided_or_may_be() -> None:
    world = World()
    assert driver.abort(world, "p", [], None) == "nothing was begun"
    claim = driver.begin(world, "p")
    outcomes = written(world, claim)
    world.before_step = dying_at("end")
    with pytest.raises(SystemExit):
        driver.commit(world, "p", outcomes, world.now_ms)
    world.before_step = lambda name: None
    assert driver.abort(world, "p", outcomes, claim).startswith("it is decided: 2 transactions stay")
    assert len(world.ongoing("p-")) == 2
    world = World()
    outcomes = written(world, driver.begin(world, "p"))
    world.before_step = dying_at("write: end")
    with pytest.raises(SystemExit):
        driver.commit(world, "p", outcomes, world.now_ms)
    world.before_step = lambda name: None
    assert driver.abort(world, "p", outcomes, None).startswith("its decision is on its way")
    assert len(world.ongoing("p-")) == 3
