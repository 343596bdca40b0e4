"""A task returns only when every row of it is acknowledged, and says which one was not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from forebay.errors import IllegalArgumentError, KafkaTimeoutError, RecordTooLargeError
from forebay.spark.commit import TaskReport
from forebay.spark.writer import DeliveryError, TaskId, current_task, write
from forebay.testing.clock import ManualClock
from tests.unit.spark.fakes import FakeProducer, options


def rows(*values: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.string())})


def run(producer: FakeProducer, *batches: pa.RecordBatch) -> tuple[TaskReport, list[Any]]:
    dropped: list[Any] = []
    report = write(
        iter(batches),
        options(),
        task=TaskId(7, 2),
        opener=lambda _: producer,
        dropper=dropped.append,
        clock=ManualClock(),
    )
    return report, dropped


def test_every_row_is_appended_flushed_and_counted() -> None:
    producer = FakeProducer(rows_per_batch=3)
    report, dropped = run(producer, rows("a", None), rows("b", "c", "d"))
    assert [row[4] for row in producer.rows] == [b"a", None, b"b", b"c", b"d"]
    assert producer.flushes == 1
    assert producer.prepared == ["t", "t"]
    assert (report.rows, report.acknowledged, report.batches) == (5, 5, 2)
    assert report.partitions == {"t-0": 5}
    assert (report.partition_id, report.attempt) == (7, 2)
    assert (report.bytes_sent, report.bytes_raw) == (200, 5 * 10 + 2 * 61)
    assert report.fill == pytest.approx((5 * 10 + 2 * 61) / 2000)
    assert report.producer == {"byte-total": 200.0, "record-send-total": 5.0}
    assert dropped == []


def test_only_what_this_task_added_is_counted_for_a_producer_that_was_used_before() -> None:
    producer = FakeProducer(rows_per_batch=1)
    run(producer, rows("a"))
    report, _ = run(producer, rows("b", "c"))
    assert report.producer == {"byte-total": 200.0, "record-send-total": 2.0}


def test_a_task_without_rows_reports_zeros() -> None:
    report, _ = run(FakeProducer())
    assert (report.rows, report.acknowledged, report.batches, report.fill) == (0, 0, 0, 0.0)


def test_a_failed_batch_fails_the_task_with_the_reason_and_the_number_of_rows() -> None:
    producer = FakeProducer(rows_per_batch=2)
    producer.fail_batch(1, KafkaTimeoutError("no answer for 120000 ms"))
    dropped: list[Any] = []
    with pytest.raises(DeliveryError) as caught:
        write(
            [rows("a", "b", "c", "d", "e")],
            options(),
            task=TaskId(3, 0),
            opener=lambda _: producer,
            dropper=dropped.append,
        )
    assert str(caught.value) == (
        "Spark partition 3, attempt 0: 2 of 5 rows were not acknowledged; "
        "first, row 2: KafkaTimeoutError: no answer for 120000 ms"
    )
    assert isinstance(caught.value.__cause__, KafkaTimeoutError)
    assert dropped == [options()]


def test_a_batch_that_failed_early_stops_the_task_before_the_next_arrow_batch() -> None:
    producer = FakeProducer(rows_per_batch=2)
    producer.fail_batch(0, KafkaTimeoutError("gone"))
    read = []

    def batches() -> Any:
        for name in ("a", "b", "c"):
            read.append(name)
            yield rows(name, name)
            producer.settle()

    # The second append sees the first batch's outcome only when it collects; the third is never asked for.
    with pytest.raises(DeliveryError, match="rows were not acknowledged"):
        write(batches(), options(), task=TaskId(0, 0), opener=lambda _: producer, dropper=lambda _: None)
    assert read == ["a", "b"]


def test_a_row_that_is_refused_names_the_task_and_the_reason() -> None:
    producer = FakeProducer(refuse=RecordTooLargeError("row 1: 2000000 bytes"))
    with pytest.raises(DeliveryError, match=r"Spark partition 0, attempt 1: row 1: 2000000 bytes \(rows_before=1\)"):
        write([rows("a", "refuse")], options(), task=TaskId(0, 1), opener=lambda _: producer, dropper=lambda _: None)


def test_a_batch_without_an_outcome_after_the_flush_is_a_failure() -> None:
    producer = FakeProducer()
    producer.settles = False
    with pytest.raises(DeliveryError, match="2 of 2 rows were not acknowledged; 1 batches have no outcome"):
        write([rows("a", "b")], options(), task=TaskId(0, 0), opener=lambda _: producer, dropper=lambda _: None)


def test_a_column_of_a_wrong_type_fails_the_task_and_gives_the_producer_up() -> None:
    dropped: list[Any] = []
    batch = pa.RecordBatch.from_pydict({"value": [1.5]})
    with pytest.raises(IllegalArgumentError, match="column 'value'.*Arrow type double"):
        write([batch], options(), task=TaskId(0, 0), opener=lambda _: FakeProducer(), dropper=dropped.append)
    assert dropped == [options()]


def test_outside_of_spark_there_is_no_task() -> None:
    assert current_task() == TaskId(-1, -1)


def test_a_task_without_batching_has_a_report_too() -> None:
    producer = FakeProducer(rows_per_batch=1)
    producer.batch_size = 0
    report, _ = run(producer, rows("a", "b"))
    assert (report.rows, report.acknowledged, report.fill) == (2, 2, 71 * 2 / 2)
