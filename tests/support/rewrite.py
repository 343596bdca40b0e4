"""Hooks for the proxy that change what a broker answers, decoded and encoded by kio.

A hook gets one :class:`Answer` and returns the bytes that the client is to see after the correlation id, or
None to have the connection cut instead.  kio judges what we send as well: a hook that cannot decode an answer
raises, and the test fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32, i64

PRODUCE, METADATA, FIND_COORDINATOR, API_VERSIONS = 0, 3, 10, 18
UNSUPPORTED_VERSION = b"\x00\x23"
# kio's names of the modules with the answers that carry addresses or versions.
MODULES = {
    PRODUCE: ("produce", "ProduceResponse"),
    METADATA: ("metadata", "MetadataResponse"),
    FIND_COORDINATOR: ("find_coordinator", "FindCoordinatorResponse"),
    API_VERSIONS: ("api_versions", "ApiVersionsResponse"),
}
# Before this version a Produce answer names no addresses.
PRODUCE_WITH_ENDPOINTS = 10

Address = tuple[str, int]
Translate = Callable[[str, int], Address]


class Answer(NamedTuple):
    """One answer of a broker; ``payload`` is what follows the correlation id (header tags and body)."""

    api_key: int
    version: int
    correlation_id: int
    payload: bytes
    node: Address


Hook = Callable[[Answer], bytes | None]


def decode(answer: Answer) -> Any:
    """The answer as kio's entity."""
    module, name = MODULES[answer.api_key]
    entity = getattr(import_module(f"kio.schema.{module}.v{answer.version}.response"), name)
    start = 1 if _has_tags(entity) else 0
    value, _ = entity_reader(entity)(answer.payload, start)
    return value


def encode(value: Any) -> bytes:
    """An entity as an answer's payload, with the empty header tags where its version has them."""
    buffer = BytesIO()
    if _has_tags(type(value)):
        buffer.write(b"\0")
    entity_writer(type(value))(buffer, value)
    return buffer.getvalue()


def _has_tags(entity: type[Any]) -> bool:
    return str(entity.__header_schema__.__module__).endswith(".v1.header")


def limit_versions(limits: Mapping[int, tuple[int, int] | None]) -> Hook:
    """Narrows the advertised range of each API to these versions (both included); None hides the API."""

    def hook(answer: Answer) -> bytes | None:
        # "Ask again in a lower version" has its own form, which the mock gets wrong; it limits nothing.
        if answer.api_key != API_VERSIONS or answer.payload[:2] == UNSUPPORTED_VERSION:
            return answer.payload
        value = decode(answer)
        kept = []
        for entry in value.api_keys:
            limit = limits.get(int(entry.api_key), (entry.min_version, entry.max_version))
            if limit is None:
                continue
            lowest, highest = max(entry.min_version, limit[0]), min(entry.max_version, limit[1])
            if lowest > highest:
                raise ValueError(f"API {entry.api_key}: the broker's {entry} has no version in {limit}")
            kept.append(replace(entry, min_version=i16(lowest), max_version=i16(highest)))
        return encode(replace(value, api_keys=tuple(kept)))

    return hook


def without_features(answer: Answer) -> bytes | None:
    """Hides the cluster's features, so that clients take it for one without ``transaction.version`` 2 (KIP-890)."""
    if answer.api_key != API_VERSIONS or answer.version < 3 or answer.payload[:2] == UNSUPPORTED_VERSION:
        return answer.payload
    return encode(replace(decode(answer), finalized_features=(), finalized_features_epoch=i64(-1)))


def translate_addresses(translate: Translate) -> Hook:
    """Puts another address in place of each broker's, in every answer that names one."""

    def moved(entry: Any) -> Any:
        host, port = translate(entry.host, entry.port)
        return replace(entry, host=host, port=i32(port))

    def hook(answer: Answer) -> bytes | None:
        if answer.api_key == METADATA:
            value = decode(answer)
            return encode(replace(value, brokers=tuple(moved(entry) for entry in value.brokers)))
        if answer.api_key == FIND_COORDINATOR:
            value = decode(answer)
            if not hasattr(value, "coordinators"):
                return encode(moved(value)) if value.host else answer.payload
            found = tuple(moved(entry) if entry.host else entry for entry in value.coordinators)
            return encode(replace(value, coordinators=found))
        if answer.api_key == PRODUCE and answer.version >= PRODUCE_WITH_ENDPOINTS:
            value = decode(answer)
            # Written again only where there is something to change: the rest stays the broker's own bytes.
            if value.node_endpoints:
                return encode(replace(value, node_endpoints=tuple(moved(entry) for entry in value.node_endpoints)))
        return answer.payload

    return hook


def metadata_error(answer: Answer, topic: str, code: int, left: list[int], *, of_partition: bool) -> bytes:
    """The next ``left[0]`` Metadata answers about ``topic`` have this error, the topic's own or its partitions'."""
    if answer.api_key != METADATA or not left[0]:
        return answer.payload
    value = decode(answer)
    if all(entry.name != topic for entry in value.topics):
        return answer.payload
    left[0] -= 1

    def changed(entry: Any) -> Any:
        if entry.name != topic:
            return entry
        if not of_partition:
            return replace(entry, error_code=ErrorCode(code), partitions=())
        parts = tuple(replace(part, error_code=ErrorCode(code)) for part in entry.partitions)
        return replace(entry, partitions=parts)

    return encode(replace(value, topics=tuple(changed(entry) for entry in value.topics)))
