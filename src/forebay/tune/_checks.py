"""Checks of the values that describe a load: each refusal is a sentence with the key, the value and what is allowed."""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from forebay.config._secret import shown_value
from forebay.errors import ConfigError

UNITS = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


class TuneError(ConfigError):
    """A description of a load, of brokers or of a goal is not right; one line."""


def number(key: str, value: Any, low: float, high: float = math.inf, *, above: bool = False) -> float:
    """A finite number from ``low`` to ``high``.

    Args:
        above: ``low`` itself is refused.
    """
    # Compared, not converted: a whole number may be too large for a float.
    good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if not good or value > high or value < low or (above and value == low):
        raise refused(key, value, f"a number {_range(low, high, above=above)}")
    return float(value)


def whole(key: str, value: Any, low: int, high: float = math.inf) -> int:
    """A whole number from ``low`` to ``high``."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise refused(key, value, f"a whole number {_range(low, high)}")
    return value


def choice(key: str, value: Any, allowed: Iterable[str]) -> str:
    """One of the words in ``allowed``."""
    words = tuple(allowed)
    if not isinstance(value, str) or value not in words:
        near = difflib.get_close_matches(value, words, n=1) if isinstance(value, str) else []
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise refused(key, value, f"one of {', '.join(words)}{hint}")
    return value


def size(key: str, value: Any, low: int = 1) -> int:
    """Bytes: a whole number, or a text such as ``64 MiB``."""
    if isinstance(value, str):
        found = SIZE.fullmatch(value.strip().lower())
        if found is None or found[2] not in UNITS:
            raise refused(key, value, "a number of bytes, or a text such as '64 MiB'")
        value = round(float(found[1]) * UNITS[found[2]])
    return whole(key, value, low, 1 << 40)


def shares(key: str, values: Mapping[int, float]) -> tuple[tuple[int, float], ...]:
    """The values with their shares of 1, in order; the shares given may have any sum over 0."""
    found = [(value, number(f"{key}, the share of {value}", share, 0)) for value, share in values.items()]
    total = sum(share for _value, share in found)
    if total <= 0:
        raise refused(key, dict(values), "a table with a share over 0")
    return tuple((value, share / total) for value, share in found)


def refused(key: str, value: Any, allowed: str) -> TuneError:
    """The error for a value."""
    return TuneError(f"{key} is {shown_value(value)}; it must be {allowed}")


def _range(low: float, high: float, *, above: bool = False) -> str:
    begin = f"above {low:g}" if above else f"from {low:g}"
    if math.isinf(high):
        return begin if above else f"of at least {low:g}"
    return f"{begin} to {high:g}"
