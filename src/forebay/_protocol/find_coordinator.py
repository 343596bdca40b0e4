"""FindCoordinator v0 to v6: the broker that coordinates a transactional id or a consumer group."""

from __future__ import annotations

from typing import NamedTuple

from forebay._protocol.metadata import MAX_HOST
from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require
from forebay.errors import UnsupportedVersionError
from forebay.errors._base import printable

GROUP = 0
TRANSACTION = 1

# From here on a request asks for many keys and each answer has its own error (KIP-699).
_BATCHED_SINCE = 4
_MAX_PORT = 65_535


class FindCoordinatorResponse(NamedTuple):
    """``node_id``, ``host`` and ``port`` are valid if ``error_code`` is 0; ``error_message`` is for people."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    node_id: int
    host: str
    port: int


def encode_find_coordinator(version: int, key: str, key_type: int) -> list[bytes]:
    """The request's body.

    Args:
        key: a transactional id or a group's id.
        key_type: ``TRANSACTION`` or ``GROUP``.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours, or knows groups only (v0).
    """
    require(ApiKey.FIND_COORDINATOR, version)
    if version == 0 and key_type != GROUP:
        raise UnsupportedVersionError("FindCoordinator v0 knows consumer groups only, v1 and later transactions too")
    writer = Writer(flexible=is_flexible(ApiKey.FIND_COORDINATOR, version))
    if version < _BATCHED_SINCE:
        writer.string(key)
    if version >= 1:
        writer.int8(key_type)
    if version >= _BATCHED_SINCE:
        writer.count(1)
        writer.string(key)
    writer.tags()
    return [writer.take()]


def decode_find_coordinator(version: int, payload: bytes | memoryview) -> FindCoordinatorResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense, have any number of answers but one, or name an
            impossible broker.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.FIND_COORDINATOR, version)
    flexible = is_flexible(ApiKey.FIND_COORDINATOR, version)
    reader = Reader(payload, what=f"FindCoordinator v{version} response", flexible=flexible)
    throttle = reader.int32() if version >= 1 else 0
    if version < _BATCHED_SINCE:
        found = _single(reader, version, throttle)
    else:
        answers = reader.array(lambda: _coordinator(reader, throttle), 14)
        if len(answers) != 1:
            reader.fail(f"{len(answers)} coordinators for the one key that was asked for")
        found = answers[0]
    reader.tags()
    if found.error_code == 0 and (found.node_id < 0 or not found.host or not 0 < found.port <= _MAX_PORT):
        # A connection to it would fail elsewhere, with an error that does not say where the address came from.
        reader.fail(f"coordinator {found.node_id} at {found.host!r} port {found.port} and no error")
    return found


def _single(reader: Reader, version: int, throttle: int) -> FindCoordinatorResponse:
    error_code = reader.int16()
    error_message = reader.nullable_string() if version >= 1 else None
    node_id, host, port = reader.int32(), printable(reader.string(), MAX_HOST), reader.int32()
    return FindCoordinatorResponse(throttle, error_code, error_message, node_id, host, port)


def _coordinator(reader: Reader, throttle: int) -> FindCoordinatorResponse:
    reader.string()
    node_id, host, port = reader.int32(), printable(reader.string(), MAX_HOST), reader.int32()
    error_code, error_message = reader.int16(), reader.nullable_string()
    reader.tags()
    return FindCoordinatorResponse(throttle, error_code, error_message, node_id, host, port)
