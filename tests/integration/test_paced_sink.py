"""Predictions beside a sink that takes its time as the model says: batches and requests are those of the real sender.

The sink shares the model of the broker, so this finds faults in the client's half alone.  Times are not looked at:
``python -m tests.truth`` measures them, on a quiet machine.
"""

from __future__ import annotations

from typing import Any

import pytest

from forebay._runtime.clock import SystemClock
from forebay.config import ProducerConfig
from forebay.producer import KafkaProducer
from forebay.tune import Broker, Brokers, Workload, checking, predict
from forebay.tune._sink import PARTITIONS, TOPIC
from tests.truth.sink import paced

pytestmark = pytest.mark.rest("three seconds for each load, more on a machine that stalls")

SECONDS = 3.0
ATTEMPTS = 4
"""A machine that stalls sends other batches."""
TOLERANCE = 0.1
BROKER = Broker(rtt_ms=1.0, fixed_ms=0.5, per_mib_ms=3.0)
SLOW = Broker(rtt_ms=1.0, fixed_ms=8.0)


@pytest.mark.parametrize(
    ("load", "settings", "broker"),
    [
        ({"rate": 1000, "sizes": 100}, {"linger.ms": 5}, BROKER),
        ({"rate": 2000, "sizes": 200}, {"linger.ms": 20}, BROKER),
        ({"rate": 2000, "sizes": 200, "keys": {"count": 10_000}}, {"linger.ms": 20}, BROKER),
        ({"rate": 120, "sizes": [5000, 12000]}, {}, BROKER),
        ({"rate": 1000, "sizes": 100}, {"linger.ms": 0}, SLOW),
    ],
    ids=["linger 5", "linger 20", "keys", "two sizes", "slow"],
)
def test_requests_and_fill_are_as_predicted(load: dict[str, Any], settings: dict[str, Any], broker: Broker) -> None:
    work = Workload.of({**load, "topics": {TOPIC: PARTITIONS}})
    predicted = predict(work, settings, brokers=Brokers((broker,)), seed=1, seconds=SECONDS)
    found: list[checking.Measured] = []
    with paced(broker) as address:
        real = ProducerConfig({**settings, "bootstrap.servers": address, "enable.metrics.push": False})
        with KafkaProducer(real) as producer:
            checking.warm_up(producer, TOPIC, PARTITIONS)
            for _ in range(ATTEMPTS):
                found.append(
                    checking.measure(
                        producer, work, TOPIC, seconds=SECONDS, seed=1, batch_size=real["batch.size"],
                        clock=SystemClock(),
                    )
                )  # fmt: skip
                if near(predicted.requests_s, found[-1].requests_s) and near(predicted.fill, found[-1].fill):
                    return
    shown = [(each.requests_s, each.fill, each.stalls) for each in found]
    pytest.fail(f"{predicted.requests_s} requests/s and fill {predicted.fill} were predicted: {shown}")


def near(predicted: float, measured: float) -> bool:
    """Whether the two differ by no more than the tolerance."""
    return abs(predicted - measured) <= TOLERANCE * measured
