"""SaslHandshake and SaslAuthenticate, byte by byte."""

from __future__ import annotations

import pytest

from forebay._protocol.sasl import (
    SaslAuthenticateResponse,
    decode_sasl_authenticate,
    decode_sasl_handshake,
    encode_sasl_authenticate,
    encode_sasl_handshake,
)
from forebay.errors import ProtocolError, UnsupportedVersionError


def test_handshake() -> None:
    assert b"".join(encode_sasl_handshake(1, "PLAIN")) == b"\0\x05PLAIN"
    answer = decode_sasl_handshake(1, b"\0\x21\0\0\0\x02\0\x05PLAIN\0\x06GSSAPI")
    assert answer == (33, ("PLAIN", "GSSAPI"))


@pytest.mark.parametrize(
    ("version", "request_bytes", "answer", "expected"),
    [
        (0, b"\0\0\0\x02ab", b"\0\0\xff\xff\0\0\0\x01x", (0, None, b"x", 0)),
        (1, b"\0\0\0\x02ab", b"\0\x3a\0\x02no\0\0\0\0" + b"\0" * 6 + b"\x13\x88", (58, "no", b"", 5000)),
        (2, b"\x03ab\0", b"\0\0\0\x02x" + b"\0" * 6 + b"\x13\x88\0", (0, None, b"x", 5000)),
    ],
)
def test_authenticate(
    version: int, request_bytes: bytes, answer: bytes, expected: tuple[int, str | None, bytes, int]
) -> None:
    assert b"".join(encode_sasl_authenticate(version, b"ab")) == request_bytes
    assert decode_sasl_authenticate(version, answer) == SaslAuthenticateResponse(*expected)


@pytest.mark.parametrize("damaged", [b"", b"\0", b"\0\0\0\0\0\x05", b"\0\0\x7f\xff\xff\xff"])
def test_what_is_cut_off_is_refused(damaged: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_sasl_handshake(1, damaged)
    with pytest.raises(ProtocolError):
        decode_sasl_authenticate(1, damaged)


def test_versions_that_are_not_ours() -> None:
    with pytest.raises(UnsupportedVersionError):
        encode_sasl_handshake(0, "PLAIN")
    with pytest.raises(UnsupportedVersionError):
        encode_sasl_authenticate(3, b"")
