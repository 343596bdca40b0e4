"""``broker.address.map`` as users write it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from forebay.config import ProducerConfig
from forebay.errors import ConfigError


def mapped(given: Any) -> Any:
    return ProducerConfig({"bootstrap.servers": "h:1", "broker.address.map": given})["broker.address.map"]


def test_pairs_and_all_others() -> None:
    found = mapped("Kafka-1:9092=localhost:19092, [::1]:9092=[::2]:1,*=gate:9")
    assert found("kafka-1", 9092) == ("localhost", 19092)
    assert found("::1", 9092) == ("::2", 1)
    assert found("kafka-1", 9093) == ("gate", 9)
    assert repr(found) == "kafka-1:9092=localhost:19092,[::1]:9092=[::2]:1,*=gate:9"
    assert mapped(["a:1=b:2"])("other", 3) == ("other", 3)
    assert mapped("") is None


def test_a_callable_is_kept() -> None:
    def move(host: str, port: int) -> tuple[str, int]:
        return host, port + 1

    assert mapped(move) is move


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("a:1", "advertised-host:port=real-host:port"),
        ("a:1=b:2=c:3", "advertised-host:port=real-host:port"),
        ("a=b:2", "port is missing"),
        ("a:1=b", "port is missing"),
        ("a:1=b:0", "1 to 65535"),
        ("a:1=b:2,A:1=c:3", "A:1 is there twice"),
        ("*=b:2,*=c:3", "* is there twice"),
        ([1], "advertised-host:port=real-host:port"),
        (7, "or a callable"),
    ],
)
def test_a_wrong_one(given: Any, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        mapped(given)
    assert "broker.address.map" in str(caught.value) and reason in str(caught.value)


def test_it_pickles() -> None:
    config = ProducerConfig({"bootstrap.servers": "h:1", "broker.address.map": "a:1=b:2"})
    again = pickle.loads(pickle.dumps(config))
    assert again["broker.address.map"] == config["broker.address.map"]
    assert hash(again["broker.address.map"]) == hash(config["broker.address.map"])
