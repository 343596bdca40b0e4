"""The page of an advice and of a prediction: all that it says, escaped, and the same bytes for the same seed."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from forebay.tune import Advice, Brokers, Goal, Outage, Prediction, Workload, advise, predict, report
from forebay.tune.racing import Effort
from forebay.tune.report import advice_page, prediction_page

QUICK = Effort(first_seeds=2, first_seconds=0.3, last=2, last_seeds=2, last_seconds=0.5, trial_seconds=0.3)
LOAD = Workload(rate=500, sizes=[500, 1200], topics={"orders": 4})
AWAY = Brokers.alike(2, [Outage(node=2, seconds=(1, 2), kind="refused")])


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text.removeprefix("<!doctype html>"))


def texts(root: ET.Element, *tags: str) -> list[str]:
    return ["".join(one.itertext()) for one in root.iter() if one.tag in tags]


def rows_below(root: ET.Element, head: str) -> list[list[str]]:
    """Cells of the table that follows a heading."""
    body = root.find("body")
    assert body is not None
    at = next(number for number, one in enumerate(body) if one.tag == "h2" and one.text == head)
    table = next(found for one in body[at + 1 :] for found in one.iter("table"))
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")][1:]


@pytest.fixture(scope="module")
def found() -> Advice:
    """Of a load with an outage."""
    settings = {"linger.ms": 0, "buffer.memory": 1 << 20}
    return advise(LOAD, Goal(p99_ms=40), settings=settings, brokers=AWAY, effort=QUICK, seed=3)


@pytest.fixture(scope="module")
def said() -> Prediction:
    return predict(LOAD, {"linger.ms": 5}, brokers=AWAY, seconds=4)


def test_an_advice_has_all_its_parts(found: Advice) -> None:
    root = parsed(advice_page(dataclasses.asdict(found)))
    assert not [one for one in root.iter() if one.tag in ("script", "link", "img")]
    assert texts(root, "h1", "h2") == [
        "Advice for a producer", "Set", "Why", "In pictures", "What if", "Outages", "Brokers", "Tried",
        "How far to trust it",
    ]  # fmt: skip
    assert texts(root, "pre") == ["".join(f"{name}={value}\n" for name, value in found.settings.items())]
    plots = ["Latency against requests", "How long records take", "Where the latency is spent", "Memory over time"]
    labels = [one.get("aria-label", "") for one in root.iter("svg")]
    assert [label.partition(".")[0] for label in labels] == plots
    assert len(list(root.iter("details"))) == 4
    facts = dict(zip(texts(root, "dt"), texts(root, "dd"), strict=False))
    assert facts["load"] == "500 records/s, values of 500 and 1,200 B, orders (4); 2 nodes, 1 producer"
    assert facts["goal"] == "the least requests; p99 at most 40 ms"
    assert facts["simulated"].endswith("seed 3")
    assert facts["price"] and not facts["price"].startswith("price")


def test_tables_have_the_figures_of_the_advice(found: Advice) -> None:
    root = parsed(advice_page(dataclasses.asdict(found)))
    rows = rows_below(root, "What if")
    assert len(rows) == len(found.what_if) and rows[0][0] == "as proposed"
    assert {"buffer.memory 512 KiB", "buffer.memory 2 MiB"} <= {row[0] for row in rows}
    assert rows[0][2] == f"{found.what_if[0].p99_ms:,.1f}"
    assert [row[:2] for row in rows_below(root, "Brokers")] == [
        [label, node] for label in ("today", "proposed") for node in "12"
    ]
    assert [row[1] for row in rows_below(root, "Outages")] == ["node 2 refused, 1 to 2 s"] * 2
    assert [row[0] for row in rows_below(root, "Tried")] == list(found.trials)
    bands = [one for one in root.iter("rect") if one.get("class") == "band"]
    assert len(bands) == 1


def test_the_marked_points_are_those_of_the_simulation(found: Advice) -> None:
    root = parsed(advice_page(dataclasses.asdict(found)))
    front = next(one for one in root.iter("details"))
    rows = [["".join(cell.itertext()) for cell in row] for row in front.iter("tr")][1:]
    assert [row[0] for row in rows[:4]] == ["today", "defaults", "proposed", "front"]
    assert rows[2][2:4] == [f"{found.figures['best'].p99:,.1f}", f"{found.figures['best'].requests:,.1f}"]
    assert len(rows) == 3 + len(found.front)


def test_settings_that_are_left_have_one_run_and_nothing_to_copy() -> None:
    load = Workload(rate=1000, sizes=200, topics={"t": 4})
    once = advise(load, Goal(p99_ms=40), effort=QUICK)
    again = advise(load, Goal(p99_ms=40), effort=QUICK, settings=once.settings)
    assert again.verdict == "leave"
    root = parsed(advice_page(dataclasses.asdict(again)))
    assert "Leave the settings as they are" in texts(root, "h2") and texts(root, "pre") == []
    assert any(text.startswith("Leave it: ") for text in texts(root, "p"))
    assert {row[0] for row in rows_below(root, "Brokers")} == {"today"}


def test_the_distribution_goes_down_to_the_last_record() -> None:
    """In steps, because many records may take the same time."""
    found = report._longer([(1.0, 60), (2.0, 39), (5.0, 101)])
    assert found == [(1.0, 100.0), (1.0, 70.0), (2.0, 70.0), (2.0, 50.5), (5.0, 50.5), (5.0, 0.5)]
    assert report._longer([(0.0, 5), (1.0, 5)]) == [(1.0, 50.0), (1.0, 10.0)]
    assert report._longer([]) == []
    assert len(report._longer([(number / 1000, 1) for number in range(1, 100_000)])) < 4000


def test_what_cannot_be_met_says_what_is_nearest(found: Advice) -> None:
    values = {**dataclasses.asdict(found), "verdict": "unmet", "settings": {}}
    heads = texts(parsed(advice_page(values)), "h2")
    assert "Nothing that was tried keeps the goal; the nearest is what is set today" in heads


def test_a_prediction_has_its_page(said: Prediction) -> None:
    root = parsed(prediction_page(dataclasses.asdict(said)))
    assert texts(root, "h1", "h2") == [
        "Prediction for a producer", "In pictures", "Outages", "Brokers", "How far to trust it",
    ]  # fmt: skip
    assert len(list(root.iter("svg"))) == 3
    cells = texts(root, "td")
    assert any(f"{said.latency.p99:,.2f}" in cell for cell in cells)
    assert any("linger over" in cell for cell in cells)


def test_an_outage_from_the_beginning_is_not_said_to_be_over_at_once() -> None:
    brokers = Brokers.alike(1, [Outage(node=1, seconds=(0, 1))])
    page = prediction_page(dataclasses.asdict(predict(LOAD, brokers=brokers, seconds=3)))
    assert rows_below(parsed(page), "Outages")[0][3] == "not seen in the simulated time"


def test_all_that_is_given_is_escaped(said: Prediction) -> None:
    values: dict[str, Any] = dataclasses.asdict(said)
    bad = "<script>alert('&')</script>"
    values |= {"load": (bad,), "settings": {bad: bad}, "assumptions": (bad,), "failed": {bad: 3}}
    text = prediction_page(values)
    assert "<script" not in text
    assert sum(bad in cell for cell in texts(parsed(text), "dd", "td", "li")) == 4


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, said: Prediction, found: Advice) -> None:
    again = predict(LOAD, {"linger.ms": 5}, brokers=AWAY, seconds=4)
    for place, each in (("a", said), ("b", again), ("c", found)):
        each.write_report(tmp_path / place)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "c").read_bytes().startswith(b"<!doctype html>")
    with pytest.raises(OSError, match="No such file"):
        said.write_report(tmp_path / "none" / "a")


def test_a_load_of_nothing_still_has_a_page() -> None:
    """No record was acknowledged, so there is no latency to be drawn."""
    root = parsed(prediction_page(dataclasses.asdict(predict(Workload(rate=10, sizes=2_000_000), seconds=1))))
    assert "MESSAGE_TOO_LARGE" in "".join(texts(root, "td"))
