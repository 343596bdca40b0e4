from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from bench import page
from bench.page import newest, render
from bench.part import result_of


def peers() -> dict[str, Any]:
    points = [(0.0, 20.0), (0.1, 45.0)]
    runs = [
        {"label": "forebay", "records_per_s": 3e6, "cpu_s_per_million": 0.3, "memory": points},
        {"label": "a <peer>", "records_per_s": 1e6, "cpu_s_per_million": 0.9, "memory": []},
    ]
    return result_of("peers", runs, machine={"processors": 2}, settings={"rounds": 1})


def latency() -> dict[str, Any]:
    runs = [
        {"label": client, "client": client, "linger_ms": 5.0, "computing": False, "rate": 1000.0, "p99": p99,
         "distribution": [(0, 0.5), (50, 1.0), (99, p99)]}
        for client, p99 in (("forebay", 3.0), ("forebay", 9.0), ("forebay", 4.0), ("Java", 5.0))
    ]  # fmt: skip
    return result_of("latency", runs)


def well_formed(text: str) -> ET.Element:
    return ET.fromstring(text.removeprefix("<!doctype html>").replace('<meta charset="utf-8">', ""))


def test_the_page_is_well_formed_and_stands_alone() -> None:
    text = render({"peers": peers(), "latency": latency()})
    root = well_formed(text)
    assert not [one for one in root.iter() if one.tag in ("script", "link", "img")]
    assert "a &lt;peer&gt;" in text and "<peer>" not in text
    titles = [one.text for one in root.iter() if one.tag in ("h2", "h3")]
    assert titles[:4] == ["Targets", "The peers, a real broker", "Client CPU", "Records per second"]
    assert "Memory over time" in titles
    assert "Latency, linger 5 ms, 1,000 records/s" in titles


def test_the_targets_stand_above_all_plots_with_their_verdicts() -> None:
    runs = [{"label": "forebay", "total_ms": 100.0}]
    text = render({"startup": result_of("startup", runs)})
    rows = [one for one in well_formed(text).iter("tr") if one.get("class") == "met"]
    assert [[cell.text for cell in row] for row in rows] == [
        ["import, construct, first ack", "ms", "<= 150", "100", "yes"]
    ]


def test_a_page_without_results_says_so() -> None:
    assert "There are no results yet." in render({})


def test_of_several_runs_the_one_in_the_middle_is_drawn() -> None:
    (plot,) = page.of_distributions(latency())
    drawn = well_formed(plot).iter("polyline")
    assert len(list(drawn)) == 2
    middle = {**latency(), "runs": [run for run in latency()["runs"] if run["p99"] in (4.0, 5.0)]}
    assert list(page.of_distributions(middle)) == [plot]


def test_the_newest_result_of_each_bench_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    for number, (name, content) in enumerate(
        (
            ("peers-sink-20260101-000002", {"figures": {}, "at": "new"}),
            ("peers-sink-20260101-000001", {"figures": {}, "at": "old"}),
            ("peers-20260101-000001", {"medians": []}),
            ("targets-20260101-000001", {"targets": []}),
        )
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        os.utime(path, (1000 - number, 1000 - number))
    assert {name: result["at"] for name, result in newest().items()} == {"peers-sink": "new"}
