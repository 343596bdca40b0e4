from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsResponse,
    decode_describe_transactions,
    encode_describe_transactions,
)
from forebay._protocol.partitions import by_topic
from forebay.errors import UnsupportedVersionError
from forebay.model import TopicPartition

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

partitions = st.lists(st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 9)), max_size=5, unique=True)
described = st.builds(
    DescribedTransaction,
    st.text(max_size=10),
    st.sampled_from([0, 16, 53, 105]),
    st.sampled_from(["Ongoing", "Empty", ""]),
    st.integers(0, 2**31 - 1),
    st.integers(0, 4_102_444_800_000),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**15 - 1),
    partitions.map(lambda found: tuple(sorted(found))),
)
ONGOING = DescribedTransaction("t", 0, "Ongoing", 60_000, 1_700_000_000_000, 5, 1, (TopicPartition("a", 3),))


def by_kio(said: DescribeTransactionsResponse) -> bytes:
    module = schema("describe_transactions", 0, "response")

    def state(one: DescribedTransaction) -> object:
        topics = by_topic(one.partitions).items()
        return make(
            module,
            "TransactionState",
            error_code=ErrorCode(one.error_code),
            transactional_id=one.transactional_id,
            transaction_state=one.state,
            transaction_timeout=timedelta(milliseconds=one.timeout_ms),
            transaction_start_time=datetime.fromtimestamp(one.start_time_ms // 1000, UTC)
            + timedelta(milliseconds=one.start_time_ms % 1000),
            producer_id=one.producer_id,
            producer_epoch=one.producer_epoch,
            topics=tuple(make(module, "TopicData", topic=name, partitions=tuple(all_)) for name, all_ in topics),
        )

    states = tuple(state(one) for one in said.transactions)
    throttle = timedelta(milliseconds=said.throttle_time_ms)
    return encode(make(module, "DescribeTransactionsResponse", throttle_time=throttle, transaction_states=states))


@given(st.integers(0, 2**31 - 1), st.lists(described, max_size=3))
def test_responses_by_kio(throttle: int, found: list[DescribedTransaction]) -> None:
    said = DescribeTransactionsResponse(throttle, tuple(found))
    payload = by_kio(said)
    assert decode_describe_transactions(0, payload) == said
    assert decode_describe_transactions(0, memoryview(payload)) == said


@given(st.lists(st.text(max_size=10), max_size=4))
def test_requests_are_read_by_kio(ids: list[str]) -> None:
    body = encode_describe_transactions(0, ids)
    module = schema("describe_transactions", 0, "request")
    assert list(decode(module.DescribeTransactionsRequest, b"".join(body)).transactional_ids) == ids


def test_bytes_by_hand() -> None:
    assert encode_describe_transactions(0, ["t", "ab"])[0].hex(" ") == "03 02 74 03 61 62 00"


def test_no_open_transaction_has_no_start() -> None:
    payload = by_kio(DescribeTransactionsResponse(0, (ONGOING,)))
    start = (1_700_000_000_000).to_bytes(8, "big")
    payload = payload.replace(start, b"\xff" * 8)
    assert decode_describe_transactions(0, payload).transactions[0].start_time_ms == -1


def test_cut_or_corrupted_responses() -> None:
    payload = by_kio(DescribeTransactionsResponse(7, (ONGOING, ONGOING._replace(error_code=105))))
    refuses_every_cut(lambda data: decode_describe_transactions(0, data), payload)
    survives_single_bytes(lambda data: decode_describe_transactions(0, data), payload)


@given(st.binary(max_size=80))
def test_any_bytes(payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_describe_transactions(0, data), payload)


@pytest.mark.parametrize("version", [-1, 1])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="DescribeTransactions v"):
        encode_describe_transactions(version, [])
    with pytest.raises(UnsupportedVersionError, match="DescribeTransactions v"):
        decode_describe_transactions(version, b"")
