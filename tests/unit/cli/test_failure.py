"""cli.failure: one line and an exit code for whatever ends a command."""

from __future__ import annotations

import pytest

from forebay.cli.failure import CommandError, Terminated, exit_code_of, line_for, reason, told
from forebay.errors import (
    ConfigError,
    DisconnectError,
    IllegalArgumentError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandError("x"), 2),
        (CommandError("x", 1), 1),
        (ConfigError("x"), 2),
        (IllegalArgumentError("x"), 2),
        (InvalidTopicError("x"), 2),
        (KafkaTimeoutError("x"), 1),
        (OSError(5, "x"), 1),
        (ValueError("x"), 1),
        (KeyboardInterrupt(), 130),
        (Terminated(), 143),
    ],
)
def test_exit_codes(error: BaseException, code: int) -> None:
    assert exit_code_of(error) == code


def test_a_reason_has_what_was_behind_it_but_not_twice() -> None:
    error = KafkaTimeoutError("Topic t is missing.", phase="waiting", last_error="DisconnectError: refused")
    assert reason(error) == "Topic t is missing: last error DisconnectError: refused"
    error.__cause__ = DisconnectError("refused")
    assert reason(error) == "Topic t is missing: refused"
    error.__cause__ = KafkaError("Topic t is missing.")
    error.context.clear()
    assert reason(error) == "Topic t is missing."


def test_lines_are_one_line() -> None:
    assert line_for(CommandError("a\nb   c")) == "a b c"
    assert line_for(KafkaError("a\r\nb", node=1)) == r"a\r\nb"
    assert line_for(FileNotFoundError(2, "No such file", "x.txt")) == "x.txt: No such file"
    assert line_for(ImportError("not compiled: run\nthis")) == "not compiled: run this"
    assert line_for(KeyError("k")) == "unexpected KeyError: 'k' (FOREBAY_DEBUG=1 shows where)"


def test_a_traceback_only_where_it_is_asked_for() -> None:
    try:
        raise CommandError("broken")
    except CommandError as error:
        assert told(error, {}) == "forebay: error: broken\n"
        shown = told(error, {"FOREBAY_DEBUG": "1"})
    assert shown.startswith("Traceback") and shown.endswith("forebay: error: broken\n")
