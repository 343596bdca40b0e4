"""pytest's side, loaded by ``-p``: lists tests, notes which lines each reaches, or runs chosen ones in order.

A JSON file, named by an environment variable, says which of the three.  Tests may start a pytest of their own, which
inherits the variable; without ``-p`` it means nothing there.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from coverage import Coverage

VARIABLE = "FOREBAY_MUTANTS_PLAN"


def pytest_configure(config: pytest.Config) -> None:
    plan = json.loads(Path(os.environ[VARIABLE]).read_text(encoding="utf-8"))
    kinds: dict[str, Any] = {"list": Lister, "reach": Reach, "choose": Chosen}
    ((kind, values),) = plan.items()
    config.pluginmanager.register(kinds[kind](**values))


class Lister:
    """Writes the names of the tests that pytest selects."""

    def __init__(self, names: str) -> None:
        self._names = Path(names)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._names.write_text(json.dumps([item.nodeid for item in session.items]), encoding="utf-8")


class Reach:
    """Runs all tests under coverage, one context each, and writes how long each takes that is not skipped."""

    def __init__(self, data: str, seconds: str, package: str) -> None:
        self._seconds = Path(seconds)
        self._taken: dict[str, float] = {}
        self._failed: set[str] = set()
        self._skipped: set[str] = set()
        self._coverage = self._started(data, package)

    def _started(self, data: str, package: str) -> Coverage:
        # The only core with contexts on every Python.
        os.environ["COVERAGE_CORE"] = "ctrace"
        from coverage import Coverage

        coverage = Coverage(data_file=data, config_file=False, include=[f"{package}/*"], messages=False)
        coverage.set_option("run:relative_files", True)
        coverage.start()
        return coverage

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._coverage.switch_context(item.nodeid)
        began = time.monotonic()
        try:
            return (yield)
        finally:
            self._taken[item.nodeid] = round(time.monotonic() - began, 3)
            self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.skipped:
            self._skipped.add(report.nodeid)

    def pytest_unconfigure(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        ran = {name: taken for name, taken in self._taken.items() if name not in self._skipped}
        told = {
            "passed": {name: taken for name, taken in ran.items() if name not in self._failed},
            "failed": {name: taken for name, taken in ran.items() if name in self._failed},
        }
        self._seconds.write_text(json.dumps(told), encoding="utf-8")


class Chosen:
    """Runs the chosen tests in their order, each with a time limit, and notes what happens, a line for each event.

    Where a mutant changes the names of generated tests, chosen ones are missing: all tests of their files then run.
    """

    def __init__(self, tests: dict[str, float | None], events: str) -> None:
        self._tests = tests
        self._events = Path(events)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        order = {name: place for place, name in enumerate(self._tests)}
        missing = {file_of(name) for name in set(order) - {item.nodeid for item in items}}
        chosen = [item for item in items if item.nodeid in order or file_of(item.nodeid) in missing]
        left_out = set(items) - set(chosen)
        items[:] = sorted(chosen, key=lambda item: order.get(item.nodeid, len(order)))
        config.hook.pytest_deselected(items=[*left_out])
        for item in items:
            if (limit := self._tests.get(item.nodeid)) is not None:
                item.add_marker(pytest.mark.timeout(limit), append=False)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._note("import", report.nodeid)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._note("start", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._note("time" if "Failed: Timeout" in report.longreprtext else "failure", report.nodeid)

    def _note(self, event: str, name: str) -> None:
        with self._events.open("a", encoding="utf-8") as file:
            file.write(json.dumps([event, name]) + "\n")


def file_of(test: str) -> str:
    """The file of a test, by the test's name."""
    return test.partition("::")[0]
