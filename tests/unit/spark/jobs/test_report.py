"""The page of a run: well-formed, alone, with every value that the counters have."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from forebay.spark.jobs.job import Encoding, Stream
from forebay.spark.jobs.report import MOST_ROWS, render
from tests.unit.spark.jobs.test_job import job

TOTALS = {
    "rows": 3000, "acknowledged": 3000, "batches": 4, "bytes_sent": 2048, "bytes_raw": 3 << 20, "tasks": 2,
    "commits": 2, "compression_ratio": 0.25, "average_fill": 0.5, "started_ms": 1000, "finished_ms": 3000,
    "partitions": {"a-b-0": 1000, "a-b-1": 1998, "dead-0": 2}, "dead_letters": 2,
}  # fmt: skip


def entry(number: int, **more: Any) -> dict[str, Any]:
    values = {"rows": 1500, "batches": 2, "bytes_sent": 1024, "bytes_raw": 4096, "fill": 0.5}
    return values | {"started_ms": 1000 + number, "finished_ms": 2000 + number, **more}


def parsed(text: str) -> ET.Element:
    plain = text.removeprefix("<!doctype html>").replace('<meta charset="utf-8">', "")
    start = plain.index("<meta")
    return ET.fromstring(plain[:start] + plain[plain.index(">", start) + 1 :])


def titles(root: ET.Element) -> list[str | None]:
    return [one.text for one in root.iter() if one.tag in ("h1", "h2", "h3")]


def test_a_batch_job_has_a_point_for_each_task() -> None:
    tasks = [entry(number, partition=number, attempt=0) for number in range(2)]
    text = render(job(name="<flights>"), {**TOTALS, "last_tasks": tasks, "history": [entry(0, batch_id=None)]})
    root = parsed(text)
    assert not [one for one in root.iter() if one.tag in ("script", "link", "img")] and "http" not in text
    assert titles(root) == [
        "<flights>", "Rows over time", "Rows", "Bytes", "Batches", "Fill", "Time of a task", "Partitions", "a-b",
        "dead", "Tasks", "The job",
    ]  # fmt: skip
    tiles = {one.tail: one.text for one in root.iter("b")}
    assert (tiles["rows"], tiles["rows/s"], tiles["dead letters"]) == ("3,000", "1,500", "2")
    assert (tiles["bytes sent"], tiles["before compression"], tiles["average fill"]) == ("2.0 KiB", "3.0 MiB", "50%")
    assert [cell.text for cell in list(root.iter("tr"))[1]] == ["0, attempt 0", "1,500", "2", "50%", "1,024", "1.000"]
    assert "sesame" not in text


def test_a_stream_has_a_point_for_each_micro_batch() -> None:
    history = [entry(number * 10, batch_id=number) for number in range(3)] + [entry(99, batch_id=3, rows=0)]
    progress = [
        {"batch_id": number, "rows": 10, "timestamp": "", "duration_ms": {"triggerExecution": 2500, "addBatch": 2000}}
        for number in range(3)
    ]
    root = parsed(render(job(stream=Stream("/c")), {**TOTALS, "history": history}, progress))
    assert titles(root)[1:7] == ["Rows", "Rows over time", "Bytes", "Batches", "Fill", "Time of a micro-batch"]
    texts = [one.text for one in root.iter("text")]
    assert "trigger to commit (Spark)" in texts and "first row to last acknowledgement" in texts
    assert [row[0].text for row in root.iter("tr")] == ["micro-batch", "0", "1", "2"]


def drawn(root: ET.Element, title: str) -> list[tuple[float, float]]:
    """The points of the only line of a plot."""
    figure = next(one for one in root.iter("figure") if one[0].text == title)
    (line,) = figure.iter("polyline")
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.get("points", "").split())]


@pytest.mark.parametrize("streaming", [False, True])
def test_rows_over_time_rise_while_they_are_written(streaming: bool) -> None:
    """Two that end together, and one that began at the half: no cliff at the end, and a bend where the other began."""
    entries = [
        entry(0, partition=0, attempt=0, batch_id=0, started_ms=1000, finished_ms=3000, rows=200),
        entry(1, partition=1, attempt=0, batch_id=1, started_ms=2000, finished_ms=3000, rows=100),
        entry(2, partition=2, attempt=0, batch_id=2, started_ms=3000, finished_ms=3000, rows=1),
    ]
    counters = {**TOTALS, "history" if streaming else "last_tasks": entries}
    points = drawn(parsed(render(job(stream=Stream("/c") if streaming else None), counters)), "Rows over time")
    assert len(points) == 4
    (left, foot), (middle, third), (right, _), (_, top) = points
    assert middle - left == pytest.approx(right - middle, abs=0.2)
    assert (foot - third) / (foot - top) == pytest.approx(100 / 301, abs=0.01)


def test_each_plot_says_in_a_sentence_what_it_shows() -> None:
    tasks = [entry(number, partition=number, attempt=0, fill=1.22) for number in range(2)]
    history = [entry(number, batch_id=number, fill=1.22) for number in range(2)]
    for made in (
        render(job(), {**TOTALS, "last_tasks": tasks}),
        render(job(stream=Stream("/c")), {**TOTALS, "history": history}),
    ):
        captions = [one.text or "" for one in parsed(made).iter("figcaption")]
        assert len(captions) == 8 and all(one[0].isupper() and one.endswith(".") for one in captions)
        assert "over 100% where records compress well" in made and "Latency" not in made
        assert any("over 100" in one for one in captions)


def test_a_long_run_shows_its_newest_rows() -> None:
    history = [entry(number, batch_id=number) for number in range(MOST_ROWS + 5)]
    root = parsed(render(job(stream=Stream("/c")), {**TOTALS, "history": history}))
    assert f"Micro-batches, the last {MOST_ROWS} of {MOST_ROWS + 5}" in titles(root)
    assert [row[0].text for row in root.iter("tr")][1] == "5"


def test_a_run_that_wrote_nothing_has_a_page_too() -> None:
    root = parsed(render(job(stream=Stream("/c"), encodings=(Encoding("value", "json"),)), {}))
    assert titles(root) == ["j", "The job"]
    assert "Nothing was written." in [one.text for one in root.iter("p")]
