"""What a cluster may be."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.errors import ConfigError
from forebay.tune.brokers import Broker, Brokers, Others, Outage


def test_nodes_alike_and_one_that_differs() -> None:
    found = Brokers.alike(3, rtt_ms=2).with_node(2, fixed_ms=9)
    assert [(node.rtt_ms, node.fixed_ms) for node in found.nodes] == [(2, 0.5), (2, 9), (2, 0.5)]


def test_one_node_that_is_slower_and_other_outages() -> None:
    outage = Outage(node=1, seconds=(1, 2))
    brokers = Brokers.alike(2, [outage], fixed_ms=2, per_mib_ms=3, replication_ms=8)
    slow = brokers.slowed(2, 2)
    assert [(node.fixed_ms, node.per_mib_ms, node.replication_ms) for node in slow.nodes] == [(2, 3, 8), (4, 6, 16)]
    assert slow.outages == (outage,)
    assert brokers.with_outages().outages == ()
    assert brokers.with_outages(outage) == brokers
    with pytest.raises(ConfigError, match="node is 3"):
        brokers.slowed(3, 2)


def test_the_time_of_a_request_grows_with_its_bytes() -> None:
    assert Broker(fixed_ms=0.5, per_mib_ms=4).service_ms(1 << 19) == 2.5


def test_the_end_of_the_last_outage() -> None:
    assert Brokers.alike(2, [Outage(node=1, seconds=(1, 9)), Outage(node=2, seconds=(3, 4))]).last_outage == 9
    assert Brokers().last_outage == 0


def test_others_as_a_file_gives_them() -> None:
    others: Any = {"rate": 50, "size": 1000}
    assert Broker(others=others).others == Others(rate=50, size=1000)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Broker(rtt_ms=-1), "rtt_ms is -1; it must be a number from 0"),
        (lambda: Broker(handlers=0), "handlers is 0"),
        (lambda: Broker(bandwidth=0), "bandwidth is 0; it must be a number above 0"),
        (lambda: Broker(others={"rat": 1}), "did you mean 'rate'?"),  # type: ignore[arg-type]
        (lambda: Brokers(()), "nodes is 0; it must be at least 1"),
        (lambda: Brokers.alike(2).with_node(3), "node is 3; it must be a whole number from 1 to 2"),
        (lambda: Brokers.alike(2).with_node(1, rtt=3), "one of rtt_ms"),
        (lambda: Outage(node=1, seconds=(5, 5)), "outage seconds, to is 5"),
        (lambda: Outage(node=1, seconds=5), "a list of two numbers"),  # type: ignore[arg-type]
        (lambda: Outage(node=1, seconds=(1, 2), kind="gone"), "one of silent, refused, not_leader"),
        (lambda: Brokers.alike(1, [Outage(node=2, seconds=(1, 2))]), "outage node is 2"),
        (lambda: Brokers.alike(1, [Outage(node=1, seconds=(1, 2), kind="not_leader")]), "silent or refused"),
        (
            lambda: Brokers.alike(1, [Outage(node=1, seconds=(1, 5)), Outage(node=1, seconds=(3, 9))]),
            "outage seconds is [3.0, 9.0]; it must be apart from the node's other outage, [1.0, 5.0]",
        ),
        (
            lambda: Brokers.alike(1, [Outage(node=1, seconds=(20, 50)), Outage(node=1, seconds=(20, 30))]),
            "outage seconds is [20.0, 50.0]; it must be apart from the node's other outage, [20.0, 30.0]",
        ),
        (lambda: Brokers.alike(1, [Outage(node=1, seconds=(1, 2))] * 2), "apart from the node's other outage"),
    ],
)
def test_what_is_refused_and_how(make: Any, said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        make()
    assert said in refusal.value.message


def test_outages_of_one_node_may_follow_each_other_and_of_two_be_at_once() -> None:
    outages = [Outage(node=1, seconds=(20, 30)), Outage(node=1, seconds=(10, 20)), Outage(node=2, seconds=(15, 25))]
    assert Brokers.alike(2, outages).outages == tuple(outages)
