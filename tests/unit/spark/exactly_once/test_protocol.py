"""The decisions, one by one; whole histories with crashes are in ``tests/property/test_exactly_once_model.py``."""

from __future__ import annotations

import json

import pytest

from forebay.errors import IllegalStateError
from forebay.model import TopicPartition, TransactionDescription, TransactionIdentity
from forebay.spark.exactly_once import protocol
from forebay.spark.exactly_once.protocol import (
    Claim,
    Decision,
    Fate,
    LateTransactionError,
    NonDeterministicReplayError,
    Role,
    State,
    TaskOutcome,
    TaskWrite,
    UnfinishedWriteError,
    Write,
    role,
)

DRIVER = TransactionIdentity("p-driver", 1, 10, 2)
WRITE = Write("q", 5)
PLACES = (TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("a", 0))


def task(partition: int, *, rows: int = 2, fingerprint: int = 7, fate: Fate = Fate.OPEN) -> TaskWrite:
    identity = TransactionIdentity(f"p-2-{partition}-0", 100 + partition, 3, 2)
    return TaskWrite(partition, identity, rows, fingerprint, fate)


def outcome(partition: int, claim: Claim, written: TaskWrite | None = None, *, skipped: bool = False) -> TaskOutcome:
    return TaskOutcome(claim, WRITE, partition, skipped, written)


def described(one: TaskWrite, *, state: str = "Ongoing", epoch: int = 3, left_ms: int = 800_000) -> dict[str, object]:
    identity = one.identity
    started = 1_000_000 + left_ms - 900_000
    return {
        identity.transactional_id: TransactionDescription(
            state, identity.producer_id, epoch, 900_000, started, PLACES, 0
        )
    }


def test_a_write_that_was_decided_is_skipped_and_a_newer_one_is_not() -> None:
    claim = Claim(DRIVER, (("q", 5),))
    assert role(claim, Write("q", 5), 0) is Role.SKIP
    assert role(claim, Write("q", 4), 0) is Role.SKIP
    assert role(claim, Write("q", 6), 0) is Role.WRITE
    assert role(claim, Write("other", 0), 0) is Role.WRITE
    assert role(claim, Write("q", protocol.NO_VERSION), 0) is Role.WRITE


def test_of_an_unfinished_write_only_what_is_lost_is_written_and_no_other_write_is_let_in() -> None:
    claim = Claim(DRIVER, (("q", 5),), WRITE, (1,))
    assert role(claim, WRITE, 0) is Role.SKIP
    assert role(claim, WRITE, 1) is Role.WRITE
    with pytest.raises(UnfinishedWriteError, match=r"Write q/5 was decided.* tasks 1 timed out.*abandonUnfinished=q/5"):
        role(claim, Write("q", 6), 0)


def test_ids_are_of_workers_or_of_the_old_form_and_a_longer_prefix_is_another_one() -> None:
    mine = protocol.task_id("p", "0123456789abcdef", 4)
    assert mine == "p-0123456789abcdef-4"
    others = [
        "p-driver",
        "p-eu-0123456789abcdef-4",
        "p-0123456789abcdef",
        "p-0123456789abcdef-4-7",
        "p-0123-4",
        "p-2-4",
    ]
    assert protocol.ids_of("p", [mine, "p-2-4-1", *others, "p-2-4-1-7", "x-2-4-1"]) == [mine, "p-2-4-1"]
    assert protocol.ids_of("p.", ["pp-2-4-1"]) == []


def test_a_new_write_is_decided_with_the_tasks_that_have_rows() -> None:
    claim = Claim(DRIVER, (("q", 4), ("r", 9)))
    decided = protocol.judge(State(None, claim.versions), [outcome(0, claim, task(0)), outcome(1, claim)])
    assert decided == State(Decision(WRITE, (task(0),)), (("r", 9), ("q", 5)))


def test_a_repeated_write_needs_no_decision() -> None:
    claim = Claim(DRIVER, (("q", 5),))
    assert protocol.judge(State(None, claim.versions), [outcome(0, claim, skipped=True)]) is None


