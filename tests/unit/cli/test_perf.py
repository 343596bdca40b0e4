"""cli.perf: the work of kafka-producer-perf-test; its lines are test_latency's."""

from __future__ import annotations

from typing import Any

import pytest

from forebay._metrics.registry import MetricName
from forebay.cli.failure import CommandError
from forebay.cli.perf import PerfJob, run, write_metrics
from forebay.config import ProducerConfig
from forebay.errors import (
    BufferExhaustedError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    RecordTooLargeError,
)
from forebay.testing.clock import ManualClock
from tests.unit.cli.fakes import CONFIG, FakeProducer, Sent


def perf(
    producer: FakeProducer, records: int = 5, clock: ManualClock | None = None, **options: Any
) -> tuple[int, list[str]]:
    lines: list[str] = []
    if "payload_file" not in options:
        options = {"record_size": 10, **options}
    job = PerfJob(options.pop("config", CONFIG), "t", records, **options)
    return run(job, lines.append, make=producer.make, clock=clock or ManualClock()), lines


def test_sends_the_records_and_ends_with_the_totals() -> None:
    producer = FakeProducer()
    code, lines = perf(producer)
    assert code == 0
    assert [len(sent.value or b"") for sent in producer.sent] == [10] * 5
    assert {sent.topic for sent in producer.sent} == {"t"}
    assert len(lines) == 1 and lines[0].startswith("5 records sent, Infinity records/sec")
    assert producer.closes == [None]


def test_latency_is_from_the_send_to_the_acknowledgement() -> None:
    clock = ManualClock()

    def late(sent: Sent) -> KafkaError | None:
        clock.advance(3.7)
        return None

    code, lines = perf(FakeProducer(outcome=late), 1, clock)
    assert code == 0
    assert "3.00 ms avg latency, 3.00 ms max latency, 3 ms 50th" in lines[0]


def test_monotonic_payloads() -> None:
    producer = FakeProducer()
    assert perf(producer, 3, record_size=None)[0] == 0
    assert [sent.value for sent in producer.sent] == [b"0", b"1", b"2"]


def test_the_warm_up_is_left_out_of_a_second_summary() -> None:
    code, lines = perf(FakeProducer(), 5, warmup=2)
    assert code == 0
    assert lines[0] == ("Warmup first 2 records. Steady state results will print after the complete test summary.")
    assert lines[1].startswith("5 records sent, ") and lines[2].startswith("3 steady state records sent, ")


def test_a_failed_record_counts_and_the_exit_code_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = perf(FakeProducer(outcome=lambda sent: RecordTooLargeError("too large")), 2)
    assert code == 1
    assert lines[0].startswith("0 records sent, ")
    assert capsys.readouterr().err.splitlines() == [
        "forebay: error: record:1: too large (partition 0)",
        "forebay: error: record:2: too large (partition 0)",
    ]


def test_it_stops_when_no_further_record_could_do_better(capsys: pytest.CaptureFixture[str]) -> None:
    full = BufferExhaustedError("full", phase="waiting for memory")
    producer = FakeProducer(outcome=lambda sent: full)
    assert perf(producer, 10)[0] == 1
    assert len(producer.sent) == 1
    assert capsys.readouterr().err.endswith("stopped: the records that follow were not sent\n")


def test_ctrl_c_still_ends_with_the_totals(capsys: pytest.CaptureFixture[str]) -> None:
    count = iter(range(10))
    producer = FakeProducer(raising=lambda sent: KeyboardInterrupt() if next(count) == 3 else None)
    code, lines = perf(producer, 10)
    assert code == 130
    assert lines[0].startswith("3 records sent, ")
    assert capsys.readouterr().err == "forebay: error: interrupted: not all records were sent\n"


def test_throughput_is_held_back() -> None:
    clock = ManualClock()
    moments: list[float] = []

    def note(sent: Sent) -> KafkaError | None:
        moments.append(clock.now())
        clock.advance(1)
        return None

    # A pause of 1 ms a record is all that the rate asks for, and the clock gives it: no wait is needed.
    assert perf(FakeProducer(outcome=note), 5, clock, throughput=1000)[0] == 0
    assert moments == [10_000.0 + number for number in range(5)]


def test_without_a_topic_nothing_is_sent() -> None:
    producer = FakeProducer(unknown=KafkaTimeoutError("no topic"))
    with pytest.raises(CommandError, match="topic 't' on localhost:9092: no topic"):
        perf(producer)
    assert producer.closes == [0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"records": 0}, "--num-records must be at least 1, not 0"),
        ({"record_size": 0}, "--record-size must be at least 1, not 0"),
        ({"warmup": 5}, "--warmup-records must be 0 to 4"),
        ({"throughput": 0}, "--throughput 0 would never send"),
        ({"interval_ms": 0}, "--reporting-interval must be above 0 ms"),
    ],
)
def test_numbers_that_make_no_sense(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(CommandError, match=expected):
        perf(FakeProducer(), **options)


def test_metrics_after_a_flush() -> None:
    producer = FakeProducer()
    code, lines = perf(producer, print_metrics=True)
    assert (code, producer.flushed) == (0, 1)
    assert lines[1:] == ["", "Metric Name   Value"]


def test_metrics_are_aligned_and_sorted() -> None:
    lines: list[str] = []
    tags = (("client-id", "p"),)
    values = {
        MetricName("b", "g", "", tags): 2,
        MetricName("a-long", "g", "", tags): float("nan"),
        MetricName("c", "g", "", tags): "text",
    }
    write_metrics(values, lines.append)
    assert lines == [
        "",
        "Metric Name              Value",
        "g:a-long:{client-id=p} : NaN",
        "g:b:{client-id=p}      : 2.000",
        "g:c:{client-id=p}      : text",
    ]


TRANSACTIONAL = ProducerConfig(bootstrap_servers="localhost:9092", transactional_id="x")


def test_transactions_are_as_long_as_asked_for() -> None:
    clock = ManualClock()

    def slow(sent: Sent) -> KafkaError | None:
        clock.advance(40)
        return None

    producer = FakeProducer(outcome=slow)
    assert perf(producer, 7, clock, config=TRANSACTIONAL, transaction_ms=100)[0] == 0
    assert producer.calls == ["init 0", "begin 0", "commit 3", "begin 3", "commit 6", "begin 6", "commit 7"]


def test_without_a_transactional_id_there_are_none() -> None:
    producer = FakeProducer()
    assert perf(producer)[0] == 0
    assert producer.calls == []


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ProducerFencedError("fenced"), "the last transaction is lost: fenced"),
        (KafkaTimeoutError("no answer"), "the end of the last transaction is not known: no answer"),
    ],
)
def test_a_commit_that_fails_ends_it(failure: KafkaError, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    clock = ManualClock()

    def slow(sent: Sent) -> KafkaError | None:
        clock.advance(40)
        return None

    last = FakeProducer(outcome=slow, committing=[None, failure])
    code, lines = perf(last, 5, clock, config=TRANSACTIONAL, transaction_ms=100)
    assert (code, last.calls[-1]) == (1, "commit 5")
    assert lines[-1].startswith("5 records sent")
    assert capsys.readouterr().err == f"forebay: error: {told}\n"
    first = FakeProducer(outcome=slow, committing=[failure])
    assert perf(first, 5, clock, config=TRANSACTIONAL, transaction_ms=100)[0] == 1
    assert first.calls[-1] == "commit 3"
    assert capsys.readouterr().err.splitlines() == [
        f"forebay: error: {told}",
        "forebay: error: stopped: the records that follow were not sent",
    ]
