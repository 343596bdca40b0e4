"""Batches that grow, for brokers with the record formats before 0.11: each record once, in order, as it was sent."""

from __future__ import annotations

from struct import pack
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from forebay._records.reader import read_batches
from tests.fakes.broker import PRODUCE, Received
from tests.fakes.world import World
from tests.property.profile import seeded

FIRST_THROTTLED, FIRST_DATED = 1, 2
"""Versions of Produce: answers have a throttle time, and the time of the log."""


@example(version=0, sizes=[0, 200], codec="none", batch_size=2000, refused=[])
@example(version=2, sizes=[0, 200, 3000, 0], codec="gzip", batch_size=2000, refused=[0])
@seeded(60)
@given(
    version=st.integers(0, 2),
    sizes=st.lists(st.sampled_from([0, 20, 120, 200, 500, 3000]), min_size=1, max_size=30),
    codec=st.sampled_from(["none", "gzip", "snappy", "lz4"]),
    batch_size=st.sampled_from([0, 300, 2000, 16384]),
    refused=st.lists(st.integers(0, 5), max_size=3),
)
def test_each_record_once_in_order(
    version: int, sizes: list[int], codec: str, batch_size: int, refused: list[int]
) -> None:
    """``refused`` are the requests that the broker answers with NOT_LEADER, so that a grown batch is read twice."""
    world = World(
        known=False,
        compression_type=codec,
        batch_size=batch_size,
        linger_ms=10,
        max_in_flight_requests_per_connection=1,
    )
    broker = world.cluster.brokers[0]
    broker.ranges[PRODUCE] = (0, version)
    log: list[Any] = []
    requests = iter(range(1_000_000))

    def answer(request: Received) -> None:
        assert request.version == version
        # acks, timeout, one topic "test", one partition 0, the message set
        found = [record for batch in read_batches(request.payload[28:]) for record in batch.records]
        code, offset = (6, -1) if next(requests) in refused else (0, len(log))
        if code == 0:
            log.extend(found)
        body = pack(">ih4siihq", 1, 4, b"test", 1, 0, code, offset)
        body += pack(">q", -1) if version >= FIRST_DATED else b""
        body += pack(">i", 0) if version >= FIRST_THROTTLED else b""
        request.answer_bytes(body)

    broker.script[PRODUCE] = answer
    world.learn("test")
    values = [b"%d:" % number + bytes(size) for number, size in enumerate(sizes)]
    futures = [world.send(value, timestamp=1000 + number) for number, value in enumerate(values)]
    (open_batch, *_) = world.queue().batches
    if (batch_size, sizes) == (2000, [0, 200]):
        assert open_batch.records.buffers[0].size > 128, "it did not grow"
    world.until(lambda: all(future.done() for future in futures), limit_ms=30_000)
    assert [future.result(0).offset for future in futures] == list(range(len(values)))
    assert [record.value for record in log] == values
    if version >= FIRST_DATED:
        assert [record.timestamp for record in log] == [1000 + number for number in range(len(values))]
    assert world.pool.available() == world.pool.total and not world.accumulator.has_incomplete()
