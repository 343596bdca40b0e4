"""What a delivery callback may do to its thread.  Leaving a forked child is shown by the integration tests of fork."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

import forebay
from forebay._delivery.callback_thread import (
    WAY_IN,
    leave_forked_child,
    note_sender_thread,
    on_sender_thread,
    report_briefly,
    report_safely,
)
from forebay._delivery.result import BatchResult


def test_only_a_thread_that_said_so_is_a_sender() -> None:
    seen: list[bool] = []

    def run() -> None:
        seen.append(on_sender_thread())
        note_sender_thread()
        seen.append(on_sender_thread())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [False, True] and not on_sender_thread()


def test_another_thread_is_not_ended() -> None:
    leave_forked_child(SystemExit(3))  # would end this process
    assert not on_sender_thread()


def test_an_error_without_words_is_reported_by_its_class(caplog: pytest.LogCaptureFixture) -> None:
    class Wordless(ValueError):
        def __repr__(self) -> str:
            raise RuntimeError("no words")

        __str__ = __repr__

    with caplog.at_level(logging.ERROR, "forebay.callbacks"):
        try:
            raise Wordless
        except Wordless as error:
            report_briefly(error, BatchResult("t", 3))
    assert caplog.messages == ["A delivery callback for t-3 raised Wordless"]
    assert "Traceback" in caplog.text and "raise Wordless" in caplog.text


def test_a_log_filter_that_raises_is_nobody_s_business() -> None:
    def broken(record: logging.LogRecord) -> bool:
        raise ValueError("no")

    logger = logging.getLogger("forebay.callbacks")
    logger.addFilter(broken)
    try:
        report_briefly(ValueError(), BatchResult("t", 3))
    finally:
        logger.removeFilter(broken)
    assert broken not in logger.filters


def test_what_cannot_be_reported_is_told_briefly(caplog: pytest.LogCaptureFixture) -> None:
    told: list[object] = []

    def report(raised: BaseException, result: object) -> None:
        told.append(result)
        raise SystemExit

    result = BatchResult("t", 3)
    report_safely(report, ValueError("x"), result)
    assert told == [result]
    assert "A delivery callback for t-3 raised ValueError" in caplog.text


def test_the_way_to_a_callback_names_modules_that_are_there() -> None:
    sources = Path(forebay.__file__).parents[1]
    assert [name for name in WAY_IN if not (sources / name).exists()] == []
