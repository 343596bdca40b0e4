"""What each connected broker supports, and what all of them support: versions, record format, features.

Written by the sender's thread; other threads may read ``max_usable_produce_magic`` and ``features``, which are
replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from forebay._protocol.api_versions import UNKNOWN_EPOCH, ApiVersionsResponse
from forebay._protocol.versions import ApiKey, Range, choose

CURRENT_MAGIC = 2

# The first version at which a broker answers before it throttles, so that the client has to wait (KIP-219).
_THROTTLED_BY_CLIENT_SINCE: Mapping[int, int] = MappingProxyType(
    {
        ApiKey.PRODUCE: 6,
        ApiKey.FETCH: 8,
        ApiKey.LIST_OFFSETS: 3,
        ApiKey.METADATA: 6,
        ApiKey.FIND_COORDINATOR: 2,
        ApiKey.API_VERSIONS: 2,
        ApiKey.CREATE_TOPICS: 3,
        ApiKey.DELETE_TOPICS: 2,
        ApiKey.INIT_PRODUCER_ID: 1,
        ApiKey.ADD_PARTITIONS_TO_TXN: 1,
        ApiKey.ADD_OFFSETS_TO_TXN: 1,
        ApiKey.END_TXN: 1,
        ApiKey.TXN_OFFSET_COMMIT: 1,
    }
)
# APIs with higher numbers are newer than KIP-219.
_LAST_BEFORE_KIP_219 = 42


def client_throttles(api_key: int, version: int) -> bool:
    """Whether the client has to wait for a throttle time in this response; if not, the broker has waited."""
    since = _THROTTLED_BY_CLIENT_SINCE.get(api_key)
    return api_key > _LAST_BEFORE_KIP_219 if since is None else version >= since


class Features(NamedTuple):
    """Finalized feature levels, ``(min, max)`` by name, of the newest epoch that any broker reported (KIP-584)."""

    epoch: int
    levels: Mapping[str, Range]


class BrokerVersions:
    """One broker's answer to the version check."""

    __slots__ = ("_chosen", "response")

    def __init__(self, response: ApiVersionsResponse) -> None:
        self.response = response
        self._chosen: dict[tuple[int, int, int], int] = {}

    @property
    def ranges(self) -> Mapping[int, Range]:
        """``(oldest, newest)`` version by API key."""
        return self.response.api_versions

    def choose(self, api_key: int, min_version: int, max_version: int) -> int:
        """The newest common version.

        Raises:
            UnsupportedVersionError: there is none; names both ranges.
        """
        asked = (api_key, min_version, max_version)
        version = self._chosen.get(asked)
        if version is None:
            version = self._chosen[asked] = choose(api_key, self.ranges, min_version, max_version)
        return version

    @property
    def max_produce_magic(self) -> int:
        """The newest record format that this broker takes; the current one if it takes no records (controllers)."""
        produce = self.ranges.get(ApiKey.PRODUCE)
        return CURRENT_MAGIC if produce is None or produce[1] >= 3 else max(0, produce[1] - 1)


class ApiVersions:
    """The brokers that are connected now."""

    def __init__(self) -> None:
        self._nodes: dict[int, BrokerVersions] = {}
        self.max_usable_produce_magic = CURRENT_MAGIC
        """The newest record format that every known broker takes: a batch may move to another leader."""
        self.features = Features(UNKNOWN_EPOCH, MappingProxyType({}))
        self.listener: Callable[[BrokerVersions], None] | None = None
        """Called with each answer to a version check, once the broker takes requests; must not raise."""

    def get(self, node_id: int) -> BrokerVersions | None:
        return self._nodes.get(node_id)

    def offering(self, *api_keys: int) -> list[int]:
        """The connected nodes that support all of these."""
        return [node_id for node_id, found in self._nodes.items() if all(key in found.ranges for key in api_keys)]

    def update(self, node_id: int, versions: BrokerVersions) -> None:
        self._nodes[node_id] = versions
        self._settle()
        response = versions.response
        if response.finalized_features_epoch > self.features.epoch:
            # A broker that lags behind does not undo a newer epoch.
            self.features = Features(response.finalized_features_epoch, response.finalized_features)
        if self.listener is not None:
            self.listener(versions)

    def remove(self, node_id: int) -> None:
        if self._nodes.pop(node_id, None) is not None:
            self._settle()

    def _settle(self) -> None:
        magics = [versions.max_produce_magic for versions in self._nodes.values()]
        self.max_usable_produce_magic = min(magics, default=CURRENT_MAGIC)
