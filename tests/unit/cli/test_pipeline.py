"""The pipeline command: counters on stdout, one line on stderr for a failure."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from forebay.cli.pipeline import parse_overrides, run, summary
from forebay.errors import ConfigError


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


def test_a_failure_is_one_line_on_stderr(tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    result = run(str(tmp_path / "none.toml"), out=out, err=err)
    assert result.exit_code == 1
    assert out.getvalue() == ""
    assert err.getvalue() == f"forebay: error: job file {str(tmp_path / 'none.toml')!r} does not exist\n"
