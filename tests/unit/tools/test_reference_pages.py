"""The pages that come out of the code name everything there is."""

from __future__ import annotations

import re
from pathlib import Path

from forebay._metrics.names import GAUGES, NODE_ROWS, PRODUCER_ROWS, TOPIC_ROWS
from forebay.config import table
from forebay.config._aliases import ALIASES
from tools.reference_pages import error_classes, heading, row, write_pages


def test_each_page_has_a_row_for_everything(tmp_path: Path) -> None:
    write_pages(tmp_path)
    options = (tmp_path / "options.md").read_text(encoding="utf-8")
    first = re.findall(r"^\| `([\w.]+)` \|", options, re.MULTILINE)
    assert first == [option.name for option in table()]
    assert all(f"`{name}`" in options for name in ALIASES)
    metrics = (tmp_path / "metrics.md").read_text(encoding="utf-8")
    names = {each.name for rows in (PRODUCER_ROWS, TOPIC_ROWS, NODE_ROWS) for each in rows} | set(GAUGES)
    assert "| `record-send-total` | counter | Records sent, since the start. | `forebay_record_send_total` |" in metrics
    assert names <= set(re.findall(r"^\| `([\w-]+)` \|", metrics, re.MULTILINE))
    errors = (tmp_path / "errors.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", errors, re.MULTILINE) == [kind.__name__ for kind in error_classes()]


def test_metrics_that_are_to_be_watched_exist(tmp_path: Path) -> None:
    write_pages(tmp_path)
    page = (tmp_path / "metrics.md").read_text(encoding="utf-8")
    watched = page.partition("## What to watch")[2].partition("\n## ")[0]
    named = {
        name for line in watched.splitlines() if line.startswith("| `") for name in re.findall(r"`([\w-]+)`", line)
    }
    there = {each.name for each in PRODUCER_ROWS} | set(GAUGES)
    assert {name for name in named if "-" in name} <= there
    assert "record-error-rate" in named


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert row("a|b", "c") == "| a\\|b | c |"
    assert heading("x", "y") == ["| x | y |", "|---|---|"]


def test_a_page_that_is_the_same_is_not_written_again(tmp_path: Path) -> None:
    write_pages(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    write_pages(tmp_path)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
