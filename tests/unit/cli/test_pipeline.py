"""The pipeline command: counters on stdout, one line on stderr for a failure."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from forebay.cli.pipeline import EVERY_MS, Lines, parse_overrides, run, summary
from forebay.cli.report.progress import Display
from forebay.errors import ConfigError
from forebay.pipeline import load
from forebay.testing import ManualClock


def test_overrides_are_pairs_and_values_may_hold_equals_signs() -> None:
    assert parse_overrides(["sink.topic=a=b", "producer.acks=1"]) == {"sink.topic": "a=b", "producer.acks": "1"}


@pytest.mark.parametrize("pair", ["sink.topic", "topic=x", ""])
def test_a_pair_without_a_place_is_refused(pair: str) -> None:
    with pytest.raises(ConfigError, match="give section.key=value"):
        parse_overrides([pair])


def test_the_summary_has_the_counters() -> None:
    rows = dict(
        summary(
            {
                "rows": 1000,
                "acknowledged": 1000,
                "partitions": {"t-0": 400, "t-1": 600},
                "bytes_sent": 12345,
                "compression_ratio": 0.25,
                "batches": 7,
                "average_fill": 0.5,
                "started_ms": 1000,
                "finished_ms": 3000,
            }
        )
    )
    assert rows["rows in"] == "1,000"
    assert rows["records per partition"] == "t-0: 400, t-1: 600"
    assert rows["compression ratio"] == "0.250"
    assert rows["batches"] == "7, filled 50% on average"
    assert (rows["seconds"], rows["rows/s"]) == ("2.00", "500")


def test_a_stream_that_found_nothing_has_no_rate() -> None:
    assert "rows/s" not in dict(summary({}))


def test_dead_letters_are_told_if_the_job_has_a_topic_for_them() -> None:
    assert dict(summary({"dead_letters": 3}))["dead letters"] == "3"
    assert "dead letters" not in dict(summary({}))


def test_a_failure_is_one_line_on_stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "job.toml"
    path.write_text('[source]\nformat = "rate"\n[sink]\ntopic = "t"\n[producer]\nbootstrap.servers = "h:1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    out, err = io.StringIO(), io.StringIO()
    result = run(load(path), out=out, err=err)
    assert result.exit_code == 1
    assert out.getvalue() == ""
    steps, error = err.getvalue().splitlines()
    assert steps == "job: starting Spark on local[*]"
    assert error.startswith("forebay: error: no Java: JAVA_HOME is")


def test_without_a_terminal_progress_is_a_line_now_and_then() -> None:
    err, clock = io.StringIO(), ManualClock()
    lines = Lines(Display(err), clock)
    lines.show("tasks", 1, 4)
    assert err.getvalue() == ""
    clock.advance(EVERY_MS)
    lines.show("tasks", 2, 4)
    lines.show("tasks", 3, 4)
    clock.advance(EVERY_MS)
    lines.show("tasks", 2, 4)
    lines.show("rows", 1000, None)
    assert err.getvalue().splitlines() == ["tasks 2 of 4", "rows 1,000"]
