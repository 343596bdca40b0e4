"""A request to a node: batches, bytes, time, most records; and what no load, cost or setting may be."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from forebay._closed_forms.node import MIB, NodeCost, NodeLoad, NodeRequests, Settings
from forebay.errors import IllegalArgumentError

SIZES = ((100.0, 0.5), (300.0, 0.5))
COST = NodeCost(rtt_ms=2.0, fixed_ms=1.0, per_mib_ms=10.0, bandwidth=1e6)


def test_means_of_sizes() -> None:
    load = NodeLoad(10, ((100.0, 1.0), (300.0, 3.0)))
    assert load.size == 250
    assert load.size_variance == pytest.approx(7500)


def test_time_of_a_request() -> None:
    assert COST.service(MIB) == 11
    assert COST.wire(5000) == 5
    node = NodeRequests(NodeLoad(1000, ((100.0, 1.0),)), COST, Settings(), 1000)
    assert node.size(10) == 1061
    assert node.turnaround(10) == pytest.approx(2 + 1.061 + COST.service(1061))
    assert node.slowest(10) == pytest.approx(1.061)


def test_most_records_of_a_request() -> None:
    settings = Settings(batch_size=16384)
    one = NodeRequests(NodeLoad(1000, ((1000.0, 1.0),)), COST, settings, 1000)
    assert one.most_records == 16
    keyed = NodeRequests(NodeLoad(1000, ((1000.0, 1.0),), (3.0, 1.0)), COST, settings, 0)
    assert keyed.most_records == pytest.approx(16 / 0.75)
    many = NodeRequests(NodeLoad(1000, ((1000.0, 1.0),), (1.0,) * 1000), COST, settings, 0)
    assert many.most_records == pytest.approx(MIB / 1000)


def test_the_sticky_partition_visits_a_node() -> None:
    node = NodeRequests(NodeLoad(250, SIZES), COST, Settings(), 1000)
    assert (node.visits, node.fill_rate) == (0.25, 1.0)
    assert NodeRequests(NodeLoad(250, SIZES, (1.0,)), COST, Settings(), 1000).visits == 1.0


def test_a_connection_that_is_never_idle() -> None:
    cost = NodeCost(1.0, 2.0, per_mib_ms=MIB / 200)
    node = NodeRequests(NodeLoad(1000, ((100.0, 1.0),), (1.0,) * 50), cost, Settings(), 0)
    assert node.saturated_gap() == pytest.approx((2 + 61 / 200) / (1 - 0.5), rel=0.01)
    assert node.capacity() < 2.0


def test_records_larger_than_a_batch() -> None:
    node = NodeRequests(NodeLoad(10, ((1000.0, 0.5), (30_000.0, 0.5))), COST, Settings(batch_size=16384), 10)
    assert node.oversize == pytest.approx((30_000 + 61 - 16384) / 2)


def test_requests_of_many_records_vary() -> None:
    node = NodeRequests(NodeLoad(1000, ((100.0, 1.0),)), COST, Settings(), 1000)
    assert node.service_variance(1, 1.0) == 0
    assert node.service_variance(50, 1.0) > node.service_variance(50, 0.0)
    assert node.gathered(10) == 1
    assert node.gathered(400) > 400 / node.packing.mean


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: NodeLoad(-1, SIZES), "rate must be a number of at least 0, got -1"),
    (lambda: NodeLoad(math.nan, SIZES), "rate must be a number of at least 0, got nan"),
    (lambda: NodeLoad(1, ()), "sizes must name at least one size"),
    (lambda: NodeLoad(1, ((0.0, 1.0),)), "a size must be a number of at least 1, got 0.0"),
    (lambda: NodeLoad(1, ((5.0, -1.0),)), "the share of size 5.0 must be a number of at least 0"),
    (lambda: NodeLoad(1, ((5.0, 0.0),)), "shares of sizes must add up to more than 0"),
    (lambda: NodeLoad(1, SIZES, ()), "partition_shares must add up to more than 0"),
    (lambda: NodeLoad(1, SIZES, partitions=0), "partitions must be"),
    (lambda: NodeCost(-1, 1), "rtt_ms must be"),
    (lambda: NodeCost(1, 1, bandwidth=0), "bandwidth must be"),
    (lambda: NodeCost(1, 1, handlers=0), "handlers must be"),
    (lambda: Settings(-1), "linger_ms must be"),
    (lambda: Settings(in_flight=0), "in_flight must be"),
    (lambda: Settings(compression_ratio=0), "compression_ratio must be"),
]


@pytest.mark.parametrize(("make", "said"), WRONG)
def test_what_is_no_load_or_setting_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(IllegalArgumentError, match=said):
        make()
