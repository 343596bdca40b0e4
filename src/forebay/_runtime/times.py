"""Times as users give them: seconds or a timedelta for a wait, ms or an aware datetime for a record's timestamp."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from forebay.errors import IllegalArgumentError

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    Timestamp = int | datetime
    Seconds = float | timedelta


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a number of Python's, or NumPy's float; a truth value is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def seconds(timeout: Seconds) -> float:
    """The seconds of a wait or a limit.

    Raises:
        TypeError: neither a number nor a timedelta; a truth value and a text are none, whatever they look like.
        IllegalArgumentError: negative, or not a number.
    """
    if not is_number(timeout):
        from datetime import timedelta  # as below

        if not isinstance(timeout, timedelta):
            kind = type(timeout).__name__
            raise TypeError(f"The timeout must be seconds (int or float) or a timedelta, got {kind}: {timeout!r}")
        timeout = timeout.total_seconds()
    if timeout < 0:
        raise IllegalArgumentError(f"The timeout cannot be negative: {timeout}")
    if timeout != timeout:
        raise IllegalArgumentError(f"The timeout must be a number of seconds: {timeout}")
    return timeout


def limit(timeout: Seconds | None) -> float | None:
    """``seconds``; None stays None, which each call explains."""
    return None if timeout is None else seconds(timeout)


def unix_ms(timestamp: object) -> int:
    """Unix time in whole ms; what is below a millisecond is cut off, as a record has no room for it.

    Raises:
        TypeError: neither an int nor a datetime.
        IllegalArgumentError: a datetime without a time zone.
    """
    from datetime import UTC, datetime, timedelta  # 2 ms, for those who use it

    if isinstance(timestamp, int) and not isinstance(timestamp, bool):
        return timestamp
    if not isinstance(timestamp, datetime):
        raise TypeError(
            f"timestamp must be an int (ms since 1970), an aware datetime or None, got {type(timestamp).__name__}"
        )
    if timestamp.utcoffset() is None:
        raise IllegalArgumentError(
            f"Invalid timestamp: {timestamp} has no time zone, so it is no moment; give datetime.now(UTC), or "
            "astimezone() of it for this machine's zone"
        )
    return int((timestamp - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1))
