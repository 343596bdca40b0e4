"""Counters of micro-batches added up are those that one file for all of them would have."""

from __future__ import annotations

import json
from pathlib import Path

from forebay.spark.commit import save
from forebay.spark.jobs.streaming import add_batch, added, read_counters
from tests.unit.spark.test_commit import report

FIRST = [report(rows=10, batches=1, fill=1.0, finished_ms=1500), report(1, rows=5, partitions={"t-1": 5})]
SECOND = [report(rows=7, batches=3, fill=0.25, started_ms=2000, finished_ms=2600, partitions={"t-1": 3, "u-0": 4})]


def test_two_writes_added_are_as_one_file_of_a_stream(tmp_path: Path) -> None:
    stream, total, one = (str(tmp_path / name) for name in ("stream", "total", "one"))
    for number, reports in enumerate((FIRST, SECOND)):
        save(stream, reports, add=True, batch_id=number)
        save(one, reports, add=False)
        add_batch(total, one, number)
    assert json.loads(Path(total).read_text()) == json.loads(Path(stream).read_text())
    assert not Path(one).exists()


def test_a_write_that_left_no_counters_changes_nothing(tmp_path: Path) -> None:
    add_batch(str(tmp_path / "total"), str(tmp_path / "one"), 0)
    assert read_counters(str(tmp_path / "total")) == {}


def test_a_write_without_rows_divides_by_nothing(tmp_path: Path) -> None:
    save(str(tmp_path / "one"), [], add=False)
    values = added({}, read_counters(str(tmp_path / "one")), 3)
    assert (values["average_fill"], values["compression_ratio"], values["started_ms"]) == (0.0, 0.0, None)
    assert [entry["batch_id"] for entry in values["history"]] == [3]