def test_the_same_rows_take_the_place_of_lost_ones_and_others_are_refused() -> None:
    state = State(Decision(WRITE, (task(0, fate=Fate.COMMITTED), task(1, fate=Fate.LOST))), (("q", 5),))
    claim = protocol.claim_of(DRIVER, state)
    assert (claim.unfinished, claim.lost) == (WRITE, (1,))
    again = task(1)._replace(identity=TransactionIdentity("p-3-1-0", 7, 7, 2))
    decided = protocol.judge(state, [outcome(0, claim, skipped=True), outcome(1, claim, again)])
    assert decided is not None and decided.decision is not None
    assert decided.decision.tasks == (task(0, fate=Fate.COMMITTED), again)
    for other in (again._replace(rows=3), again._replace(fingerprint=8), None):
        with pytest.raises(NonDeterministicReplayError, match="Write q/5, task 1: the 2 rows"):
            protocol.judge(state, [outcome(0, claim, skipped=True), outcome(1, claim, other)])
    with pytest.raises(NonDeterministicReplayError):
        protocol.judge(state, [outcome(0, claim, skipped=True)])
    with pytest.raises(IllegalStateError, match="does not have write q/5 any more"):
        protocol.judge(State(), [outcome(0, claim, skipped=True)])


def test_tasks_that_do_not_belong_together_are_refused() -> None:
    claim = Claim(DRIVER)
    with pytest.raises(IllegalStateError, match="Tasks of two writes are mixed: q/5 and q/6"):
        protocol.judge(State(), [outcome(0, claim), TaskOutcome(claim, Write("q", 6), 1)])
    with pytest.raises(IllegalStateError, match="without tasks"):
        protocol.judge(State(), [])
    with pytest.raises(IllegalStateError, match="did not do what it was told"):
        protocol.judge(State(), [outcome(0, claim, skipped=True)])


def test_only_the_write_that_is_named_is_answered_for() -> None:
    tasks = (task(0, fate=Fate.COMMITTED), task(1, fate=Fate.LOST), task(2))
    decision = Decision(WRITE, tasks)
    assert protocol.answer(decision, abandon=None, rewrite=None) == decision
    assert protocol.answer(decision, abandon="q/4", rewrite="r/5") == decision
    assert protocol.answer(decision, abandon="q/5", rewrite=None) == Decision(WRITE, tasks[:1])
    rewritten = protocol.answer(decision, abandon=None, rewrite="q/5")
    assert [one.fate for one in rewritten.tasks] == [Fate.COMMITTED, Fate.LOST, Fate.LOST]


