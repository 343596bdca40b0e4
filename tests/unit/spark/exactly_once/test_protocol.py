"""The decisions, one by one; whole histories with crashes are in ``tests/property/test_exactly_once_model.py``."""

from __future__ import annotations

import json

import pytest

from forebay.errors import IllegalStateError
from forebay.model import TransactionDescription, TransactionIdentity
from forebay.spark.exactly_once import protocol
from forebay.spark.exactly_once.protocol import (
    Claim,
    Decision,
    Fate,
    LateTransactionError,
    NonDeterministicReplayError,
    Outcome,
    Role,
    State,
    TaskWrite,
    UnfinishedWriteError,
    Write,
    role,
)

DRIVER = TransactionIdentity("p-driver", 1, 10, 2)
WRITE = Write("q", 5)


def task(partition: int, *, rows: int = 2, fingerprint: int = 7, fate: Fate = Fate.OPEN) -> TaskWrite:
    identity = TransactionIdentity(f"p-2-{partition}-0", 100 + partition, 3, 2)
    return TaskWrite(partition, identity, rows, fingerprint, fate)


def outcome(partition: int, claim: Claim, written: TaskWrite | None = None, *, skipped: bool = False) -> Outcome:
    return Outcome(claim, WRITE, partition, 0, skipped, written)


def described(one: TaskWrite, *, state: str = "Ongoing", epoch: int = 3, left_ms: int = 800_000) -> dict[str, object]:
    identity = one.identity
    started = 1_000_000 + left_ms - 900_000
    return {
        identity.transactional_id: TransactionDescription(state, identity.producer_id, epoch, 900_000, started, (), 0)
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


def test_ids_take_turns_in_eight_slots_and_a_longer_prefix_is_another_one() -> None:
    assert protocol.task_id("p", Claim(DRIVER), 4, 1) == "p-2-4-1"
    ids = ["p-driver", "p-2-4-1", "p-3-4-1", "p-eu-2-4-1", "p-2-4", "p-2-4-1-7", "x-2-4-1"]
    assert protocol.ids_of("p", ids) == ["p-2-4-1", "p-3-4-1"]
    assert protocol.ids_of("p", ids, 3) == ["p-3-4-1"]


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
        protocol.judge(State(), [outcome(0, claim), Outcome(claim, Write("q", 6), 1, 0)])
    with pytest.raises(IllegalStateError, match="without tasks"):
        protocol.judge(State(), [])
    with pytest.raises(IllegalStateError, match="did not do what it was told"):
        protocol.judge(State(), [outcome(0, claim, skipped=True)])


def test_lost_rows_are_given_up_only_for_the_write_that_is_named() -> None:
    decision = Decision(WRITE, (task(0, fate=Fate.COMMITTED), task(1, fate=Fate.LOST)))
    assert protocol.abandon(decision, None) == protocol.abandon(decision, "q/4") == decision
    assert protocol.abandon(decision, "q/5").done


def test_fates_are_set_once() -> None:
    decision = Decision(WRITE, (task(0), task(1, fate=Fate.LOST)))
    settled = protocol.settle(decision, {0: Fate.COMMITTED, 1: Fate.COMMITTED})
    assert [one.fate for one in settled.tasks] == [Fate.COMMITTED, Fate.LOST]
    assert not settled.done


def test_a_transaction_must_be_there_and_have_time_left() -> None:
    one = task(0)
    protocol.check_alive([one], described(one, left_ms=30_000), 1_000_000)  # type: ignore[arg-type]
    with pytest.raises(LateTransactionError, match="times out in 29999 ms, too soon"):
        protocol.check_alive([one], described(one, left_ms=29_999), 1_000_000)  # type: ignore[arg-type]
    with pytest.raises(LateTransactionError, match=r"not open any more \(CompleteAbort"):
        protocol.check_alive([one], described(one, state="CompleteAbort"), 1_000_000)  # type: ignore[arg-type]
    with pytest.raises(LateTransactionError, match="another run with the same transactionalIdPrefix"):
        protocol.check_alive([one], described(one, epoch=4), 1_000_000)  # type: ignore[arg-type]
    with pytest.raises(LateTransactionError, match=r"\(nothing\)"):
        protocol.check_alive([one], {}, 1_000_000)


def test_an_abort_leaves_what_is_decided() -> None:
    state = State(Decision(WRITE, (task(0),)))
    assert protocol.undecided(state, [task(0), task(1)]) == [task(1).identity]
    assert protocol.undecided(State(), [task(0)]) == [task(0).identity]


def test_a_state_is_written_as_json_and_read_back() -> None:
    state = State(Decision(WRITE, (task(0, fate=Fate.COMMITTED), task(1, fingerprint=2**64 - 1))), (("r", 1), ("q", 5)))
    assert protocol.decode(protocol.encode(state)) == state
    assert protocol.decode(protocol.encode(State())) == State()
    assert json.loads(protocol.encode(state))["done"] is False


@pytest.mark.parametrize("value", [None, b"", b"{}", b"[]", b'{"format": 1, "tasks": [[1]], "write": null}'])
def test_a_record_of_something_else_is_refused(value: bytes | None) -> None:
    with pytest.raises(IllegalStateError, match="none of this sink"):
        protocol.decode(value)


def test_a_record_of_a_newer_version_is_refused() -> None:
    with pytest.raises(IllegalStateError, match="format 2; this version knows 1"):
        protocol.decode(b'{"format": 2}')


def test_only_so_many_applications_are_remembered() -> None:
    versions = tuple((f"a{number}", number) for number in range(protocol.MOST_APPS))
    claim = Claim(DRIVER, versions)
    decided = protocol.judge(State(None, versions), [outcome(0, claim)])
    assert decided is not None
    assert len(decided.versions) == protocol.MOST_APPS
    assert decided.versions[-1] == ("q", 5) and decided.version_of("a0") == protocol.NO_VERSION
