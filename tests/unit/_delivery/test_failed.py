"""The future of a record that never reached a batch."""

from __future__ import annotations

import pytest

from forebay._delivery.failed import failed_future
from forebay.errors import KafkaError
from forebay.model import RecordMetadata
from tests.unit._accumulator.shelf import quiet


def test_a_failed_future_has_run_its_callback() -> None:
    calls: list[tuple[object, object]] = []
    error = KafkaError("too large")
    future = failed_future("t", -1, error, lambda metadata, told: calls.append((metadata, told)), quiet)
    ((metadata, told),) = calls
    assert metadata == RecordMetadata("t", -1, -1, -1, -1, -1)
    assert future.done() and repr(future.exception(0)) == repr(told) == repr(error)


def test_ctrl_c_in_its_callback_reaches_the_caller() -> None:
    """It runs on the caller's own thread."""

    def interrupted(metadata: object, error: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        failed_future("t", 0, KafkaError("too large"), interrupted, quiet)


def test_what_else_the_callback_raises_is_reported() -> None:
    reported: list[BaseException] = []

    def bad(metadata: object, error: object) -> None:
        raise ValueError("of the callback")

    future = failed_future("t", 0, KafkaError("x"), bad, lambda error, result: reported.append(error))
    assert [str(error) for error in reported] == ["of the callback"] and future.done()
