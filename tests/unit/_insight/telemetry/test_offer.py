"""_insight.telemetry.offer: what happens until a broker takes metrics; tests/scenario has whole producers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import opentelemetry.proto.metrics  # noqa: F401
import pytest

import forebay._insight.telemetry.reporter  # noqa: F401  # imported here, so that no thread has to
from forebay._insight.telemetry import offer
from forebay._insight.telemetry.instance import InstanceId
from forebay._insight.telemetry.offer import TelemetryOffer, is_installed
from forebay._runtime import threads
from forebay.errors import IllegalStateError, ProducerClosedError
from tests.support.pace import HANG_S

TAKES: Any = SimpleNamespace(ranges={71: (0, 0), 72: (0, 0)})
TAKES_NOT: Any = SimpleNamespace(ranges={0: (3, 13)})


def make() -> tuple[TelemetryOffer, list[Any]]:
    used: list[Any] = []
    return TelemetryOffer(lambda instance: instance, used.append, threads.after_import, ""), used  # type: ignore[arg-type, return-value]


def test_it_begins_once_with_the_first_broker_that_takes_metrics() -> None:
    made, used = make()
    made.heard(TAKES_NOT)
    assert used == [] and "no connected broker takes" in made.obstacle()
    made.heard(TAKES)
    made.heard(TAKES)
    assert used == [made.instance] and "no broker has answered" in made.obstacle()


def test_without_the_package_it_does_not_begin(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(offer, "is_installed", lambda: False)
    made, used = make()
    with caplog.at_level("INFO"):
        made.heard(TAKES)
        made.heard(TAKES)
    assert used == [] and len(caplog.messages) == 1 and offer.MISSING in caplog.text
    with pytest.raises(IllegalStateError, match="opentelemetry-proto"):
        made.check_installed()


def test_an_error_in_its_beginning_reaches_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    def broken(instance: InstanceId) -> Any:
        raise MemoryError

    made = TelemetryOffer(broken, lambda reporter: None, threads.after_import, "")
    made.heard(TAKES)
    made.heard(TAKES)
    assert len(caplog.messages) == 1 and "they cannot be made" in caplog.text
    assert "MemoryError()" in str(made.instance.result.error)


def test_a_beginning_imports_nothing_more() -> None:
    """It is on the sender's thread where the modules are there, and a fork waits for their imports alone."""
    program = """
import importlib, sys
from forebay._insight.telemetry import offer
for name in offer.MODULES:
    importlib.import_module(name)
there = set(sys.modules)
assert offer.is_installed()
print(sorted(set(sys.modules) - there))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=HANG_S)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("found", [None, ImportError("no module named opentelemetry")])
def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    assert is_installed()

    def find_spec(name: str) -> Any:
        if found is not None:
            raise found
        return None

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    assert not is_installed()


def test_the_end_of_the_producer_ends_waits() -> None:
    made, _ = make()
    made.close()
    assert isinstance(made.instance.result.error, ProducerClosedError)
