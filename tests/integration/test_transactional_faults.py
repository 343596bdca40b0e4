"""A connection that fails around one request of a transaction: it ends as its owner was told, and only so.

As ``test_api_faults``, for the APIs of transactions, with Kafka's second generation of them (KIP-890) and, with the
feature hidden by the proxy, the first.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import pytest

from forebay.model import TopicPartition
from tests.integration.transactions import committed_offset, committed_values, transact, transactional
from tests.support.fixtures import ProxyFactory, TopicFactory
from tests.support.pace import within, within_ms
from tests.support.proxy import LOST, TORN, UNHEARD, Fault, KafkaProxy, away, late
from tests.support.refusal import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT,
)
from tests.support.rewrite import FIND_COORDINATOR, PRODUCE, without_features
from tools.kafka import RealKafka

REQUEST_TIMEOUT_MS = within_ms(200)
FAULTS: dict[str, Fault] = {
    "lost before": LOST,
    "lost after": UNHEARD,
    "torn": TORN,
    "late": late(REQUEST_TIMEOUT_MS * 2),
    "refused": away(150),
}


class Case(NamedTuple):
    """An API, and whether the fault is there when the producer is initialised, or once that is done."""

    api: int
    early: bool = False


CASES = {
    "coordinator": Case(FIND_COORDINATOR, early=True),
    "coordinator of the group": Case(FIND_COORDINATOR),
    "InitProducerId": Case(INIT_PRODUCER_ID, early=True),
    "AddPartitionsToTxn": Case(ADD_PARTITIONS_TO_TXN),
    "Produce": Case(PRODUCE),
    "AddOffsetsToTxn": Case(ADD_OFFSETS_TO_TXN),
    "TxnOffsetCommit": Case(TXN_OFFSET_COMMIT),
    "EndTxn": Case(END_TXN),
}
#: What differs between the generations is tried in both.
SECOND = [name for name in CASES if not name.startswith("Add")]
FIRST = ["AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"]


def two_transactions(proxy: KafkaProxy, case: Case, fault: Fault, where: TopicPartition, name: str) -> None:
    """One committed, with an offset, and one aborted, each with the fault (an early one only once)."""
    options = {"request.timeout.ms": REQUEST_TIMEOUT_MS}
    offset = 10 * (list(FAULTS).index(name) + 1)
    with transactional(proxy, f"{where.topic}-{name}", **options) as ours:
        if case.early:
            proxy.plan(case.api, fault)
        ours.init_transactions()
        if not case.early:
            proxy.plan(case.api, fault)
        transact(ours, where, name.encode(), group=where.topic, offset=offset)
        if not case.early and case.api != FIND_COORDINATOR:
            proxy.plan(case.api, fault)
        transact(ours, where, b"not " + name.encode(), group=where.topic, offset=offset + 1, commit=False)


@pytest.mark.parametrize(("generation", "api"), [*((2, name) for name in SECOND), *((1, name) for name in FIRST)])
def test_a_transaction_ends_as_told(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, generation: int, api: str
) -> None:
    name = topic(kafka)
    proxy = proxied(kafka, hooks=[without_features] if generation == 1 else [])
    where = TopicPartition(name, 0)
    took = {}
    for fault in FAULTS:
        begun = time.monotonic()
        two_transactions(proxy, CASES[api], FAULTS[fault], where, fault)
        took[fault] = time.monotonic() - begun
        assert proxy.planned() == 0, fault
    assert committed_values(kafka, name) == {0: [fault.encode() for fault in FAULTS]}
    assert committed_offset(kafka, name, where) == 10 * len(FAULTS)
    assert took["late"] > REQUEST_TIMEOUT_MS / 1000
    assert max(took.values()) < within(10)
