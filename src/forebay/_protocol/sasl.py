"""SaslHandshake v1 and SaslAuthenticate v0 to v2: the mechanism, and its tokens (KIP-152, KIP-368)."""

from __future__ import annotations

from typing import NamedTuple

from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require


class SaslHandshakeResponse(NamedTuple):
    """``mechanisms`` are those that the listener takes, also if the requested one is not among them."""

    error_code: int
    mechanisms: tuple[str, ...]


class SaslAuthenticateResponse(NamedTuple):
    """``session_lifetime_ms``: after this time the broker wants another authentication; 0: never, or not known yet."""

    error_code: int
    error_message: str | None
    token: bytes
    session_lifetime_ms: int


def encode_sasl_handshake(version: int, mechanism: str) -> list[bytes]:
    """The request's body.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.SASL_HANDSHAKE, version)
    writer = Writer(flexible=False)
    writer.string(mechanism)
    return [writer.take()]


def decode_sasl_handshake(version: int, payload: bytes | memoryview) -> SaslHandshakeResponse:
    """Read the response.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.SASL_HANDSHAKE, version)
    reader = Reader(payload, what=f"SaslHandshake v{version} response", flexible=False)
    error_code = reader.int16()
    mechanisms = reader.array(reader.string, 2)
    return SaslHandshakeResponse(error_code, mechanisms)


def encode_sasl_authenticate(version: int, token: bytes) -> list[bytes]:
    """The request's body: the client's next token, which may be empty.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.SASL_AUTHENTICATE, version)
    writer = Writer(flexible=is_flexible(ApiKey.SASL_AUTHENTICATE, version))
    writer.count(len(token))
    writer.raw(token)
    writer.tags()
    return [writer.take()]


def decode_sasl_authenticate(version: int, payload: bytes | memoryview) -> SaslAuthenticateResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.SASL_AUTHENTICATE, version)
    flexible = is_flexible(ApiKey.SASL_AUTHENTICATE, version)
    reader = Reader(payload, what=f"SaslAuthenticate v{version} response", flexible=flexible)
    error_code, message = reader.int16(), reader.nullable_string()
    token = reader.nullable_bytes() or b""
    lifetime = reader.int64() if version >= 1 else 0
    reader.tags()
    return SaslAuthenticateResponse(error_code, message, token, lifetime)
