"""Which form of the package the session runs, said once at its head; and which tests need three brokers.

Random tests have no time limit: on a busy machine an example takes as long as it takes, which says nothing of the code.
"""

from __future__ import annotations

import os
import platform
import signal

import pytest
from hypothesis import HealthCheck, settings

import forebay
from forebay.testing import broker
from tests.support import pace

settings.register_profile("forebay", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("forebay")


def pytest_configure(config: pytest.Config) -> None:
    # pytest-timeout reads it after this; the command line and its variable go first.
    if config.option.timeout is None and "PYTEST_TIMEOUT" not in os.environ:
        config.option.timeout = pace.TEST_S
    for name in ("START_TIMEOUT_S", "CALL_TIMEOUT_S", "STOP_TIMEOUT_S"):  # of brokers in processes of their own
        setattr(broker, name, pace.within(getattr(broker, name)))
    # A shell starts what stands before `&` with Ctrl-C ignored, and every process of a test would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [
        f"forebay: {forebay.implementation}, {platform.python_implementation()} {platform.python_version()}",
        f"pace: {pace.factor():g} times the time of a quiet machine (tests/support/pace.py)",
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what takes the three real brokers, so that the test command can run it beside the rest."""
    for item in items:
        if "three_kafka" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.three_brokers)
