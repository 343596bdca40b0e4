"""Simulations of random loads, clusters and settings: none hangs, no time is negative, and no record is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import forebay
from forebay.tune import Brokers, Costs, Outage, Stalls, Workload
from forebay.tune._world.world import World
from forebay.tune.measures import Histogram
from tests.property.profile import seeded
from tests.support.pace import HANG_S

ROOT = Path(__file__).parents[2]
SIZES = st.one_of(
    st.integers(0, 3000),
    st.lists(st.sampled_from([0, 1, 100, 5000, 12_000, 40_000]), min_size=1, max_size=4),
    st.fixed_dictionaries({"median": st.integers(1, 2000), "sigma": st.floats(0, 2), "most": st.just(100_000)}),
)
LOADS = st.fixed_dictionaries(
    {"rate": st.one_of(st.floats(1, 1000), st.just([[0, 10], [0.3, 2000], [0.6, 0]])), "sizes": SIZES},
    optional={
        "arrivals": st.sampled_from(["poisson", "regular"]),
        "burst": st.just({"on_ms": 50, "off_ms": 150}),
        "keys": st.fixed_dictionaries({"count": st.integers(1, 50), "zipf": st.floats(0, 2)}),
        "threads": st.integers(1, 4),
        "topics": st.sampled_from([{"a": 1}, {"a": 7}, {"a": 2, "b": 3}]),
        "producers": st.integers(1, 3),
        "compression": st.just({"ratio": 0.3}),
    },
)
SETTINGS = st.fixed_dictionaries(
    {
        "linger.ms": st.sampled_from([0, 1, 5, 50]),
        "batch.size": st.sampled_from([1, 1000, 16_384, 17_200]),
        "max.in.flight.requests.per.connection": st.integers(1, 5),
        "buffer.memory": st.sampled_from([150_000, 1 << 20, 1 << 25]),
        "max.block.ms": st.sampled_from([0, 50, 1000]),
    },
    optional={
        "acks": st.sampled_from(["all", "1", "0"]),
        "max.request.size": st.just(50_000),
        "buffer.memory.max.node.share": st.just(0.5),
        "max.sparse.batches.in.flight": st.just(1),
    },
)
NODES = st.fixed_dictionaries(
    {"rtt_ms": st.sampled_from([0, 0.3, 20]), "fixed_ms": st.sampled_from([0, 0.5, 8]), "per_mib_ms": st.just(3)},
    optional={
        "bandwidth": st.sampled_from([200_000, 10_000_000]),
        "handlers": st.just(1),
        "jitter": st.just(1.0),
        "replication_ms": st.just(3),
        "quota": st.just(300_000),
        "others": st.just({"rate": 300}),
    },
)
OUTAGES = st.lists(
    st.builds(
        lambda begin, length, kind: Outage(node=1, seconds=(begin, begin + length), kind=kind),
        st.floats(0, 0.9),
        st.floats(0.01, 3),
        st.sampled_from(["silent", "refused", "not_leader"]),
    ),
    max_size=1,
)


def settings_of(given: dict[str, Any], load: Workload) -> dict[str, Any]:
    """With what a random choice makes necessary."""
    if "buffer.memory.max.node.share" in given:
        given = {**given, "max.request.size": 50_000}
    found = {"delivery.timeout.ms": 3000, "request.timeout.ms": 1000, **given}
    if found.get("acks", "all") != "all":
        found["enable.idempotence"] = False
    if load.compression is not None:
        found["compression.type"] = "lz4"
    return found


def times_of(found: Any) -> list[Histogram]:
    return [getattr(found, name) for name in ("from_due", "from_call", "held", "closing", "waiting", "flight")]


BUSY = Stalls(seconds=1.0, long=((10.0, 0.6), (200.0, 30.0), (500.0, 250.0)), spread=(*[0.1] * 90, *[0.3] * 11))
MACHINES = st.tuples(st.sampled_from([None, BUSY]), st.sampled_from([Costs(), Costs(switch=5.0)]))


@given(
    load=LOADS,
    settings=SETTINGS,
    node=NODES,
    outages=OUTAGES,
    nodes=st.integers(2, 3),
    machine=MACHINES,
    seed=st.integers(0, 99),
)
@seeded(120)
def test_every_record_has_an_outcome_and_every_time_can_be(
    load: dict[str, Any],
    settings: dict[str, Any],
    node: dict[str, Any],
    outages: list[Outage],
    nodes: int,
    machine: tuple[Stalls | None, Costs],
    seed: int,
) -> None:
    wanted, (stalls, costs) = Workload(**load), machine
    brokers = Brokers.alike(nodes, outages, **node)
    world = World(wanted, brokers, settings_of(settings, wanted), costs=costs, seed=seed, stalls=stalls)
    found = world.run(1.0)
    assert found.sent == found.acknowledged + sum(found.failed.values())
    assert all(histogram.quantile(0) >= 0 for histogram in times_of(found))
    assert len(found.from_due) == len(found.from_call) == len(found.closing) == found.acknowledged
    assert min(found.holds, default=0) >= 0
    for producer in world.producers:
        pool = producer.parts.accumulator.pool
        assert pool.available() == pool.total
        assert not producer.parts.accumulator.has_incomplete()
    world.close()


PROGRAM = """
from forebay.tune import Brokers, Costs, Outage, Stalls, Workload, predict
brokers = Brokers.alike(3, [Outage(node=2, seconds=(0.5, 1.5), kind="not_leader")], jitter=0.7)
load = Workload(rate=2000, sizes=[100, 5000], keys={"count": 100, "zipf": 1.0})
machine = {"costs": Costs(switch=1.0), "stalls": Stalls(seconds=1.0, long=((1.0, 30.0), (9.0, 2.0)), spread=(0.1, 0.4))}
print(predict(load, {"buffer.memory": 2_000_000}, brokers=brokers, seconds=3, seeds=2, **machine).as_json())
"""


def said(**environment: str) -> str:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    return done.stdout


@pytest.mark.skipif(
    forebay.implementation != "compiled", reason="compares the compiled form, and starts the interpreted one itself"
)
def test_both_forms_predict_the_same_whatever_the_order_of_sets() -> None:
    compiled = said(PYTHONHASHSEED="1")
    assert json.loads(compiled)["acknowledged"] > 5000
    assert said(PYTHONHASHSEED="2") == compiled
    assert said(FOREBAY_INTERPRETED="1", PYTHONHASHSEED="3") == compiled
