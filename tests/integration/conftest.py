"""The brokers of integration tests, see tests/support/fixtures.py; and which files one process of several runs."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from tests.support.fixtures import any_broker, embedded, kafka, legacy_kafka, proxied, read_back, strict_kafka, topic
from tests.support.secure import secure
from tests.support.three import three, three_brokers, three_kafka

__all__ = [
    "any_broker",
    "embedded",
    "kafka",
    "legacy_kafka",
    "proxied",
    "read_back",
    "secure",
    "strict_kafka",
    "three",
    "three_brokers",
    "three_kafka",
    "topic",
]

# The usual broker is not among them: nearly every file takes it, so each process has its own.
ONE_PROCESS = re.compile(r"\b(secure|strict_kafka): ")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """As ``--dist loadfile``, but files that share another broker go to one process, so that it is started once."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    @cache
    def together(file: str) -> str:
        found = ONE_PROCESS.search((config.rootpath / file).read_text())
        return found[1] if found else file

    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = lambda test: together(test.split("::")[0])
    return scheduler
