"""Which partitions are in the transaction, and what becomes of their sequences."""

from __future__ import annotations

import pytest

from forebay._transactions.partitions import TransactionPartitions
from forebay._transactions.sequences import PartitionSequences
from forebay.errors import KafkaTimeoutError, OutOfOrderSequenceError, UnknownProducerIdError
from forebay.model import TopicPartition
from tests.unit._transactions.fakes import FakeBatch, FakeQueue

FOO = TopicPartition("foo", 0)
OUT_OF_ORDER, UNKNOWN = OutOfOrderSequenceError(), UnknownProducerIdError()


def sequences_of(
    topic: str = "foo", sent: int = 0, acknowledged: int = 0
) -> tuple[PartitionSequences, list[FakeBatch]]:
    sequences = PartitionSequences(topic, 0, True)
    sequences.start(7, 1, 0)
    batches = [FakeBatch(FakeQueue(topic)) for _ in range(sent)]
    for batch in batches:
        sequences.assign(batch)
    for offset, batch in enumerate(batches[:acknowledged]):
        sequences.acknowledge(batch, offset)
        sequences.drop(batch)
    return sequences, batches[acknowledged:]


def test_a_partition_is_asked_for_once_and_admitted_when_it_was_added() -> None:
    """G testMaybeAddPartitionToTransaction: pending until the answer, then added; again is a no-op."""
    members, (foo, _) = TransactionPartitions(), sequences_of()
    members.begin(False)
    assert not members.admits(foo)
    assert not members.admits(foo)
    assert members.take_fresh() == (FOO,)
    assert not members.admits(foo)
    assert members.take_fresh() == ()
    members.added([FOO])
    assert members.admits(foo) and members.started


def test_each_transaction_has_its_own_partitions() -> None:
    """G testIsSendToPartitionAllowed...: what was added before is not in the next one."""
    members, (foo, _) = TransactionPartitions(), sequences_of()
    members.begin(False)
    members.admits(foo)
    members.take_fresh()
    members.added([FOO])
    members.begin(False)
    assert not members.started
    assert not members.admits(foo)
    assert members.take_fresh() == (FOO,)


def test_an_answer_for_an_earlier_transaction_adds_nothing() -> None:
    members, (foo, _) = TransactionPartitions(), sequences_of()
    members.begin(False)
    members.admits(foo)
    members.take_fresh()
    members.begin(False)
    members.added([FOO])
    assert not members.admits(foo)


def test_version_2_admits_everything() -> None:
    members, (foo, _) = TransactionPartitions(), sequences_of()
    members.begin(True)
    assert members.admits(foo)
    assert members.take_fresh() == ()


@pytest.mark.parametrize(("position", "expected"), [(0, False), (1, True)])
def test_out_of_order_is_final_only_for_the_first_in_flight(position: int, expected: bool) -> None:
    members, (foo, _) = TransactionPartitions(), sequences_of(sent=2)
    assert members.can_retry(foo, position, OUT_OF_ORDER, -1) is expected


def test_behind_a_gap_nothing_is_tried_again() -> None:
    members, (foo, batches) = TransactionPartitions(), sequences_of(sent=3)
    members.lose(foo, batches[0], OUT_OF_ORDER, True)
    assert not members.can_retry(foo, 0, OUT_OF_ORDER, -1)
    assert not members.can_retry(foo, 1, OUT_OF_ORDER, -1)


def test_ahead_of_a_gap_batches_are_finished() -> None:
    members, (foo, batches) = TransactionPartitions(), sequences_of(sent=3)
    members.lose(foo, batches[2], OUT_OF_ORDER, True)
    assert members.can_retry(foo, 1, OUT_OF_ORDER, -1)


def test_a_forgotten_producer() -> None:
    """canRetry: no log start: again as it is; log deleted behind us: from 0; else it cannot be mended."""
    members, (foo, batches) = TransactionPartitions(), sequences_of(sent=3, acknowledged=1)
    assert members.can_retry(foo, 0, UNKNOWN, -1)
    assert batches[0].base_sequence == 1
    assert not members.can_retry(foo, 0, UNKNOWN, 0)
    assert members.can_retry(foo, 0, UNKNOWN, 400)
    assert [batch.base_sequence for batch in batches] == [0, 1]
    assert foo.next_sequence == 2


def test_another_epoch_mends_everything() -> None:
    members, (foo, batches) = TransactionPartitions(), sequences_of(sent=2)
    members.lose(foo, batches[0], OUT_OF_ORDER, True)
    members.lose(foo, batches[1], KafkaTimeoutError(), False)
    assert members.damaged == [foo]
    members.restart(7, 2)
    assert members.damaged == []
    assert (foo.producer_epoch, foo.next_sequence, foo.unresolved, foo.gap) == (2, 0, False, -1)


def test_under_the_same_epoch_sequences_go_on_after_the_last_confirmed() -> None:
    """G testAbortTransactionAndReuseSequenceNumberOnError."""
    members, (foo, batches) = TransactionPartitions(), sequences_of(sent=3, acknowledged=2)
    members.lose(foo, batches[0], OUT_OF_ORDER, True)
    assert members.mend() is None
    assert (foo.next_sequence, foo.last_acked_sequence) == (2, 1)


def test_under_the_same_epoch_a_forgotten_producer_begins_at_0() -> None:
    """G testAbortTransactionAndResetSequenceNumberOnUnknownProducerId."""
    members, (foo, batches) = TransactionPartitions(), sequences_of(sent=3, acknowledged=2)
    members.lose(foo, batches[0], UNKNOWN, True)
    assert members.mend() is None
    assert foo.next_sequence == 0


def test_under_the_same_epoch_what_may_have_been_written_is_the_end() -> None:
    members, (foo, batches) = TransactionPartitions(), sequences_of(sent=2, acknowledged=1)
    members.lose(foo, batches[0], KafkaTimeoutError(), False)
    error = members.mend()
    assert error is not None and "foo-0" in str(error)


def test_what_turned_out_to_be_written_is_no_damage() -> None:
    members, (foo, batches) = TransactionPartitions(), sequences_of(sent=2, acknowledged=1)
    members.lose(foo, batches[0], KafkaTimeoutError(), False)
    foo.acknowledge(batches[0], 1)
    assert members.mend() is None
    assert foo.next_sequence == 2
