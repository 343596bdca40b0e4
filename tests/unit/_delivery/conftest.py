"""Fixtures of the tests of outcomes."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from forebay._delivery import unheard
from tests.unit._delivery.failures import Lines


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """What other tests left is not said here, and nothing of here elsewhere."""
    unheard.forget_left()
    caplog.set_level(logging.WARNING)
    yield Lines(caplog)
    unheard.forget_left()
