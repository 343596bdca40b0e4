from __future__ import annotations

import importlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._protocol import framing, versions
from forebay._protocol.versions import ApiKey
from forebay.errors import IllegalArgumentError, ProtocolError

from .hostile import parses_or_refuses
from .kio_peer import decode, encode

CASES = [(api, version) for api, (_, newest) in versions.SUPPORTED.items() for version in range(newest + 1)]
client_ids = st.none() | st.text(max_size=40)


@given(st.sampled_from(CASES), st.integers(-(2**31), 2**31 - 1), client_ids)
def test_request_header_is_read_by_kio(case: tuple[int, int], correlation: int, client_id: str | None) -> None:
    api, version = case
    kind = importlib.import_module(f"kio.schema.request_header.v{versions.request_header_version(api, version)}.header")
    found = decode(kind.RequestHeader, framing.request_header(api, version, correlation, client_id))
    assert (found.request_api_key, found.request_api_version) == (api, version)
    assert (found.correlation_id, found.client_id) == (correlation, client_id)


def test_request_headers_byte_for_byte() -> None:
    assert framing.request_header(0, 8, 7, "me").hex(" ") == "00 00 00 08 00 00 00 07 00 02 6d 65"
    assert framing.request_header(0, 9, 7, "me").hex(" ") == "00 00 00 09 00 00 00 07 00 02 6d 65 00"
    assert framing.request_header(18, 4, 0, None).hex(" ") == "00 12 00 04 00 00 00 00 ff ff 00"


@given(st.sampled_from(CASES), client_ids, st.lists(st.binary(max_size=50), max_size=5))
def test_request_frame_is_length_header_and_the_given_buffers(
    case: tuple[int, int], client_id: str | None, body: list[bytes]
) -> None:
    frame = framing.request_frame(*case, 5, client_id, body)
    joined = b"".join(frame)
    assert int.from_bytes(joined[:4], "big") == len(joined) - 4
    assert joined[4:] == framing.request_header(*case, 5, client_id) + b"".join(body)
    assert all(mine is given_one for mine, given_one in zip(frame[1:], body, strict=True))


def test_a_client_id_longer_than_its_length_can_say_is_refused() -> None:
    (longest,) = framing.request_frame(ApiKey.METADATA, 5, 1, "x" * 32767, [])
    assert longest[12:14] == b"\x7f\xff"
    with pytest.raises(IllegalArgumentError, match="client.id of 32768 bytes, at most 32767"):
        framing.request_frame(ApiKey.METADATA, 5, 1, "x" * 32768, [])


def test_a_request_longer_than_its_length_can_say_is_refused() -> None:
    class Huge:
        def __len__(self) -> int:
            return 2**31 - 10

    with pytest.raises(IllegalArgumentError, match="Produce request of 21474836"):
        framing.request_frame(0, 9, 1, "c", [Huge()])


@pytest.mark.parametrize("received", [b"", b"\0", b"\0\0\0"])
def test_frame_size_waits_for_four_bytes(received: bytes) -> None:
    assert framing.frame_size(received, 100) == -1


@pytest.mark.parametrize("size", [4, 5, 100])
def test_frame_size_within_limits(size: int) -> None:
    assert framing.frame_size(memoryview(size.to_bytes(4, "big") + b"rest"), 100) == size


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 3, 101, 2**31 - 1])
def test_frame_size_out_of_limits_names_them(size: int) -> None:
    with pytest.raises(ProtocolError, match=rf"response length {size} .* allowed are 4 to 100"):
        framing.frame_size(size.to_bytes(4, "big", signed=True), 100)


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "an HTTP server"),
        (b"SSH-2.0-OpenSSH_9.6", "an SSH server"),
        (b"220 mail ready", "a mail or FTP server"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "a TLS listener"),
    ],
)
def test_strangers_on_the_port_are_recognised(text: bytes, guess: str) -> None:
    with pytest.raises(ProtocolError, match=f"does not speak the Kafka protocol.*looks like {guess}"):
        framing.frame_size(text, framing.MAX_RESPONSE_SIZE)


@given(st.sampled_from(CASES), st.integers(-(2**31), 2**31 - 1))
def test_response_header_by_kio(case: tuple[int, int], correlation: int) -> None:
    api, version = case
    number = versions.response_header_version(api, version)
    module = importlib.import_module(f"kio.schema.response_header.v{number}.header")
    head = encode(module.ResponseHeader(correlation_id=correlation))
    assert framing.response_header(api, version, head + b"body") == (correlation, len(head))
    assert framing.response_header(api, version, memoryview(head + b"body")) == (correlation, len(head))
    assert framing.correlation_id(head) == correlation


def test_response_header_skips_tagged_fields() -> None:
    head = bytes.fromhex("00000007 02 00 02 aabb 81 01 00")
    assert framing.response_header(ApiKey.PRODUCE, 9, head + b"body") == (7, len(head))


@pytest.mark.parametrize(
    "head", ["", "000000", "00000007", "00000007 01", "00000007 01 00 05 aa", "00000007 ffffffffff"]
)
def test_response_header_cut_short(head: str) -> None:
    with pytest.raises(ProtocolError):
        framing.response_header(ApiKey.PRODUCE, 9, bytes.fromhex(head))


@given(st.binary(max_size=60))
def test_any_bytes_as_a_response_header(payload: bytes) -> None:
    parses_or_refuses(lambda data: framing.response_header(ApiKey.METADATA, 12, data), payload)
