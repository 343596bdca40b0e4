"""DescribeConfigs v1 to v4: the configuration of one topic, some keys of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from forebay._protocol.primitives import Reader, Writer
from forebay._protocol.versions import ApiKey, is_flexible, require

_TOPIC = 2
"""Kafka's number for a topic among the kinds of resources."""
# From this one on an answer has types and documentation.
_WITH_TYPES = 3


class DescribeConfigsResponse(NamedTuple):
    """``configs`` are valid if ``error_code`` is 0; a value is None if it is secret or there is none."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    configs: tuple[tuple[str, str | None], ...]


def encode_describe_configs(version: int, topic: str, keys: Sequence[str]) -> list[bytes]:
    """The request's body.

    Raises:
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.DESCRIBE_CONFIGS, version)
    writer = Writer(flexible=is_flexible(ApiKey.DESCRIBE_CONFIGS, version))
    writer.count(1)
    writer.int8(_TOPIC)
    writer.string(topic)
    writer.count(len(keys))
    for key in keys:
        writer.string(key)
    writer.tags()
    # No synonyms, no documentation.
    writer.boolean(False)
    if version >= _WITH_TYPES:
        writer.boolean(False)
    writer.tags()
    return [writer.take()]


def decode_describe_configs(version: int, payload: bytes | memoryview) -> DescribeConfigsResponse:
    """Read the response to a request of ``version``.

    Raises:
        ProtocolError: the bytes make no sense, or are of any number of topics but one.
        UnsupportedVersionError: ``version`` is not one of ours.
    """
    require(ApiKey.DESCRIBE_CONFIGS, version)
    flexible = is_flexible(ApiKey.DESCRIBE_CONFIGS, version)
    reader = Reader(payload, what=f"DescribeConfigs v{version} response", flexible=flexible)
    throttle = reader.int32()
    results = reader.array(lambda: _result(reader, version), 7)
    if len(results) != 1:
        reader.fail(f"{len(results)} topics for the one that was asked for")
    reader.tags()
    return DescribeConfigsResponse(throttle, *results[0])


def _result(reader: Reader, version: int) -> tuple[int, str | None, tuple[tuple[str, str | None], ...]]:
    error_code, error_message = reader.int16(), reader.nullable_string()
    # Which kind of resource, and its name.
    reader.raw(1)
    reader.string()
    configs = reader.array(lambda: _config(reader, version), 9)
    reader.tags()
    return error_code, error_message, configs


def _config(reader: Reader, version: int) -> tuple[str, str | None]:
    name, value = reader.string(), reader.nullable_string()
    # Read-only, source and sensitive take a byte each.
    reader.raw(3)
    reader.array(lambda: _skip_synonym(reader), 4)
    if version >= _WITH_TYPES:
        reader.raw(1)
        reader.nullable_string()
    reader.tags()
    return name, value


def _skip_synonym(reader: Reader) -> None:
    reader.string()
    reader.nullable_string()
    reader.raw(1)
    reader.tags()
