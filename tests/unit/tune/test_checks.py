"""Checks of single values."""

from __future__ import annotations

import pytest

from forebay.errors import ConfigError
from forebay.tune._checks import number, shares, size


@pytest.mark.parametrize(
    ("given", "found"), [(5, 5), ("5", 5), ("1 kB", 1000), ("64 MiB", 64 << 20), ("0.5GiB", 1 << 29)]
)
def test_sizes(given: str | int, found: int) -> None:
    assert size("memory", given) == found


def test_shares_have_the_sum_1() -> None:
    assert shares("sizes", {1: 2, 2: 6}) == ((1, 0.25), (2, 0.75))


@pytest.mark.parametrize("value", [True, "1", None, float("inf")])
def test_what_is_no_number(value: object) -> None:
    with pytest.raises(ConfigError, match="it must be a number of at least 0"):
        number("rate", value, 0)
