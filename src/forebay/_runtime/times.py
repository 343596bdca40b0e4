"""Times as users give them: a record's timestamp in milliseconds, or an aware datetime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.errors import IllegalArgumentError

if TYPE_CHECKING:
    from datetime import datetime

    Timestamp = int | datetime


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
