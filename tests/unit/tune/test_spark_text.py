"""The sentences and the text of a write, of figures that are given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from forebay.tune.spark_table import SparkTable, SparkWrite, WriteFigures
from forebay.tune.spark_text import reasons_for, write_text

PRESENT = WriteFigures(
    tasks=160,
    splits=320,
    seconds=35.0,
    requests=32_000,
    batches=128_000,
    bytes_a_request=62_500.0,
    rows_a_batch=15.6,
    fill=0.95,
    requests_s=(300.0, 320.0, 310.0, 290.0),
    busy=(0.93, 0.97, 0.95, 0.9),
    others_p50_ms=100.0,
    others_p99_ms=800.0,
    failed=0,
)
FEWER = replace(
    PRESENT, tasks=12, splits=12, seconds=52.0, requests=8000, busy=(0.45, 0.48, 0.46, 0.44), others_p99_ms=20.0
)


def write(**changed: Any) -> SparkWrite:
    table = SparkTable(rows=2_000_000, row_bytes=1000, tasks=160, splits=320, executors=20, partitions=60, keyed=True)
    given: dict[str, Any] = {
        "version": 1,
        "seed": 1,
        "table": table,
        "settings": {"batch.size": "16384"},
        "busy_limit": 0.5,
        "trigger_s": None,
        "before_ms": (8.0, 10.0),
        "present": PRESENT,
        "fewer": FEWER,
        "grouped": None,
        "memory": 256 << 20,
        "reasons": (),
        "assumptions": ("one",),
    }
    found = SparkWrite(**given | changed)
    return replace(found, reasons=reasons_for(found))


def test_cause_effect_and_price_of_fewer_tasks() -> None:
    reason = write().reasons[0]
    assert reason.text == (
        "coalesce(12): 160 tasks at a time keep the handlers of node 2 busy for 97 %, and every request waits for "
        "them; busy 97 % ▸ 48 %, requests 32,000 ▸ 8,000, p99 of another producer 800 ▸ 20 ms (10 ms without the "
        "write), price: the write takes 35 ▸ 52 s."
    )
    assert reason.values["coalesce"] == 12


def test_fewer_tasks_may_cost_nothing() -> None:
    reason = write(fewer=replace(FEWER, seconds=30.0)).reasons[0]
    assert reason.text.endswith("the write takes 35 ▸ 30 s.") and "price" not in reason.text


def test_what_is_left_where_nothing_is_too_much() -> None:
    calm = write(present=replace(PRESENT, busy=(0.2,) * 4, others_p99_ms=12.0), fewer=None)
    assert calm.reasons[0].text.startswith(
        "Leave the tasks as they are: 160 tasks at a time keep the handlers of node 1"
    )
    alone = write(fewer=None)
    assert alone.reasons[0].text.startswith("Make the batches larger: ")
    never = write(fewer=replace(FEWER, tasks=1, busy=(0.6,) * 4))
    assert "50 % cannot be kept" in never.reasons[0].text


@pytest.mark.parametrize(("requests", "begins"), [(10_000, "forebay.spark.repartition"), (30_000, "Leave out")])
def test_a_shuffle_has_to_be_worth_it(requests: int, begins: str) -> None:
    found = write(grouped=replace(FEWER, requests=requests, rows_a_batch=500.0))
    assert found.reasons[1].text.startswith(begins)
    assert "a task has 104 rows for each of 60 partitions" in found.reasons[1].text


def test_the_trigger() -> None:
    late, early = (write(trigger_s=seconds).reasons[1].text for seconds in (10.0, 100.0))
    assert late == (
        "Take a longer trigger: a write takes 35 s of 10 s, beside what Spark itself takes; micro-batches come later "
        "and later."
    )
    assert early.startswith("The trigger is long enough: ")


def test_the_memory_of_an_executor() -> None:
    assert "an executor's 8 producers take up to 256 MiB outside of the JVM" in write().reasons[-1].text


def test_the_text_is_short_and_has_the_numbers() -> None:
    found = write(grouped=replace(FEWER, requests=9000), trigger_s=10.0, present=replace(PRESENT, failed=7))
    lines = write_text(found).splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 112
    text = "\n".join(lines)
    for part in (
        "2,000,000 rows of 1,000 B, keyed",
        "coalesce(12)",
        "repartition",
        "32,000",
        "800.00",
        "7 rows of a task",
    ):
        assert part in text
    assert "node 2: requests/s, busy" in text and "node 4" not in text
