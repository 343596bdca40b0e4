"""Which versions the requests of a transaction may have, whom they go to, and which goes first."""

from __future__ import annotations

import pytest

from forebay._protocol.find_coordinator import GROUP, TRANSACTION
from forebay._transactions.initialization import Coordinator, InitProducerIdCall
from forebay._transactions.pending import Pending
from forebay._transactions.requests import (
    AddPartitionsCall,
    EndTxnCall,
    FindCoordinatorCall,
    Identity,
    TxnOffsetCommitCall,
)
from forebay._transactions.result import TransactionalResult
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

WHO = Identity("id", 7, 1)
WHERE = TopicPartition("test", 0)
OFFSETS = {WHERE: OffsetAndMetadata(3)}


@pytest.mark.parametrize(("kind", "oldest"), [(GROUP, 0), (TRANSACTION, 1)])
def test_the_first_version_of_find_coordinator_knows_groups_only(kind: int, oldest: int) -> None:
    assert FindCoordinatorCall(Coordinator(kind, "key")).min_version == oldest


@pytest.mark.parametrize(
    ("group", "transaction_version", "versions"),
    [
        (ConsumerGroupMetadata("group"), 1, (0, 4)),
        (ConsumerGroupMetadata("group", 3, "member"), 1, (3, 4)),
        (ConsumerGroupMetadata("group", group_instance_id="instance"), 1, (3, 4)),
        (ConsumerGroupMetadata("group"), 2, (5, 5)),
    ],
)
def test_the_versions_of_an_offset_commit(
    group: ConsumerGroupMetadata, transaction_version: int, versions: tuple[int, int]
) -> None:
    call = TxnOffsetCommitCall(WHO, group, OFFSETS, transaction_version)
    assert (call.min_version, call.max_version) == versions
    assert call.coordinator == Coordinator(GROUP, "group")


@pytest.mark.parametrize(("transaction_version", "versions"), [(0, (0, 4)), (1, (0, 4)), (2, (5, 5))])
def test_the_versions_of_the_end(transaction_version: int, versions: tuple[int, int]) -> None:
    call = EndTxnCall(WHO, True, transaction_version)
    assert (call.min_version, call.max_version) == versions
    assert call.coordinator == Coordinator(TRANSACTION, "id")


def test_requests_go_by_priority_and_then_in_the_order_of_their_making() -> None:
    calls = [
        InitProducerIdCall("id", 1121, 7, 1),
        EndTxnCall(WHO, True, 1),
        AddPartitionsCall(WHO, (WHERE,)),
        AddPartitionsCall(WHO, ()),
        InitProducerIdCall("id", 1121),
        FindCoordinatorCall(WHO.coordinator),
    ]
    pending = [Pending(call, TransactionalResult(), number) for number, call in enumerate(calls)]
    assert [one.number for one in sorted(pending)] == [5, 4, 2, 3, 1, 0]
