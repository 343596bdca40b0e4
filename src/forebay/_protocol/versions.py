"""The APIs, the versions of each that forebay speaks, and the choice of one for a broker.

All API keys and version numbers are here.  A message module knows its own layouts.  This module decides whether a
header is flexible, and which versions both sides have.  A range is ``(oldest, newest)``, both inclusive.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from forebay.errors import UnsupportedVersionError

Range = tuple[int, int]


class ApiKey(IntEnum):
    """The APIs that a producer or an AdminClient may use, with Kafka's numbers."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    FIND_COORDINATOR = 10
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    SASL_AUTHENTICATE = 36
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72


NEWEST_PRODUCE = 13
FIRST_PRODUCE_BY_ID = 13
"""From this version on Produce names topics by their ids alone (KIP-516).

This keeps a batch out of the log of another topic with the same name.
"""

SUPPORTED: Mapping[int, Range] = MappingProxyType(
    {
        ApiKey.PRODUCE: (0, NEWEST_PRODUCE),
        # v13 names topics by id only, and brings nothing that is needed here.  v4 is the first with transactions.
        ApiKey.FETCH: (4, 12),
        ApiKey.LIST_OFFSETS: (2, 6),
        ApiKey.METADATA: (0, 13),
        ApiKey.FIND_COORDINATOR: (0, 6),
        # After v0 come bare tokens, as in brokers before 1.0.
        ApiKey.SASL_HANDSHAKE: (1, 1),
        ApiKey.API_VERSIONS: (0, 4),
        ApiKey.CREATE_TOPICS: (2, 7),
        ApiKey.DELETE_TOPICS: (1, 6),
        ApiKey.INIT_PRODUCER_ID: (0, 6),
        # Only brokers use v4 and later.
        ApiKey.ADD_PARTITIONS_TO_TXN: (0, 3),
        ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
        ApiKey.END_TXN: (0, 5),
        ApiKey.TXN_OFFSET_COMMIT: (0, 5),
        ApiKey.DESCRIBE_CONFIGS: (1, 4),
        ApiKey.SASL_AUTHENTICATE: (0, 2),
        ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
        ApiKey.LIST_TRANSACTIONS: (0, 2),
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (0, 0),
        ApiKey.PUSH_TELEMETRY: (0, 0),
    }
)
"""What this package encodes and decodes itself."""

_NEVER = 1 << 15

_FLEXIBLE_SINCE: Mapping[int, int] = MappingProxyType(
    {
        ApiKey.PRODUCE: 9,
        ApiKey.FETCH: 12,
        ApiKey.LIST_OFFSETS: 6,
        ApiKey.METADATA: 9,
        ApiKey.FIND_COORDINATOR: 3,
        ApiKey.SASL_HANDSHAKE: _NEVER,
        ApiKey.API_VERSIONS: 3,
        ApiKey.CREATE_TOPICS: 5,
        ApiKey.DELETE_TOPICS: 4,
        ApiKey.INIT_PRODUCER_ID: 2,
        ApiKey.ADD_PARTITIONS_TO_TXN: 3,
        ApiKey.ADD_OFFSETS_TO_TXN: 3,
        ApiKey.END_TXN: 3,
        ApiKey.TXN_OFFSET_COMMIT: 3,
        ApiKey.DESCRIBE_CONFIGS: 4,
        ApiKey.SASL_AUTHENTICATE: 2,
        ApiKey.DESCRIBE_TRANSACTIONS: 0,
        ApiKey.LIST_TRANSACTIONS: 0,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: 0,
        ApiKey.PUSH_TELEMETRY: 0,
    }
)


def api_name(api_key: int) -> str:
    """Kafka's name of an API, such as ``InitProducerId``; ``API 99`` for an unknown one."""
    try:
        return ApiKey(api_key).name.title().replace("_", "")
    except ValueError:
        return f"API {api_key}"


def is_flexible(api_key: int, version: int) -> bool:
    """Whether this version's body has compact lengths and tagged fields (KIP-482)."""
    return version >= _FLEXIBLE_SINCE[api_key]


def request_header_version(api_key: int, version: int) -> int:
    """1, or 2 with tagged fields."""
    return 2 if is_flexible(api_key, version) else 1


def response_header_version(api_key: int, version: int) -> int:
    """0, or 1 with tagged fields.

    ApiVersions always answers with 0, because the client does not know yet what the broker supports (KIP-511).
    """
    return 1 if is_flexible(api_key, version) and api_key != ApiKey.API_VERSIONS else 0


def choose(
    api_key: int,
    broker: Mapping[int, Range],
    min_version: int | None = None,
    max_version: int | None = None,
) -> int:
    """The newest version that both sides speak.

    Args:
        broker: the ranges the broker advertised, by API key.
        min_version: the oldest version the request can be built in; without it, the oldest of ``SUPPORTED``.
        max_version: likewise the newest.

    Raises:
        UnsupportedVersionError: nothing in common; the message names both ranges.
    """
    oldest, newest = SUPPORTED.get(api_key, (0, -1))
    oldest = oldest if min_version is None else min_version
    newest = newest if max_version is None else max_version
    theirs = broker.get(api_key)
    if theirs is None:
        raise UnsupportedVersionError(
            f"The broker does not support {api_name(api_key)}; versions {oldest} to {newest} can be used here"
        )
    version = min(newest, theirs[1])
    if version < max(oldest, theirs[0]):
        raise UnsupportedVersionError(
            f"The broker supports {api_name(api_key)} versions {theirs[0]} to {theirs[1]} only; "
            f"versions {oldest} to {newest} can be used here"
        )
    return version


def require(api_key: int, version: int) -> None:
    """Refuse to encode or decode a version that this package has no layout for.

    Raises:
        UnsupportedVersionError: naming the version and the range.
    """
    oldest, newest = SUPPORTED[api_key]
    if not oldest <= version <= newest:
        raise UnsupportedVersionError(f"{api_name(api_key)} v{version} is unknown here, only v{oldest} to v{newest}")
