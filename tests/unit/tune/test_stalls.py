"""Stalls: what a thread that oversleeps has seen of a machine, and the file of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from forebay.errors import ConfigError
from forebay.testing.clock import ManualClock
from forebay.tune import Stalls, stalls
from forebay.tune.stalls import LONG_MS, MARK, NO_STALLS, watch, watched

SEEN = Stalls(seconds=10.0, long=((5.0, 4.0), (900.5, 30.0)), spread=(*[0.1] * 99, 4.0, 30.0))


def late_by(clock: ManualClock, lates: Callable[[int], float]) -> Callable[[float], None]:
    """A sleep that is so much longer, by its number."""
    numbers = count()
    return lambda seconds: clock.advance(1000 * seconds + lates(next(numbers)))


def test_long_ones_are_moments_and_all_are_in_the_spread() -> None:
    clock = ManualClock()
    found = watch(clock, late_by(clock, lambda number: 20.0 if number % 50 == 49 else 0.1), 10.0)
    assert found.seconds == pytest.approx(10, rel=0.01)
    assert {ms for _when, ms in found.long} == {20.0}
    assert found.rate == pytest.approx(1000 / (50 * 1.1 + 20), rel=0.05)
    assert (found.p50, found.p99, found.longest) == (0.1, 20.0, 20.0)
    first, second = (when for when, _ms in found.long[:2])
    assert first == pytest.approx(49 * 1.1 + 1) and second - first == pytest.approx(49 * 1.1 + 21)


def test_moments_that_are_left_out_do_not_change_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [(100.0 * number, 5.0 if number % 2 else 0.1) for number in range(1, 1001)]
    every = Stalls.of(seen, 100.0)
    monkeypatch.setattr(stalls, "MOST_LONG", 50)
    found = Stalls.of(seen, 100.0)
    assert (len(every.long), every.rate, every.seconds) == (500, 5.0, 100.0)
    assert (len(found.long), found.long) == (50, every.long[:50])
    assert found.rate == pytest.approx(5, rel=0.02)
    assert found.seconds == (9900 + 5) / 1000
    assert found.spread == every.spread


def test_a_spread_may_have_any_number_of_points_in_their_order() -> None:
    found = Stalls(seconds=1.0, spread=(0.1, 0.2, 5.0))
    assert (found.p50, found.p99, found.longest) == (0.2, 5.0, 5.0)
    with pytest.raises(ConfigError, match="stalls spread is .* in order"):
        Stalls(seconds=1.0, spread=(0.2, 0.1))


def test_nothing_was_slept() -> None:
    found = watched(ManualClock(), lambda seconds: None, lambda: True)
    assert (found.long, found.spread, found.p50, found.p99, found.longest, found.rate) == ((), (), 0, 0, 0, 0)


def test_a_sleep_that_ends_early_is_not_late() -> None:
    clock = ManualClock()
    found = watch(clock, lambda seconds: clock.advance(900 * seconds), 0.1)
    assert found.longest == 0


def test_a_file_gives_it_back(tmp_path: Path) -> None:
    path = tmp_path / "stalls.json"
    path.write_text(SEEN.as_json(), encoding="utf-8")
    assert Stalls.from_json(path) == SEEN


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no stalls"),
        ("[1]", "has no stalls"),
        ("{}", "has no stalls"),
        (f'{{"{MARK}": 2}}', "has stalls of version 2; this forebay reads 1"),
        (f'{{"{MARK}": 1, "seconds": 1, "spread": [], "long": [1]}}', "has no stalls"),
        (f'{{"{MARK}": 1, "seconds": 0, "spread": [], "long": []}}', "stalls seconds is 0.0"),
        (f'{{"{MARK}": 1, "seconds": 1, "spread": [-1], "long": []}}', "stalls spread is -1.0"),
        (f'{{"{MARK}": 1, "seconds": 1, "spread": [], "long": [[1, -1]]}}', "stalls long, ms is -1.0"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "stalls.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        Stalls.from_json(path)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Stalls.from_json(tmp_path / "none.json")


def test_its_json_names_the_format_first() -> None:
    found: dict[str, Any] = json.loads(SEEN.as_json())
    assert next(iter(found.items())) == (MARK, 1)


def test_what_is_said_of_it() -> None:
    assert NO_STALLS.described() == "the machine of the producer never stalls"
    often = f"0.2 times a second for {LONG_MS:g} ms or more, 30 ms at most"
    assert SEEN.described() == f"the machine of the producer stalls as it was seen to: {often}"
