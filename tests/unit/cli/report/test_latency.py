"""cli.report.latency: the numbers, and lines as kafka-producer-perf-test writes them."""

from __future__ import annotations

from forebay.cli.report.latency import MAX_SAMPLES, Stats


def make(records: int, lines: list[str], *, steady: bool = False) -> Stats:
    return Stats(records, 1000.0, interval_ms=5000, write=lines.append, steady=steady)


def test_a_line_for_each_interval_with_the_first_acknowledgement_after_it() -> None:
    lines: list[str] = []
    stats = make(10, lines)
    stats.record(1 << 20, 3, 2000.0)
    assert lines == []
    stats.record(1 << 20, 6, 6000.0)
    assert lines == ["2 records sent, 0.4 records/sec (0.40 MB/sec), 4.5 ms avg latency, 6.0 ms max latency."]
    stats.record(100, 1, 7000.0)
    assert len(lines) == 1
    stats.record(100, 2, 11000.0)
    assert lines[1] == "2 records sent, 0.4 records/sec (0.00 MB/sec), 1.5 ms avg latency, 2.0 ms max latency."


def test_the_last_line() -> None:
    stats = make(1000, [])
    for latency in range(1000):
        stats.record(100, latency, 1500.0)
    assert stats.total(3000.0) == (
        "1000 records sent, 500.000000 records/sec (0.05 MB/sec), 499.50 ms avg latency, 999.00 ms max latency, "
        "500 ms 50th, 950 ms 95th, 990 ms 99th, 999 ms 99.9th."
    )


def test_nothing_sent_and_no_time_passed_as_java_prints_them() -> None:
    stats = make(5, [])
    assert stats.total(2000.0) == (
        "0 records sent, 0.000000 records/sec (0.00 MB/sec), NaN ms avg latency, 0.00 ms max latency, "
        "0 ms 50th, 0 ms 95th, 0 ms 99th, 0 ms 99.9th."
    )
    assert "0 records sent, NaN records/sec (NaN MB/sec)" in stats.total(1000.0)
    stats.record(1, 1, 1000.0)
    assert "1 records sent, Infinity records/sec (Infinity MB/sec)" in stats.total(1000.0)


def test_the_steady_state_says_so() -> None:
    lines: list[str] = []
    stats = make(10, lines, steady=True)
    stats.record(10, 1, 6000.0)
    stats.record(10, 1, 11000.0)
    assert lines[0] == "In steady state."
    assert [line.startswith("1 records sent, 0.2") for line in lines[1:]] == [True, True]
    assert stats.total(12000.0).startswith("2 steady state records sent, ")


def test_after_the_warm_up_the_whole_is_quiet() -> None:
    lines: list[str] = []
    stats = make(10, lines)
    stats.quiet = True
    stats.record(10, 1, 6000.0)
    assert lines == []


def test_of_many_records_every_nth_latency_is_kept() -> None:
    stats = make(MAX_SAMPLES * 3, [])
    for latency in range(9):
        stats.record(1, latency, 1000.0)
    assert "3 ms 50th, 6 ms 95th" in stats.total(2000.0)
    assert stats.count == 9
