"""Whatever a producer's metrics say, ``advise`` answers, and proposes only settings that a producer takes."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from forebay._closed_forms.node import Settings
from forebay._insight.advising import Seen, advice_of
from forebay.config import ProducerConfig

NUMBERS = st.one_of(st.just(0.0), st.floats(1e-6, 1e9))
TIMES = st.one_of(st.just(0.0), st.floats(1e-3, 1e5))
SEEN = st.builds(
    Seen,
    records=NUMBERS,
    rate=NUMBERS,
    record_size=st.one_of(st.just(0.0), st.floats(1, 2e6)),
    batch_size=st.one_of(st.just(0.0), st.floats(1, 2e6)),
    ratio=st.floats(0.01, 2),
    records_request=st.one_of(st.just(0.0), st.floats(1, 1e5)),
    queue_ms=TIMES,
    answer_ms=TIMES,
    nodes=st.lists(st.tuples(st.floats(1e-3, 1e9), TIMES), max_size=100).map(tuple),
    partitions=st.integers(0, 10_000),
    memory=st.integers(1, 1 << 40),
    available=st.integers(-(1 << 20), 1 << 40),
    waits=st.floats(0, 10),
    throttled_ms=TIMES,
    failed=NUMBERS,
)
SETTINGS = st.builds(
    Settings,
    linger_ms=st.integers(0, 1000).map(float),
    batch_size=st.sampled_from((1, 100, 16_384, 1 << 20)),
    in_flight=st.integers(1, 5),
    compression_ratio=st.floats(0.01, 1),
    buffer_memory=st.sampled_from((1 << 15, 1 << 25)),
    max_request_size=st.sampled_from((1 << 16, 1 << 20)),
    request_timeout_ms=st.just(30_000.0),
    delivery_timeout_ms=st.sampled_from((31_000.0, 31_010.0, 120_000.0)),
)


@given(SEEN, SETTINGS, st.one_of(st.none(), st.floats(1e-3, 1e6)))
def test_every_answer_is_one(seen: Seen, settings: Settings, p99_ms: float | None) -> None:
    found = advice_of(seen, settings, p99_ms)
    assert (found.verdict == "change") == bool(found.settings)
    assert found.reasons
    assert len(str(found).splitlines()) < 25
    today = {
        "linger.ms": int(settings.linger_ms),
        "batch.size": settings.batch_size,
        "buffer.memory": settings.buffer_memory,
        "max.request.size": settings.max_request_size,
        "delivery.timeout.ms": int(settings.delivery_timeout_ms),
    }
    ProducerConfig({"bootstrap.servers": "localhost:9092", **today, **found.settings})
    assert int(found.settings.get("batch.size", settings.batch_size)) >= settings.batch_size
    for each in found.estimated.values():
        assert each.p50_ms >= 0 and each.requests > 0 and not math.isnan(each.p99_ms)
