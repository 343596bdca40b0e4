"""Splits at random limits, codecs, batch sizes and values: each record once, in order, with its own outcome."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fakes.produce import Answer
from tests.fakes.world import World
from tests.support.examples import examples

LIMIT = st.sampled_from([90, 130, 200, 400, 1000, 5000])
SIZES = st.lists(st.sampled_from([0, 1, 20, 60, 61, 64, 130, 400]), min_size=1, max_size=40)
# TOO_LARGE by mistake, NOT_LEADER (retriable), INVALID_REQUEST (lasting); 0 lets a batch through.
FAULTS = st.lists(st.sampled_from([0, 0, 10, 6, 42]), max_size=12)


@example(limit=90, sizes=[0, 0, 20], faults=[], codec="lz4", batch_size=100, linger=0, headers=False, idempotent=True)
@settings(max_examples=examples(120), deadline=None)
@given(
    limit=LIMIT,
    sizes=SIZES,
    faults=FAULTS,
    codec=st.sampled_from(["none", "lz4", "gzip", "zstd", "snappy"]),
    batch_size=st.sampled_from([0, 100, 300, 2000]),
    linger=st.sampled_from([0, 10]),
    headers=st.booleans(),
    idempotent=st.booleans(),
)
def test_each_record_once_in_order_with_its_own_outcome(
    limit: int, sizes: list[int], faults: list[int], headers: bool, idempotent: bool, **options: Any
) -> None:
    heard: list[int] = []
    in_order: dict[str, Any] = {} if idempotent else {"max_in_flight_requests_per_connection": 1}
    world = World(
        idempotent=idempotent,
        compression_type=options["codec"],
        batch_size=options["batch_size"],
        linger_ms=options["linger"],
        **in_order,
    )
    # A broker takes whatever sequence comes first, so it gets to know the producer before the faults.
    world.send(b"first")
    world.run(100)
    world.cluster.max_batch_size = limit
    world.cluster.fail("test", 0, *[Answer(code) for code in faults])
    values = [b"%d:" % number + bytes(number % 251 for number in range(size)) for number, size in enumerate(sizes)]
    futures = [
        world.send(
            value,
            headers=[("h", b"v")] if headers else None,
            timestamp=1000 + number,
            on_delivery=lambda report, number=number: heard.append(number),
        )
        for number, value in enumerate(values)
    ]
    world.until(lambda: all(future.done() for future in futures), limit_ms=30_000)
    records = world.cluster.logs["test", 0].records
    written = [number for number, future in enumerate(futures) if future.exception(0) is None]
    assert [record.value for record in records[1:]] == [values[number] for number in written]
    assert [futures[number].result(0).offset for number in written] == list(range(1, len(records)))
    assert [record.timestamp for record in records[1:]] == [1000 + number for number in written]
    assert all(record.headers == ((("h", b"v"),) if headers else ()) for record in records[1:])
    assert sorted(heard) == list(range(len(values)))
    assert world.pool.available() == world.pool.total and not world.accumulator.has_incomplete()
    if not faults:
        # What a broker never takes is told at once, perhaps before what was split and goes again.
        told = [number for number in heard if number in written]
        assert told == sorted(told)
