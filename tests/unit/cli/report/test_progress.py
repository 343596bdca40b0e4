"""cli.report.progress: lines alone, a bar on a terminal, and the package's log among them."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable

import pytest

from forebay._runtime.manual_clock import ManualClock
from forebay.cli.report.progress import CLEAR, NOTICE_S, REST_MS, Bar, Display, Line, LogLines, display


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_is_no_terminal_gets_lines_alone() -> None:
    stream = io.StringIO()
    with display(lambda: "", stream=stream) as shown:
        shown.show("working", 1, 2)
        shown.error("broken")
    assert type(shown) is Display
    assert stream.getvalue() == "forebay: error: broken\n"
    assert type(display(lambda: "", wanted=False, stream=Terminal())) is Display


def test_a_terminal_gets_a_bar_with_lines_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    with display(lambda: "7 done", stream=stream) as shown:
        shown.line("x [red] " + "y" * 200)
        shown.show("a [file]", 1, 4)
    text = stream.getvalue()
    assert isinstance(shown, Bar)
    assert "x [red] " + "y" * 200 in text
    assert "7 done" in text and "a [file]" in text and "25%" in text


def test_the_log_becomes_lines_and_is_as_before_afterwards() -> None:
    log = logging.getLogger("forebay")
    before = (log.level, log.propagate, list(log.handlers))
    stream = io.StringIO()
    with LogLines(Display(stream), 1):
        log.getChild("x").warning("slow %d", 5)
        log.getChild("x").info("hidden")
    assert stream.getvalue() == "forebay: warning: slow 5\n"
    assert (log.level, log.propagate, log.handlers) == before


def test_without_v_only_what_nobody_expected() -> None:
    stream = io.StringIO()
    with LogLines(Display(stream)):
        log = logging.getLogger("forebay.sender")
        log.warning("hidden")
        log.error("a batch failed: hidden, each record tells it")
        try:
            raise ValueError("oops")
        except ValueError:
            log.exception("Uncaught")
    assert stream.getvalue() == "forebay: error: Uncaught: ValueError('oops')\n"


def test_with_vvv_there_are_tracebacks() -> None:
    stream = io.StringIO()
    with LogLines(Display(stream), 9):
        try:
            raise ValueError("oops")
        except ValueError:
            logging.getLogger("forebay.sender").debug("seen", exc_info=True)
    assert stream.getvalue().startswith("forebay: debug: seen: ValueError('oops')\nTraceback")


class Later:
    """Stands for a timer: the test says when it is time."""

    def __init__(self, seconds: float, function: Callable[[], object]) -> None:
        self.seconds, self.function = seconds, function
        self.state = "made"
        LATER.append(self)

    def start(self) -> None:
        self.state = "started"

    def cancel(self) -> None:
        self.state = "cancelled"


LATER: list[Later] = []


def test_who_waits_is_told_after_a_second_what_stands_in_the_way() -> None:
    stream = io.StringIO()
    log = logging.getLogger("forebay.network")
    with LogLines(Display(stream)) as logs:
        with logs.waiting_for("a topic", Later):
            assert (LATER[-1].seconds, LATER[-1].state) == (NOTICE_S, "started")
            LATER[-1].function()
        assert LATER[-1].state == "cancelled"
        log.warning("[Producer clientId=x] refused by %s", "a:1")
        log.info("not in the way")
        with logs.waiting_for("a topic", Later):
            LATER[-1].function()
        with logs.waiting_for("a coordinator", Later):
            LATER[-1].function()
    assert stream.getvalue().splitlines() == [
        "forebay: waiting for a topic: no answer yet",
        "forebay: waiting for a topic: refused by a:1",
        "forebay: waiting for a coordinator: no answer yet",
    ]


def test_a_line_is_written_in_its_place_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    clock, stream = ManualClock(), Terminal()
    with Line(clock.now, stream) as line:
        line.show("first")
        line.show("too soon")
        clock.advance(REST_MS)
        line.show("a text that is longer than the terminal")
    assert stream.getvalue() == f"{CLEAR}first{CLEAR}a text th{CLEAR}"


def test_a_line_that_is_not_on_a_terminal_or_shows_nothing_writes_nothing() -> None:
    for stream in (io.StringIO(), Terminal()):
        with Line(ManualClock().now, stream) as line:
            if not stream.isatty():
                line.show("working")
        assert stream.getvalue() == ""
