"""How a command ends: exit codes, and one line on stderr for an error.

0: success.  1: records or input failed.  2: the command line, an option, a topic's name or a named file is wrong.  130
and 143: Ctrl-C or SIGTERM ended it.  Only ``FOREBAY_DEBUG=1`` shows a traceback.
"""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator, Mapping

from forebay.errors import ConfigError, IllegalArgumentError, InvalidTopicError, KafkaError
from forebay.errors._base import printable

OK, FAILED, USAGE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
PREFIX = "forebay: error: "
DEBUG = "FOREBAY_DEBUG"


class CommandError(Exception):
    """Ends a command; its text is a complete line for the user."""

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextlib.contextmanager
def writing(path: object, exit_code: int = USAGE) -> Iterator[None]:
    """Around what writes a file.

    Raises:
        CommandError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}", exit_code) from None


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


def one_line(text: str) -> str:
    """The text without line breaks and runs of blanks, and without what a terminal obeys."""
    return printable(" ".join(text.split()), None)


def reason(error: BaseException) -> str:
    """The error, and its cause if known, as one line."""
    if not isinstance(error, KafkaError):
        return one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
    text = error.message
    cause = error.__cause__
    if isinstance(cause, KafkaError) and cause.message not in text:
        text = f"{text.rstrip('.')}: {cause.message}"
    elif (last := error.context.get("last_error")) is not None and str(last) not in text:
        text = f"{text.rstrip('.')}: last error {last}"
    return one_line(text)


def exit_code_of(error: BaseException) -> int:
    """The command's exit code for an error."""
    if isinstance(error, CommandError):
        return error.exit_code
    if isinstance(error, Terminated):
        return TERMINATED
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return USAGE if isinstance(error, (ConfigError, IllegalArgumentError, InvalidTopicError)) else FAILED


def line_for(error: BaseException) -> str:
    """The line for the user, without the prefix."""
    if isinstance(error, CommandError):
        return one_line(str(error))
    if isinstance(error, KafkaError):
        return reason(error)
    if isinstance(error, ImportError):
        return one_line(str(error))  # compiled modules or a package of an extra are missing; it says how to get them
    if isinstance(error, OSError) and error.strerror:
        return one_line(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    # Only a bug of this package comes here.
    return f"unexpected {reason(error)} ({DEBUG}=1 shows where)"


def told(error: BaseException, environment: Mapping[str, str] = os.environ) -> str:
    """Everything that goes to stderr for ``error``, ending in a newline."""
    shown = "".join(traceback.format_exception(error)) if environment.get(DEBUG) == "1" else ""
    return f"{shown}{PREFIX}{line_for(error)}\n"
