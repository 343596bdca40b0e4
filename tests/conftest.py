"""Which form of the package the session runs, said once at its head; and the marks by which commands choose tests.

Random tests have no time limit: on a busy machine an example takes as long as it takes, which says nothing of the code.
"""

from __future__ import annotations

import gc
import os
import platform
import signal

import pytest
from hypothesis import HealthCheck, settings

import forebay
from forebay.testing import broker
from tests.support import pace
from tests.support.examples import VARIABLE, examples, size

RARE = {"three_kafka": "three brokers", "legacy_kafka": "an old Kafka"}
"""Fixtures whose tests are of the rest, and why."""


def pytest_configure(config: pytest.Config) -> None:
    few = [HealthCheck.too_slow]
    settings.register_profile("forebay", max_examples=examples(100), deadline=None, suppress_health_check=few)
    settings.load_profile("forebay")
    # pytest-timeout reads it after this; the command line and its variable go first.
    if config.option.timeout is None and "PYTEST_TIMEOUT" not in os.environ:
        config.option.timeout = pace.TEST_S
    for name in ("START_TIMEOUT_S", "CALL_TIMEOUT_S", "STOP_TIMEOUT_S"):  # of brokers in processes of their own
        setattr(broker, name, pace.within(getattr(broker, name)))
    # A shell starts what stands before `&` with Ctrl-C ignored, and every process of a test would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header(config: pytest.Config) -> list[str]:
    form = f"{forebay.implementation}, {platform.python_implementation()} {platform.python_version()}"
    return [
        f"forebay: {form}; {VARIABLE}={size()}",
        f"pace: {pace.factor():g} times the time of a quiet machine (tests/support/pace.py)",
    ]


def pytest_collection_finish() -> None:
    """Sets apart what was collected: each collection of garbage would walk through all of it, amid somebody's test."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what a command chooses by, where the test itself shows it."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        for fixture in RARE.keys() & fixtures:
            item.add_marker(pytest.mark.rest(RARE[fixture]))
        if "three_kafka" in fixtures:
            item.add_marker(pytest.mark.three_brokers)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.sized)
        for mark in item.iter_markers("rest"):
            if len(mark.args) != 1 or mark.kwargs or not isinstance(mark.args[0], str):
                raise pytest.UsageError(f"{item.nodeid}: the mark rest takes one argument, the reason")
