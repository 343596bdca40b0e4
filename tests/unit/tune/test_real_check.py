"""A check as a call: what it refuses before anything is sent, and what comes out of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forebay.config import ProducerConfig
from forebay.errors import ConfigError
from forebay.tune import Brokers, Checked, Outage, TuneError, Workload, check, checking, predict, real_check
from forebay.tune.checking import Measured
from tests.unit.tune.test_checking import overslept

LOAD = Workload(rate=100, topics={"orders": 3})
SETTINGS = {"bootstrap.servers": "host:9092", "linger.ms": 20}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a producer is told that sends nothing; it measures what is predicted of linger.ms 5."""
    made: list[Any] = []

    class Producer:
        def __init__(self, config: ProducerConfig) -> None:
            made.append(config)

        def __enter__(self) -> Producer:
            return self

        def __exit__(self, *_: object) -> None:
            made.append("closed")

    def measure(producer: Any, load: Workload, topic: str, **more: Any) -> Measured:
        made.append((load.topics, topic, more["seconds"]))
        found = predict(load, {"linger.ms": 5}, brokers=Brokers.alike(2), seconds=more["seconds"], seed=more["seed"])
        times, stalls = found.latency, overslept(0.1, 0.2, 1.0)
        return Measured(times.p50, times.p99, found.requests_s, found.fill, 0.0, found.sent, 0, stalls)

    monkeypatch.setattr(real_check, "KafkaProducer", Producer)
    monkeypatch.setattr(checking, "scratch", lambda config, topic: (3, 2))
    monkeypatch.setattr(checking, "warm_up", lambda producer, topic, partitions: made.append(("warm", partitions)))
    monkeypatch.setattr(checking, "measure", measure)
    return made


def test_figures_that_are_kept_and_that_are_not(sent: list[Any]) -> None:
    brokers = Brokers.alike(2, [Outage(node=1, seconds=(0.1, 0.5))])
    found = check(LOAD, {**SETTINGS, "linger.ms": 5}, "real", brokers=brokers, seconds=2.0)
    assert isinstance(found, Checked) and found.kept and found.predicted.outages == ()
    assert [row.name for row in found.rows][:2] == ["p50, ms", "p99, ms"]
    config, warm, load, closed = sent
    assert config["enable.metrics.push"] is False
    assert (warm, load, closed) == (("warm", 3), ((("real", 3),), "real", 2.0), "closed")
    other = check(LOAD, SETTINGS, "real", brokers=brokers, seconds=2.0)
    assert not other.kept and "outside" in other.as_text()


def test_the_json_has_the_rows_with_their_verdicts(sent: list[Any]) -> None:
    found = check(LOAD, SETTINGS, "real", brokers=Brokers.alike(2), seconds=1.0, seed=4)
    values = json.loads(found.as_json())
    assert (values["version"], values["kept"], values["seed"], values["seconds"]) == (1, False, 4, 1.0)
    assert [row["kept"] for row in values["rows"]] == [row.kept for row in found.rows]
    assert values["predicted"]["latency"]["p50"] == found.predicted.latency.p50
    assert values["measured"]["stalls"]["spread"][99] == 0.2 and sent


@pytest.mark.parametrize(
    ("load", "settings", "more", "said"),
    [
        (LOAD, {"compression.type": "zstd"}, {}, "a check sends no compressed batches"),
        (LOAD, {"transactional.id": "t"}, {}, "transactions are not simulated"),
        (LOAD, {"lingers.ms": 5}, {}, "Unknown option"),
        (LOAD, {}, {"brokers": Brokers()}, "the cluster is said to have 1 node; 2 lead partitions of real"),
        (Workload(rate=1, topics={"orders": 4}), {}, {}, "topic real has 3 partitions"),
        (LOAD, {}, {"seconds": 0}, "seconds"),
        (LOAD, {}, {"seed": -1}, "seed"),
    ],
)
def test_what_cannot_be_checked_is_refused_before_anything_is_sent(
    sent: list[Any], load: Workload, settings: dict[str, Any], more: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        check(load, {**SETTINGS, **settings}, "real", **{"brokers": Brokers.alike(2), "seconds": 1.0, **more})
    assert sent == []


def test_where_nobody_answers_nothing_is_sent() -> None:
    with pytest.raises(TuneError, match="did not answer within 0.05 s"):
        check(LOAD, {"bootstrap.servers": "localhost:1", "max.block.ms": 50}, "real")
