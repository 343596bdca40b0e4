from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.list_transactions import (
    ListedTransaction,
    ListTransactionsResponse,
    decode_list_transactions,
    encode_list_transactions,
)
from forebay.errors import UnsupportedVersionError

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(3)
listed = st.builds(
    ListedTransaction, st.text(max_size=10), st.integers(-1, 2**63 - 1), st.sampled_from(["Ongoing", "Empty"])
)


def by_kio(version: int, said: ListTransactionsResponse) -> bytes:
    module = schema("list_transactions", version, "response")
    states = tuple(
        make(
            module,
            "TransactionState",
            transactional_id=one.transactional_id,
            producer_id=one.producer_id,
            transaction_state=one.state,
        )
        for one in said.transactions
    )
    return encode(
        make(
            module,
            "ListTransactionsResponse",
            throttle_time=timedelta(milliseconds=said.throttle_time_ms),
            error_code=ErrorCode(said.error_code),
            unknown_state_filters=said.unknown_states,
            transaction_states=states,
        )
    )


@given(
    st.sampled_from(VERSIONS),
    st.builds(
        ListTransactionsResponse,
        st.integers(0, 2**31 - 1),
        st.sampled_from([0, 14, 15, 31]),
        st.lists(st.text(max_size=5), max_size=2).map(tuple),
        st.lists(listed, max_size=4).map(tuple),
    ),
)
def test_responses_by_kio(version: int, said: ListTransactionsResponse) -> None:
    payload = by_kio(version, said)
    assert decode_list_transactions(version, payload) == said
    assert decode_list_transactions(version, memoryview(payload)) == said


@given(
    st.sampled_from(VERSIONS),
    st.lists(st.text(max_size=10), max_size=3),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
)
def test_requests_are_read_by_kio(version: int, states: list[str], producer_ids: list[int]) -> None:
    body = encode_list_transactions(version, states, producer_ids)
    found = decode(schema("list_transactions", version, "request").ListTransactionsRequest, b"".join(body))
    assert (list(found.state_filters), list(found.producer_id_filters)) == (states, producer_ids)
    assert version < 1 or found.duration_filter == -1
    assert version < 2 or found.transactional_id_pattern is None


def test_bytes_by_hand() -> None:
    assert encode_list_transactions(0, ["Dead"], [7])[0].hex(" ") == ("02 05 44 65 61 64 02 00 00 00 00 00 00 00 07 00")
    assert encode_list_transactions(2, [], [])[0].hex(" ") == "01 01 ff ff ff ff ff ff ff ff 00 00"


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    found = (ListedTransaction("t", 5, "Ongoing"), ListedTransaction("u", 6, "Empty"))
    payload = by_kio(version, ListTransactionsResponse(7, 0, ("Odd",), found))
    refuses_every_cut(lambda data: decode_list_transactions(version, data), payload)
    survives_single_bytes(lambda data: decode_list_transactions(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=60))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_list_transactions(version, data), payload)


@pytest.mark.parametrize("version", [-1, 3])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="ListTransactions v"):
        encode_list_transactions(version, [], [])
    with pytest.raises(UnsupportedVersionError, match="ListTransactions v"):
        decode_list_transactions(version, b"")
