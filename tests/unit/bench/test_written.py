"""The page of figures out of results: what it says, and which results it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import goals, page, written
from bench.part import result_of
from bench.support import ROOT
from bench.written import MEASURED, SHORT, complaints, put, write_pages
from tools.check_pages import FIGURE_ROWS, FIGURES, between, complaints_of_readme

QUIET = {
    "load_average_before": 0.25, "steady": True, "loopback_gb_s": 4.125, "commit": "abc1234", "date": "2026-01-02",
    "processors": 2, "architecture": "x86_64", "python": "3.11.7",
    "versions": {"confluent-kafka": "2.16.0", "kafka-python": "not installed", "forebay": "0.1"},
}  # fmt: skip


def a_result(name: str, *labels: str, **about: Any) -> dict[str, Any]:
    figures = {"records_per_s": 1e6, "cpu_s_per_million": 0.25, "p50": 0.5, "p99": 2.0, "bytes_a_record": 115}
    runs = [{"label": label, **{key: value * times for key, value in figures.items()}}
            for label in labels for times in (1, 2, 4)]  # fmt: skip
    return {**result_of(name, runs), "machine": {**QUIET, **about}}


def whole() -> dict[str, dict[str, Any]]:
    peers = ("forebay", "forebay, callback", *goals.CONFLUENT, *goals.CONFLUENT_CALLBACK, *goals.JAVA)
    clients = ("forebay", "confluent-kafka", "Java")
    return {
        result["name"]: result
        for result in (
            a_result("peers", *peers),
            a_result("peers-sink", *peers),
            a_result("latency", *(f"{client}, linger 0" for client in clients)),
            a_result("columns", "1024 KiB", "sendall of the same bytes"),
            a_result("footprint", "forebay", "confluent-kafka"),
        )
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    marks = f"before\n{FIGURES[0]}old\n{FIGURES[1]}\nbetween\n"
    (tmp_path / "README.md").write_text(marks)
    (tmp_path / "docs/measurements.md").write_text(marks + f"{MEASURED[0]}old\n{MEASURED[1]}\nafter\n")
    return tmp_path


def test_both_pages_get_the_same_rows_and_keep_the_rest(root: Path) -> None:
    assert write_pages(whole(), root) == []
    readme, measurements = ((root / name).read_text() for name in ("README.md", "docs/measurements.md"))
    assert list(complaints_of_readme(readme, measurements, root)) == []
    assert readme.startswith("before\n") and readme.endswith("between\n") and measurements.endswith("after\n")
    assert "old" not in readme + measurements
    assert between(readme, FIGURES)[2] == (
        "| a real broker: CPU s per million records | 0.5 | 0.5 confluent-kafka, 0.5 Java with callbacks |"
    )


def test_a_bench_has_its_date_commit_machine_load_median_and_spread(root: Path) -> None:
    write_pages(whole(), root)
    text = (root / "docs/measurements.md").read_text()
    assert (
        "`python -m bench peers --sink`: 2026-01-02, commit abc1234; 2 processors (x86_64), Python 3.11.7; "
        "load at the start 0.25; a bare loopback send 4.12 GB/s; confluent-kafka 2.16.0.\n"
    ) in text
    assert "| forebay, callback | 0.5 (0.25-1) | 2,000 (1,000-4,000) |\n" in text


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"load_average_before": 0.5}, "columns: the load at its start was 0.5, it must be below 0.5"),
        ({"load_average_before": None}, "columns: the load at its start was None"),
        ({"steady": False}, "columns: no bare loopback send before it came within 10%"),
        ({"commit": "def5678"}, "abc1234, def5678"),
    ],
)
def test_a_result_of_a_busy_machine_or_of_another_commit_is_refused(
    root: Path, about: dict[str, Any], said: str
) -> None:
    results = {**whole(), "columns": a_result("columns", "1024 KiB", "sendall of the same bytes", **about)}
    (complaint,) = write_pages(results, root)
    assert said in complaint
    assert "old" in (root / "README.md").read_text(), "nothing is written then"


def test_a_row_that_was_not_measured_is_named() -> None:
    results = whole()
    del results["footprint"]
    (complaint,) = complaints(results, {})
    assert complaint.startswith("bytes of memory for a queued record of 100 B: not measured (footprint: ")


def test_what_is_of_the_same_commit_stays_where_it_was_not_measured_again(root: Path) -> None:
    write_pages(whole(), root)
    before = (root / "README.md").read_text()
    assert write_pages({"threads": a_result("threads", "1 thread")}, root) == []
    text = (root / "docs/measurements.md").read_text()
    assert (root / "README.md").read_text() == before
    assert [line for line in text.splitlines() if line.startswith("###")] == [
        "### The peers, a real broker", "### The peers, a sink that only acknowledges", "### Columns from Arrow",
        "### Latency, a real broker", "### Memory of what is queued", "### Sending threads",
    ]  # fmt: skip
    write_pages({"threads": a_result("threads", "1 thread")}, root)
    assert (root / "docs/measurements.md").read_text() == text, "and no line is added each time"
    found = write_pages({"threads": a_result("threads", "1 thread", commit="def5678")}, root)
    assert len(found) == len(SHORT) and all("not measured" in each for each in found)
    write_pages({name: {**each, "machine": {**QUIET, "commit": "def5678"}} for name, each in whole().items()}, root)
    assert "Sending threads" not in (root / "docs/measurements.md").read_text(), "it is of another commit"


def test_the_short_table_comes_from_these_benches() -> None:
    results = whole()
    assert set(results) == set(written.OF_SHORT)
    for name in results:
        assert list(complaints({each: result for each, result in results.items() if each != name}, {}))


def test_the_command_writes_a_page_by_itself_out_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, to = tmp_path / "columns-1.json", tmp_path / "page.md"
    given.write_text(json.dumps(a_result("columns", "1024 KiB", "sendall of the same bytes", load_average_before=3.0)))
    assert page.main(["--write", str(given), "--to", str(to)]) == 1
    text = to.read_text()
    assert "- Not for the pages: columns: the load at its start was 3.0" in text
    assert "| `send_batch` from Arrow: million rows/s | 2 | 2 a bare `sendall` of the same bytes |" in text
    assert "### Columns from Arrow\n" in text
    assert "bench: columns: the load" in capsys.readouterr().err


def test_a_page_without_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match="no lines between <!-- figures:begin -->"):
        put("nothing here\n", FIGURES, ["x"])


def test_the_pages_have_the_marks_and_the_rows_of_these_names() -> None:
    assert len(SHORT) == FIGURE_ROWS
    rows = between((ROOT / "README.md").read_text(encoding="utf-8"), FIGURES)
    assert rows[:2] == list(written.SHORT_HEAD)
    assert [row.split(" | ")[0] for row in rows[2:]] == [f"| {row.what}" for row in SHORT]
    assert between((ROOT / "docs/measurements.md").read_text(encoding="utf-8"), MEASURED)
