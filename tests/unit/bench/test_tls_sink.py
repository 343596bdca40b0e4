from __future__ import annotations

from bench.goals import GOALS, Results, of_tls_sink
from bench.tls_sink import TOPIC, both_sides, of_one_record


def test_records_reach_a_sink_behind_tls() -> None:
    with both_sides() as (_, secret):
        found = of_one_record(secret, 20)
        assert found["label"] == "one record a request, TLS"
        assert found["p50_ms"] > 0 and found["request_us"] > 0
        # Two more come before the clock.
        assert secret.sink.summary()["records"] == {TOPIC: 22}


def test_every_goal_reads_a_figure_that_the_bench_has() -> None:
    """By the labels that its runs have."""
    latency = {"p50_ms": [1.0], "p99_ms": [1.0]}
    figures = {
        "forebay, TLS": {"records_per_s": [1.0]},
        "confluent-kafka, TLS": {"records_per_s": [1.0]},
        "columns, 1 MiB, TLS": {"sender_gb_s": [1.0]},
    }
    for side in ("plaintext", "TLS"):
        figures[f"one record a request, {side}"] = {**latency, "request_us": [1.0]}
        figures[f"10,000/s beside a computing thread, {side}"] = latency
    goals = of_tls_sink()
    assert {goal.what for goal in goals} <= {goal.what for goal in GOALS}
    assert [goal.read(Results({"tls-sink": {"figures": figures}})) for goal in goals] == [1.0, 1.0, 0, 0, 0, 0, 0]
