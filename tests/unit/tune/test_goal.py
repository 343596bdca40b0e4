"""Goals: what they may say, and which limits some figures break."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.errors import ConfigError
from forebay.tune.goal import Goal


def test_limits_that_are_set() -> None:
    goal = Goal(least="latency", p99_ms=50, memory="64 MiB", lost=0)  # type: ignore[arg-type]
    assert goal.limits() == {"p99_ms": 50, "memory": 67_108_864, "lost": 0}


def test_limits_that_figures_break() -> None:
    goal = Goal(p99_ms=50, lost=0)
    assert goal.broken({"p99_ms": 50, "lost": 0}) == []
    assert goal.broken({"p99_ms": 62.5, "lost": 3}) == [
        "p99_ms is 62.5, above 50 (ms of the 99th percentile of latency)",
        "lost is 3, above 0 (records that failed)",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"least": "latncy"}, "did you mean 'latency'?"),
        ({"p99_ms": 0}, "p99_ms is 0; it must be a number above 0"),
        ({"p99_ms": 5, "p50_ms": 6}, "p99_ms is 5.0; it must be at least p50_ms, which is 6"),
        ({"memory": "64 MiBs"}, "a number of bytes, or a text such as '64 MiB'"),
        ({"lost": 0.5}, "lost is 0.5; it must be a whole number of at least 0"),
    ],
)
def test_what_is_refused_and_how(given: Any, said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Goal(**given)
    assert said in refusal.value.message
