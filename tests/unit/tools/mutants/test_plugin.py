"""The choice and the order of tests; ``test_copies`` runs the plugin in pytest."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tools.mutants.plugin import Chosen, file_of


class Item:
    """As much of a test as the plugin uses."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid
        self.limits: list[Any] = []

    def add_marker(self, marker: Any, append: bool) -> None:
        assert not append
        self.limits.append(marker.args)


def chosen(tests: dict[str, float | None], collected: list[str], events: Path) -> tuple[list[Item], list[str]]:
    """What runs of the collected tests, and what does not."""
    items = [Item(name) for name in collected]
    left_out: list[str] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(item.nodeid for item in items))
    config: Any = SimpleNamespace(hook=hook)
    selected: Any = items
    Chosen(tests, str(events)).pytest_collection_modifyitems(config, selected)
    return items, sorted(left_out)


def test_the_chosen_run_in_their_order_with_their_limits(tmp_path: Path) -> None:
    items, left_out = chosen({"b.py::1": 9.0, "a.py::2": None}, ["a.py::1", "a.py::2", "b.py::1"], tmp_path / "events")
    assert [(item.nodeid, item.limits) for item in items] == [("b.py::1", [(9.0,)]), ("a.py::2", [])]
    assert left_out == ["a.py::1"]


def test_all_of_a_file_runs_where_a_chosen_one_has_another_name_now(tmp_path: Path) -> None:
    collected = ["a.py::of[1]", "a.py::of[3]", "b.py::1", "b.py::2"]
    items, left_out = chosen({"b.py::2": None, "a.py::of[1]": 5.0, "a.py::of[2]": 5.0}, collected, tmp_path / "events")
    assert [item.nodeid for item in items] == ["b.py::2", "a.py::of[1]", "a.py::of[3]"]
    assert left_out == ["b.py::1"]


def test_a_test_that_hangs_is_told_from_one_that_fails(tmp_path: Path) -> None:
    events = tmp_path / "events"
    plugin = Chosen({}, str(events))
    plugin.pytest_runtest_logstart("a.py::1")
    for text, failed in (("Failed: Timeout (>9.0s)", True), ("assert 1 == 2", True), ("", False)):
        report: Any = SimpleNamespace(failed=failed, longreprtext=text, nodeid="a.py::1")
        plugin.pytest_runtest_logreport(report)
    wanted = [["start", "a.py::1"], ["time", "a.py::1"], ["failure", "a.py::1"]]
    assert [json.loads(line) for line in events.read_text().splitlines()] == wanted


def test_a_test_knows_its_file() -> None:
    assert file_of("tests/unit/test_a.py::TestA::test_b[c::d]") == "tests/unit/test_a.py"
