"""predict: the face of the simulation."""

from __future__ import annotations

from typing import Any

import pytest

from forebay import tune
from forebay.errors import ConfigError
from forebay.tune import Brokers, Costs, Outage, Stream, Workload, predict, span


def test_the_same_seed_gives_the_same_json_and_another_one_does_not() -> None:
    load = Workload(rate=500, sizes={100: 1, 1000: 1}, keys={"count": 100, "zipf": 1.0})
    brokers = Brokers.alike(3, jitter=0.5)
    first, again, other = (predict(load, brokers=brokers, seed=seed, seconds=2).as_json() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_settings_change_what_comes_out_and_not_what_comes() -> None:
    load = Workload(rate=1000)
    short, long = (predict(load, {"linger.ms": ms}, seconds=3) for ms in (1, 50))
    assert short.sent == long.sent
    assert short.latency.p50 < 10 < long.latency.p50
    assert short.requests_s > 5 * long.requests_s


def test_settings_by_either_name_and_as_text() -> None:
    load = Workload(rate=100)
    assert predict(load, {"linger_ms": "20"}, seconds=1).latency == predict(load, {"linger.ms": 20}, seconds=1).latency


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"settings": {"linger.sm": 5}}, "did you mean 'linger.ms'"),
        ({"settings": {"transactional.id": "x"}}, "transactions are not simulated"),
        ({"seconds": 0}, "seconds is 0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_what_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        predict(**{"load": Workload(rate=1), **given})
    assert said in refusal.value.message


def test_how_long_a_load_is_simulated() -> None:
    assert span(Workload(rate=1000), Brokers()) == 10
    assert span(Workload(rate=1_000_000), Brokers()) == 1
    assert span(Workload(rate=100_000), Brokers()) == 5
    assert span(Workload(rate=100), Brokers.alike(1, [Outage(node=1, seconds=(20, 50))])) == 65
    assert span(Workload(rate=[[0, 1], [100, 2]]), Brokers()) == 125
    assert span(Workload(rate=1000, batch_rows=20_000), Brokers()) == 400
    assert span(Workload(rate=0.001), Brokers()) == 20_000


def test_costs_are_the_callers() -> None:
    slow, quick = (predict(Workload(rate=100), costs=costs, seconds=2) for costs in (Costs(wake=3), Costs()))
    assert slow.latency.p50 > quick.latency.p50 + 2


def test_a_producer_cannot_be_looked_into(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("FOREBAY_DESCRIBE_SOCKET", str(tmp_path))
    seen: list[str] = []
    monkeypatch.setattr("forebay._assembly.parts.socket_of", lambda *given: seen.append("made"))
    assert predict(Workload(rate=100), seconds=1).sent > 50
    assert seen == []


def test_the_names_of_the_package() -> None:
    assert set(tune.__all__) <= set(dir(tune))
    assert tune.Stream is Stream
