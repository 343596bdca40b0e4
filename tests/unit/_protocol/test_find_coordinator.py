from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from forebay._protocol.find_coordinator import (
    GROUP,
    TRANSACTION,
    FindCoordinatorResponse,
    decode_find_coordinator,
    encode_find_coordinator,
)
from forebay.errors import ProtocolError, UnsupportedVersionError
from forebay.errors._base import printable

from .hostile import parses_or_refuses, refuses_every_cut, survives_single_bytes
from .kio_peer import decode, encode, make, schema

VERSIONS = range(7)
int32 = st.integers(-(2**31), 2**31 - 1)


def by_kio(version: int, said: FindCoordinatorResponse, answers: int = 1) -> bytes:
    module = schema("find_coordinator", version, "response")
    found = {
        "node_id": said.node_id,
        "host": said.host,
        "port": said.port,
        "error_code": ErrorCode(said.error_code),
        "error_message": said.error_message,
    }
    if version >= 4:
        found["coordinators"] = tuple(make(module, "Coordinator", key="k", **found) for _ in range(answers))
    throttle = timedelta(milliseconds=said.throttle_time_ms)
    return encode(make(module, "FindCoordinatorResponse", throttle_time=throttle, **found))


@given(
    st.sampled_from(VERSIONS),
    st.builds(
        FindCoordinatorResponse,
        st.integers(0, 2**31 - 1),
        st.sampled_from([0, 15, 30, 53]),
        st.none() | st.text(max_size=20),
        int32,
        st.text(max_size=20),
        int32,
    ),
)
def test_responses_by_kio(version: int, said: FindCoordinatorResponse) -> None:
    if version == 0:
        said = said._replace(throttle_time_ms=0, error_message=None)
    if said.error_code == 0:
        said = said._replace(node_id=max(said.node_id, 0), host=said.host or "h", port=said.port % 65_535 + 1)
    payload = by_kio(version, said)
    said = said._replace(host=printable(said.host))
    assert decode_find_coordinator(version, payload) == said
    assert decode_find_coordinator(version, memoryview(payload)) == said


@given(st.sampled_from(VERSIONS), st.text(max_size=20), st.sampled_from([GROUP, TRANSACTION]))
def test_requests_are_read_by_kio(version: int, key: str, key_type: int) -> None:
    if version == 0:
        key_type = GROUP
    body = encode_find_coordinator(version, key, key_type)
    found = decode(schema("find_coordinator", version, "request").FindCoordinatorRequest, b"".join(body))
    assert (found.coordinator_keys if version >= 4 else (found.key,)) == (key,)
    assert version == 0 or found.key_type == key_type


def test_bytes_by_hand() -> None:
    assert encode_find_coordinator(0, "g", GROUP)[0].hex(" ") == "00 01 67"
    assert encode_find_coordinator(2, "tx", TRANSACTION)[0].hex(" ") == "00 02 74 78 01"
    assert encode_find_coordinator(6, "tx", TRANSACTION)[0].hex(" ") == "01 02 03 74 78 00"


def test_v0_is_for_groups_only() -> None:
    with pytest.raises(UnsupportedVersionError, match="FindCoordinator v0 knows consumer groups only"):
        encode_find_coordinator(0, "tx", TRANSACTION)


@pytest.mark.parametrize("answers", [0, 2])
def test_one_key_has_one_answer(answers: int) -> None:
    payload = by_kio(4, FindCoordinatorResponse(0, 0, None, 1, "a", 9092), answers)
    with pytest.raises(ProtocolError, match=f"{answers} coordinators for the one key"):
        decode_find_coordinator(4, payload)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("where", [(-1, "a", 9092), (1, "", 9092), (1, "a", 0), (1, "a", 65_536), (1, "a", -1)])
def test_a_coordinator_that_cannot_be_is_refused(version: int, where: tuple[int, str, int]) -> None:
    node_id, host, port = where
    payload = by_kio(version, FindCoordinatorResponse(0, 0, None, node_id, host, port))
    with pytest.raises(ProtocolError, match=f"coordinator {node_id} at '{host}' port {port} and no error"):
        decode_find_coordinator(version, payload)


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_or_corrupted_responses(version: int) -> None:
    payload = by_kio(version, FindCoordinatorResponse(7, 15, "not yet", 2, "broker.example", 9092))
    refuses_every_cut(lambda data: decode_find_coordinator(version, data), payload)
    survives_single_bytes(lambda data: decode_find_coordinator(version, data), payload)


@given(st.sampled_from(VERSIONS), st.binary(max_size=60))
def test_any_bytes(version: int, payload: bytes) -> None:
    parses_or_refuses(lambda data: decode_find_coordinator(version, data), payload)


@pytest.mark.parametrize("version", [-1, 7])
def test_versions_out_of_range(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="FindCoordinator v"):
        encode_find_coordinator(version, "k", GROUP)
    with pytest.raises(UnsupportedVersionError, match="FindCoordinator v"):
        decode_find_coordinator(version, b"")