@pytest.mark.parametrize("state", ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort", "CompleteCommit", "Dead"])
@pytest.mark.parametrize("producer_id", [100, 101])
@pytest.mark.parametrize("epoch", range(1, 7))
def test_only_an_abort_of_this_very_transaction_is_a_loss(state: str, producer_id: int, epoch: int) -> None:
    found = TransactionDescription(state, producer_id, epoch, 900_000, -1, (), 0)
    aborted = state == "CompleteAbort" and producer_id == 100 and epoch in (3, 4)
    assert protocol.is_aborted(task(0).identity, found) is aborted
    assert not protocol.is_aborted(task(0).identity, None)


def test_a_claim_holds_while_nobody_else_has_the_drivers_id() -> None:
    found = TransactionDescription("Empty", 1, 10, 60_000, -1, (), 0)
    assert protocol.is_claimed(DRIVER, found) and protocol.is_claimed(DRIVER, found._replace(state="PrepareCommit"))
    for other in (found._replace(producer_epoch=11), found._replace(producer_id=2), None):
        assert not protocol.is_claimed(DRIVER, other)


def test_what_is_unknown_is_named_with_what_to_do() -> None:
    decision = Decision(WRITE, (task(0, fate=Fate.COMMITTED), task(1)._replace(places="orders 0, 2")))
    gone = TransactionDescription("Empty", 101, 5, 900_000, -1, (), 0)
    words = str(protocol.unknown(decision, {"p-2-1-0": gone}))
    assert "task 1, 2 rows in orders 0, 2, p-2-1-0 with producer 101, epoch 3" in words
    assert "Kafka now has Empty, producer 101, epoch 5" in words and "task 0" not in words
    assert "abandonUnfinished=q/5" in words and "rewriteUnfinished=q/5" in words


def test_fates_are_set_once() -> None:
    decision = Decision(WRITE, (task(0), task(1, fate=Fate.LOST)))
    settled = protocol.settle(decision, {0: Fate.COMMITTED, 1: Fate.COMMITTED})
    assert [one.fate for one in settled.tasks] == [Fate.COMMITTED, Fate.LOST]
    assert not settled.done


def test_a_transaction_must_be_there_and_have_time_left() -> None:
    one = task(0)
    found = described(one, left_ms=30_000)
    decision = Decision(WRITE, (task(1, fate=Fate.COMMITTED), one))
    alive = protocol.alive(decision, found, 1_000_000)  # type: ignore[arg-type]
    assert alive.tasks == (decision.tasks[0], one._replace(places="a 0, 2; b 1"))
    with pytest.raises(LateTransactionError, match="begun 870.0 s ago and cannot be committed safely"):
        protocol.alive(decision, described(one, left_ms=29_999), 1_000_000)  # type: ignore[arg-type]
    with pytest.raises(LateTransactionError, match=r"not open any more \(CompleteAbort"):
        protocol.alive(decision, described(one, state="CompleteAbort"), 1_000_000)  # type: ignore[arg-type]
    with pytest.raises(LateTransactionError, match=r"within kafka\.transaction\.timeout\.ms"):
        protocol.alive(decision, described(one, epoch=4), 1_000_000)  # type: ignore[arg-type]
    with pytest.raises(LateTransactionError, match=r"\(nothing\)"):
        protocol.alive(decision, {}, 1_000_000)


def test_a_state_is_written_as_json_and_read_back() -> None:
    state = State(Decision(WRITE, (task(0, fate=Fate.COMMITTED), task(1, fingerprint=2**64 - 1))), (("r", 1), ("q", 5)))
    assert protocol.decode(protocol.encode(state)) == state
    assert protocol.decode(protocol.encode(State())) == State()
    placed = State(Decision(WRITE, (task(0), task(1)._replace(places="orders 3"))))
    assert protocol.decode(protocol.encode(placed)) == placed
    assert json.loads(protocol.encode(state))["done"] is False


@pytest.mark.parametrize("value", [None, b"", b"{}", b"[]", b'{"format": 1, "tasks": [[1]], "write": null}'])
def test_a_record_of_something_else_is_refused(value: bytes | None) -> None:
    with pytest.raises(IllegalStateError, match="none of this sink"):
        protocol.decode(value)


def test_a_record_of_a_newer_version_is_refused() -> None:
    with pytest.raises(IllegalStateError, match="format 3; this version knows 1 to 2"):
        protocol.decode(b'{"format": 3}')


def test_a_record_of_format_1_is_read() -> None:
    tasks = b'[[0, "p-2-0-0", 100, 3, 2, 2, 7, "open"]]'
    value = b'{"format": 1, "versions": {"q": 5}, "write": ["q", 5], "done": false, "tasks": ' + tasks + b"}"
    assert protocol.decode(value) == State(Decision(WRITE, (task(0),)), (("q", 5),))


def test_only_so_many_applications_are_remembered() -> None:
    versions = tuple((f"a{number}", number) for number in range(protocol.MOST_APPS))
    claim = Claim(DRIVER, versions)
    decided = protocol.judge(State(None, versions), [outcome(0, claim)])
    assert decided is not None
    assert len(decided.versions) == protocol.MOST_APPS
    assert decided.versions[-1] == ("q", 5) and decided.version_of("a0") == protocol.NO_VERSION
