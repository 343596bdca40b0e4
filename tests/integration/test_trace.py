"""record_trace against the embedded broker: what is sent stands in the trace, and a prediction replays all of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from forebay import AsyncKafkaProducer, KafkaProducer
from forebay.errors import IllegalStateError
from forebay.testing import EmbeddedBroker
from forebay.tune import Trace, predict
from tests.support.pace import PROGRAM_S, until

SECONDS = 2.0
CODE = """
import sys
from forebay import KafkaProducer
with KafkaProducer(bootstrap_servers=sys.argv[1]) as producer:
    for number in range(50):
        producer.send("traced", b"v", key=b"%d" % number)
"""


def send_for(producer: KafkaProducer, seconds: float) -> list[int]:
    """Sends without a pause for so long; the sizes of the values."""
    sizes: list[int] = []
    clock = producer._parts.clock
    end = clock.now() + 1000 * seconds
    while clock.now() < end:
        size = 50 + len(sizes) % 100
        key = None if len(sizes) % 2 else b"key %d" % (len(sizes) % 30)
        producer.send("traced", bytes(size), key=key)
        sizes.append(size)
        if len(sizes) % 50 == 0:
            producer.flush()
    return sizes


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_what_was_sent_is_replayed(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "a.trace"
    config: dict[str, Any] = {"linger_ms": 5, "compression_type": codec}
    with EmbeddedBroker() as broker:
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **config) as producer:
            producer.partitions_for("traced")
            producer.record_trace(path, seconds=600)
            with pytest.raises(IllegalStateError, match="being recorded already"):
                producer.record_trace(tmp_path / "b.trace", seconds=1)
            sizes = send_for(producer, SECONDS)
        with pytest.raises(IllegalStateError):
            producer.record_trace(path, seconds=1)
        until(path.exists, "the trace is written")
    found = Trace.open(path)
    assert found.left_out == 0 and found.head["failure"] is None
    assert len(found.arrivals.times) == len(sizes) == found.head["records"]
    assert 0 < found.head["metrics"]["end"]["record-send-total"] <= len(sizes)
    assert sorted(found.arrivals.values) == sorted(sizes)
    assert sum(1 for key in found.arrivals.keys if key < 0) == len(sizes) // 2
    assert found.seconds == pytest.approx(SECONDS, rel=0.2)
    said = predict(found)
    assert said.sent == said.acknowledged == len(sizes)
    assert said.settings["linger.ms"] == 5


def test_the_asynchronous_producer_has_the_same_call(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"

    async def send(servers: str) -> None:
        async with AsyncKafkaProducer(bootstrap_servers=servers) as producer:
            producer.record_trace(str(path), seconds=60, share=1.0)
            await producer.send_and_wait("traced", b"v" * 7)

    with EmbeddedBroker() as broker:
        asyncio.run(send(broker.bootstrap_servers))
        until(path.exists, "the trace is written")
    assert list(Trace.open(path).arrivals.values) == [7]


def test_the_environment_asks_for_a_trace_and_the_exit_waits_for_it(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        subprocess.run(
            [sys.executable, "-c", CODE, broker.bootstrap_servers],
            check=True,
            timeout=PROGRAM_S,
            env={**os.environ, "FOREBAY_TRACE": f"{tmp_path / 'a.trace'}:60"},
        )
    assert len(Trace.open(tmp_path / "a.trace").arrivals.times) == 50
