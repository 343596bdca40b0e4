"""Which form of the package the session runs, said once at its head; and which tests need three brokers.

Random tests have no time limit: on a busy machine an example takes as long as it takes, which says nothing of the code.
"""

from __future__ import annotations

import platform
import signal

import pytest
from hypothesis import HealthCheck, settings

import forebay

settings.register_profile("forebay", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("forebay")


def pytest_configure() -> None:
    # A shell starts what stands before `&` with Ctrl-C ignored, and every process of a test would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header(config: pytest.Config) -> str:
    return f"forebay: {forebay.implementation}, {platform.python_implementation()} {platform.python_version()}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what takes the three real brokers, so that the test command can run it beside the rest."""
    for item in items:
        if "three_kafka" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.three_brokers)
