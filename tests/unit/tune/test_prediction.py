"""What comes out of a simulation, as values and as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.errors import ConfigError
from forebay.tune import Costs, Stalls, predict
from forebay.tune.brokers import Brokers, Outage
from forebay.tune.goal import Goal
from forebay.tune.measures import CAUSES, POINTS
from forebay.tune.prediction import INTERVALS, Prediction, _outages
from forebay.tune.workload import Workload


@pytest.fixture(scope="module")
def plain() -> Prediction:
    return predict(Workload(rate=1000, topics={"orders": 4}), {"linger.ms": 5}, brokers=Brokers.alike(2), seconds=3)


def test_its_json_has_all_of_it_and_begins_with_the_version(plain: Prediction) -> None:
    found = json.loads(plain.as_json())
    assert list(found) == [field.name for field in dataclasses.fields(Prediction)]
    assert (next(iter(found)), found["version"]) == ("version", 1)
    assert found["latency"]["p99"] == plain.latency.p99
    assert len(found["pool"]["over_time"]) == POINTS


def test_its_figures_agree_with_each_other(plain: Prediction) -> None:
    assert plain.sent == plain.acknowledged + plain.lost
    assert plain.served
    assert sum(plain.causes.values()) == pytest.approx(1, abs=0.001)
    assert set(plain.causes) == set(CAUSES)
    assert plain.requests_s == pytest.approx(sum(node.requests_s for node in plain.nodes), abs=0.01)
    records_s = plain.requests_s * plain.batches_a_request * plain.records_a_batch
    assert records_s == pytest.approx(1000, rel=0.05)
    mean = sum(times.mean for times in plain.parts.values())
    assert mean == pytest.approx(plain.latency.mean, abs=0.01)
    assert sum(count for _bound, count in plain.distribution) == plain.acknowledged
    assert 0 < plain.nodes[0].busy < 0.1
    assert 0 < plain.cpu < 0.1


def test_quantiles_are_in_order(plain: Prediction) -> None:
    times = plain.latency
    assert times.p50 <= times.p90 <= times.p99 <= times.p999 <= times.longest


def test_a_goal_can_be_held_against_it(plain: Prediction) -> None:
    assert Goal(p99_ms=1000, lost=0).broken(plain.figures()) == []
    (broken,) = Goal(p99_ms=0.5, memory="1 GiB").broken(plain.figures())  # type: ignore[arg-type]
    assert broken.startswith("p99_ms is ")


def test_what_an_outage_did() -> None:
    brokers = Brokers.alike(1, [Outage(node=1, seconds=(2, 4)), Outage(node=1, seconds=(50, 60))])
    found = predict(Workload(rate=1000, sizes=1000), {"linger.ms": 5}, brokers=brokers, seconds=8)
    (outage,) = found.outages
    assert (outage.node, outage.kind, outage.seconds) == (1, "silent", (2, 4))
    assert 1_500_000 < outage.pool_peak <= found.pool.peak
    assert outage.recovery_s is not None
    assert outage.recovery_s < 1
    assert found.refused == found.lost == 0


@pytest.mark.parametrize(
    ("late", "recovery_s"),
    [
        ([], 0.0),
        (range(45, 50), 0.0),
        (range(40, 62), 2.0),
        ([*range(40, 62), 70], 11.0),
        ([*range(40, 62), 73], 2.0),
        ([*range(40, 62), 199], 2.0),
        (range(40, 200, 10), 131.0),
        ([*range(40, 200, 10), 199], None),
    ],
)
def test_what_is_late_long_after_an_outage_is_not_its(late: Iterable[int], recovery_s: float | None) -> None:
    slowest = [5.0] * POINTS
    for place in late:
        slowest[place] = 500.0
    run = SimpleNamespace(seconds=float(POINTS), slowest=slowest, pool=[0] * POINTS)
    (found,) = _outages(run, Brokers.alike(1, [Outage(node=1, seconds=(40, 60))]))  # type: ignore[arg-type]
    assert found.recovery_s == recovery_s


def test_the_recovery_from_an_outage_before_any_record_is_not_known() -> None:
    for begin, load in ((0, Workload(rate=1000)), (2, Workload(rate=((0, 0), (3, 1000))))):
        brokers = Brokers.alike(1, [Outage(node=1, seconds=(begin, 4))])
        found = predict(load, brokers=brokers, seconds=8)
        assert found.outages[0].recovery_s is None
        assert found.outages[0].pool_peak > 0


def test_an_outage_that_it_does_not_recover_from() -> None:
    brokers = Brokers.alike(1, [Outage(node=1, seconds=(2, 4))], bandwidth=1_100_000)
    found = predict(Workload(rate=1000, sizes=1000), brokers=brokers, seconds=8)
    assert found.outages[0].recovery_s is None


def test_a_load_that_is_not_served() -> None:
    lost = predict(Workload(rate=100, sizes=[100, 2_000_000]), seconds=2)
    assert (lost.served, lost.lost, set(lost.failed)) == (False, lost.sent // 2, {"MESSAGE_TOO_LARGE"})
    assert lost.refused == lost.lost
    memory: dict[str, Any] = {"buffer.memory": 1 << 20}
    held = predict(Workload(rate=1000, sizes=10_000), memory, brokers=Brokers.alike(1, bandwidth=1_000_000), seconds=3)
    assert (held.served, held.lost, held.backlog > 1000) == (False, 0, True)


def test_what_it_assumes(plain: Prediction) -> None:
    assert plain.assumptions[:2] == (
        "one connection of a producer is served one request at a time",
        "the machine of the producer never stalls",
    )


def test_why_it_is_to_be_trusted_less() -> None:
    load = Workload(rate=100, compression={"ratio": 0.3})
    doubts = " ".join(predict(load, seconds=1).doubts)
    assert "the times of the brokers and of the client's own work are guesses" in doubts
    assert "stalls of its machine are not known" in doubts
    assert "what compression leaves was given" in doubts
    assert "only 1 records took longer than the p99" in doubts or "only 0 records" in doubts
    assert "one seed was run, so no interval is known" in doubts
    stalls = Stalls(seconds=10.0)
    brokers = Brokers(measured=True)
    known = predict(Workload(rate=3000), brokers=brokers, seconds=1.1, costs=Costs(wake=0.1), stalls=stalls, seeds=2)
    assert known.doubts == ()


@pytest.mark.parametrize(
    ("fields", "broker", "stalls", "said"),
    [
        ({"rate": 3000, "sizes": 1000}, {"quota": 200_000}, (), "a quota holds records back"),
        ({"rate": 300, "producers": 8}, {"handlers": 1, "fixed_ms": 4}, (), "a broker of the fleet"),
        ({"rate": 300}, {}, (2.0,) * 101, "the machine stalls for long beside the p50"),
    ],
)
def test_where_figures_were_farther_off_it_is_told_first(
    fields: dict[str, Any], broker: dict[str, Any], stalls: tuple[float, ...], said: str
) -> None:
    known: dict[str, Any] = {"costs": Costs(wake=0.1), "seconds": 2}
    found = predict(
        Workload(**fields), brokers=Brokers.alike(1, **broker), stalls=Stalls(seconds=10.0, spread=stalls), **known
    )
    assert found.doubts[0].startswith(said)
    calm = predict(Workload(rate=300), brokers=Brokers.alike(1), stalls=Stalls(seconds=10.0), **known)
    assert not any(said in each for each in calm.doubts)


def test_intervals_over_seeds() -> None:
    load, settings = Workload(rate=300, sizes=[100, 900]), {"linger.ms": 5}
    found = predict(load, settings, seconds=1, seed=4, seeds=3)
    apart = [predict(load, settings, seconds=1, seed=seed) for seed in (4, 5, 6)]
    assert found.latency == apart[0].latency
    assert set(found.intervals) == set(INTERVALS)
    for name, figure in INTERVALS.items():
        values = [figure(each) for each in apart]
        assert found.intervals[name] == (min(values), max(values))
    assert found.intervals["p99_ms"][0] < found.intervals["p99_ms"][1]
    assert apart[0].intervals == {}
    assert predict(load, settings, seconds=1, seed=4, seeds=3).as_json() == found.as_json()
    assert json.loads(found.as_json())["intervals"]["fill"] == list(found.intervals["fill"])
    with pytest.raises(ConfigError, match="seeds is 0"):
        predict(load, seeds=0)
