from __future__ import annotations

import pytest

from forebay._network.broker_versions import ApiVersions, BrokerVersions, client_throttles
from forebay._protocol.api_versions import ApiVersionsResponse
from forebay._protocol.versions import ApiKey
from forebay.errors import UnsupportedVersionError


def broker(produce: tuple[int, int] | None = (0, 12), epoch: int = -1, **levels: tuple[int, int]) -> BrokerVersions:
    ranges = {} if produce is None else {int(ApiKey.PRODUCE): produce}
    return BrokerVersions(ApiVersionsResponse(0, ranges, finalized_features_epoch=epoch, finalized_features=levels))


def test_max_usable_produce_magic() -> None:
    """M ApiVersionsTest testMaxUsableProduceMagic: the least of all brokers; those without Produce do not count."""
    known = ApiVersions()
    assert known.max_usable_produce_magic == 2
    known.update(0, broker())
    assert known.max_usable_produce_magic == 2
    known.update(1, broker((0, 2)))
    assert known.max_usable_produce_magic == 1
    known.update(2, broker(None))
    assert known.max_usable_produce_magic == 1
    known.remove(1)
    assert known.max_usable_produce_magic == 2


@pytest.mark.parametrize(("newest", "magic"), [(0, 0), (1, 0), (2, 1), (3, 2), (12, 2)])
def test_magic_of_one_broker(newest: int, magic: int) -> None:
    assert broker((0, newest)).max_produce_magic == magic


def test_finalized_features_update() -> None:
    """M ApiVersionsTest testFinalizedFeaturesUpdate: a lower or older epoch takes nothing back."""
    known = ApiVersions()
    known.update(1, broker(epoch=-1))
    assert (known.features.epoch, known.features.levels) == (-1, {})
    known.update(1, broker(epoch=1, **{"transaction.version": (0, 2)}))
    assert known.features.levels == {"transaction.version": (0, 2)}
    known.update(2, broker(epoch=0, **{"transaction.version": (0, 1)}))
    known.update(3, broker(epoch=-1))
    assert (known.features.epoch, known.features.levels) == (1, {"transaction.version": (0, 2)})


@pytest.mark.parametrize(("ours", "chosen"), [((0, 1), 1), ((1, 2), 2), ((2, 3), 3), ((3, 4), 3)])
def test_latest_usable_version(ours: tuple[int, int], chosen: int) -> None:
    """M NodeApiVersionsTest testLatestUsableVersion: node has 1 to 3."""
    assert broker((1, 3)).choose(ApiKey.PRODUCE, *ours) == chosen


@pytest.mark.parametrize("ours", [(4, 5), (0, 0)])
def test_latest_usable_version_out_of_range(ours: tuple[int, int]) -> None:
    """M NodeApiVersionsTest testLatestUsableVersionOutOfRangeLow, High: refused, twice alike."""
    node = broker((1, 3))
    for _ in range(2):
        with pytest.raises(UnsupportedVersionError, match="Produce versions 1 to 3 only"):
            node.choose(ApiKey.PRODUCE, *ours)


def test_api_the_broker_does_not_have() -> None:
    with pytest.raises(UnsupportedVersionError, match="does not support InitProducerId"):
        broker().choose(ApiKey.INIT_PRODUCER_ID, 0, 4)


@pytest.mark.parametrize(
    ("api_key", "version", "ours"),
    [
        (0, 5, False),
        (0, 6, True),
        (3, 5, False),
        (3, 6, True),
        (22, 0, False),
        (22, 1, True),
        (71, 0, True),
        (36, 2, False),
    ],
)
def test_who_throttles(api_key: int, version: int, ours: bool) -> None:
    assert client_throttles(api_key, version) is ours


def test_who_offers_apis_and_who_hears_of_it() -> None:
    known = ApiVersions()
    heard: list[BrokerVersions] = []
    known.listener = heard.append
    modern = BrokerVersions(ApiVersionsResponse(0, {71: (0, 0), 72: (0, 0)}, finalized_features_epoch=-1))
    first, second = broker(), broker((0, 13))
    for node_id, versions in ((0, first), (1, modern), (2, second)):
        known.update(node_id, versions)
    assert heard == [first, modern, second]
    assert (known.offering(71, 72), known.offering(0), known.offering(0, 71)) == ([1], [0, 2], [])
    known.remove(1)
    assert known.offering(71) == []
