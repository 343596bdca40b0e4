"""Writes of DataFrames: what their tasks ask of the brokers, and what others notice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forebay.errors import ConfigError
from forebay.tune import Brokers, SparkTable, spark, spark_write
from forebay.tune.spark_table import SparkWrite

FAST = Brokers.alike(3, rtt_ms=1, fixed_ms=0.5, per_mib_ms=3)
SLOW = Brokers.alike(3, rtt_ms=1, fixed_ms=8, per_mib_ms=30)


@pytest.fixture(scope="module")
def nightly() -> SparkWrite:
    """2 GB in 32,000 requests: with batches of 16 KiB that do not linger, and requests of 64 KiB."""
    table = SparkTable(
        rows=2_000_000,
        row_bytes=1000,
        tasks=160,
        splits=320,
        executors=20,
        partitions=60,
        keyed=True,
        options={"batch.size": "16384", "linger.ms": "0", "max.request.size": "65536"},
    )
    return spark_write(table, brokers=SLOW)


def test_a_nightly_load_makes_others_wait(nightly: SparkWrite) -> None:
    present = nightly.present
    assert 30_000 < present.requests < 40_000
    assert max(present.busy) > 0.95
    assert nightly.before_ms[1] < 30
    assert present.others_p99_ms > 10 * nightly.before_ms[1]


def test_it_is_told_to_use_fewer_tasks_with_numbers(nightly: SparkWrite) -> None:
    fewer = nightly.fewer
    assert fewer is not None and fewer.tasks < 80 and fewer.splits == fewer.tasks
    assert max(fewer.busy) <= 0.5
    assert fewer.others_p99_ms < nightly.present.others_p99_ms / 5
    assert fewer.requests < nightly.present.requests
    reason = nightly.reasons[0]
    assert reason.kind == "tasks" and reason.text.startswith(f"coalesce({fewer.tasks}): ")
    assert reason.values["requests_before"] == nightly.present.requests
    assert reason.values["requests_after"] == fewer.requests
    assert reason.values["p99_after"] == fewer.others_p99_ms


def test_a_task_that_keeps_no_handler_busy_by_itself() -> None:
    """Tasks that take minutes for a few rows: one takes a millionth of the handlers' time."""
    table = SparkTable(rows=20_000, row_bytes=100, tasks=10_000, rate=0.2)
    found = spark_write(table, brokers=Brokers.alike(1), busy=0.01)
    assert found.fewer is not None and 0 < max(found.fewer.busy) <= 0.01 < max(found.present.busy)
    assert 1 < found.fewer.tasks < 10_000


def test_a_small_table_is_left_as_it_is() -> None:
    found = spark_write(SparkTable(rows=100_000, row_bytes=100, tasks=2, partitions=6), brokers=FAST)
    assert found.fewer is None and found.grouped is None and found.fits
    assert found.reasons[0].kind == "leave"
    assert 0 < max(found.present.busy) < 0.5
    assert found.present.requests_s == (found.present.requests_s[0],) * 3
    assert found.memory == 2 * (32 << 20)


def test_the_figures_of_a_write_agree_with_each_other() -> None:
    table = SparkTable(rows=400_000, row_bytes=500, tasks=4, splits=8, partitions=12)
    write = spark_write(table, brokers=FAST).present
    assert write.batches * write.rows_a_batch == pytest.approx(400_000, rel=0.02)
    assert write.requests * write.bytes_a_request == pytest.approx(400_000 * 508, rel=0.03)
    assert sum(write.requests_s) * write.seconds == pytest.approx(write.requests, rel=0.05)
    assert 0.5 < write.fill <= 1
    assert write.failed == 0


def test_a_long_task_takes_as_much_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "MOST_ROWS", 10_000)
    short, long = (
        spark_write(SparkTable(rows=rows, row_bytes=100, tasks=2, rate=1e5), brokers=FAST).present
        for rows in (20_000, 200_000)
    )
    assert long.seconds - 0.02 == pytest.approx(10 * (short.seconds - 0.02), rel=0.02), "it starts once"
    assert long.requests == pytest.approx(10 * short.requests, rel=0.02)


def test_rows_by_partition_save_requests_of_tasks_with_few_rows_for_each() -> None:
    table = SparkTable(rows=60_000, row_bytes=200, tasks=30, partitions=300, keyed=True)
    found = spark_write(table, brokers=FAST)
    assert found.grouped is not None
    assert found.grouped.rows_a_batch > 5 * found.present.rows_a_batch
    (reason,) = (each for each in found.reasons if "repartition" in each.text)
    saves = found.grouped.requests < 0.8 * found.present.requests
    assert reason.kind == ("repartition" if saves else "leave")


def test_a_trigger_that_is_too_short() -> None:
    table = SparkTable(rows=20_000, row_bytes=100, tasks=2, rate=2000)
    late, early = (spark_write(table, brokers=FAST, trigger_s=seconds) for seconds in (2.0, 30.0))
    assert (late.fits, early.fits) == (False, True)
    assert any(each.text.startswith("Take a longer trigger: ") for each in late.reasons)
    assert late.present.seconds == pytest.approx(5, rel=0.2)


def test_small_pieces_of_arrow_are_spoken_for_where_they_are_large() -> None:
    table: dict[str, Any] = {"rows": 10_000, "row_bytes": 1000, "tasks": 1}
    large, small = (spark_write(SparkTable(**table, arrow_bytes=size)) for size in (64 << 20, 1 << 20))
    assert any(each.kind == "arrow" for each in large.reasons)
    assert not any(each.kind == "arrow" for each in small.reasons)


def test_the_same_seed_gives_the_same_json() -> None:
    table = SparkTable(rows=20_000, row_bytes=100, tasks=4)
    one, same = (spark_write(table, brokers=FAST, seed=3).as_json() for _ in range(2))
    assert one == same
    found = json.loads(one)
    assert (found["version"], found["seed"], found["table"]["rows"]) == (1, 3, 20_000)
    assert found["present"]["requests"] > 0 and found["reasons"][0]["values"]


def test_a_share_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match="busy is 2"):
        spark_write(SparkTable(rows=1, row_bytes=1, tasks=1), busy=2)
