"""Times as users give them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from math import inf

import pytest

from forebay._runtime.times import limit, seconds, unix_ms
from forebay.errors import IllegalArgumentError


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (5, 5),
        (-1, -1),
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1970, 1, 1, 0, 0, 0, 1999, tzinfo=UTC), 1),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), -1),
        (datetime(2026, 1, 2, 2, tzinfo=timezone(timedelta(hours=2))), 1_767_312_000_000),
        (datetime.max.replace(tzinfo=UTC), 253_402_300_799_999),
    ],
)
def test_a_moment_in_ms(given: object, expected: int) -> None:
    assert unix_ms(given) == expected


@pytest.mark.parametrize("given", [True, 1.5, "2026-01-02", None, timedelta(1), datetime(2026, 1, 2).date()])
def test_what_is_no_moment_is_named(given: object) -> None:
    with pytest.raises(
        TypeError, match=rf"an int \(ms since 1970\), an aware datetime or None, got {type(given).__name__}"
    ):
        unix_ms(given)


def test_a_datetime_without_a_zone_is_refused() -> None:
    with pytest.raises(IllegalArgumentError, match=r"2026-01-02 00:00:00 has no time zone"):
        unix_ms(datetime(2026, 1, 2))


@pytest.mark.parametrize(("given", "expected"), [(0, 0), (1.5, 1.5), (timedelta(minutes=2), 120), (inf, inf)])
def test_a_wait_in_seconds(given: float | timedelta, expected: float) -> None:
    assert seconds(given) == expected
    assert limit(given) == expected
    assert limit(None) is None
