"""The client's own costs: the parts of what rounds took, and what is kept of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.errors import KafkaTimeoutError
from forebay.testing.clock import ManualClock
from forebay.tune import Costs, Stalls, own_costs
from forebay.tune._checks import TuneError
from forebay.tune.own_costs import (
    LEAST_MS,
    MANY,
    SEVERAL,
    Rounds,
    cache_file,
    costs_of,
    keep,
    keep_stalls,
    kept,
    kept_stalls,
    machine,
    options,
)

TRUE = Costs(wake=0.03, turn=0.02, request=0.01, batch=0.004, record=0.0005)


def round_of(requests: int, batches: int) -> float:
    return TRUE.of_turn(requests, batches) + batches * TRUE.record


def test_the_parts_are_found_again() -> None:
    one, several, many = round_of(1, 1), round_of(1, SEVERAL), round_of(1, MANY)
    found = costs_of(TRUE.record, one, several, many, round_of(SEVERAL, SEVERAL), TRUE.wake)
    assert found == TRUE


def test_a_part_that_noise_made_negative_is_small() -> None:
    same = 0.03
    found = costs_of(0.0005, same, same, same, same, -0.01)
    assert (found.wake, found.request, found.batch) == (LEAST_MS, LEAST_MS, LEAST_MS)
    assert found.turn == 0.0295


class Immediate:
    """A producer whose records are acknowledged at once; a record takes 1 ms."""

    def __init__(self, clock: ManualClock, error: Exception | None = None) -> None:
        self.sent: list[int] = []
        self._clock = clock
        self._error = error
        self._line: list[Callable[[Any], None]] = []
        self._running = False

    def send(self, topic: str, value: bytes, *, partition: int, on_delivery: Callable[[Any], None]) -> None:
        self.sent.append(partition)
        self._line.append(on_delivery)
        if self._running:
            return
        self._running = True
        while self._line:
            self._clock.advance(1)
            self._line.pop(0)(SimpleNamespace(error=self._error))
        self._running = False


def test_rounds_go_on_until_their_time_is_over() -> None:
    clock = ManualClock()
    producer = Immediate(clock)
    rounds = Rounds(producer, 1, clock)
    begun = clock.now()
    assert rounds.run(10, lambda: 2 * (clock.now() - begun)) == 2.0
    assert rounds.count == 10


def test_a_record_that_fails_ends_the_rounds() -> None:
    clock = ManualClock()
    rounds = Rounds(Immediate(clock, KafkaTimeoutError("late")), 1, clock)
    with pytest.raises(KafkaTimeoutError, match="late"):
        rounds.run(10, clock.now)


def test_what_is_kept_is_by_machine_and_version(tmp_path: Path) -> None:
    path = tmp_path / "below" / "costs.json"
    assert kept(path, "one") is None
    keep(TRUE, path, "one")
    keep(Costs(), path, "two")
    assert kept(path, "one") == TRUE
    assert kept(path, "two") == Costs()
    assert kept(path, "three") is None
    assert [each.name for each in path.parent.iterdir()] == ["costs.json"]


@pytest.mark.parametrize("text", ["", "[]", '{"one": 3}', '{"one": {"wake": 1}}', "no JSON"])
def test_a_cache_that_says_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(text, encoding="utf-8")
    assert kept(path, "one") is None
    keep(TRUE, path, "one")
    assert kept(path, "one") == TRUE


def test_a_kept_value_that_cannot_be_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps({"one": dict.fromkeys(("wake", "turn", "request", "batch", "record"), -1)}))
    assert kept(path, "one") is None


def test_costs_that_were_kept_before_there_was_a_switch(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps({"one": dict.fromkeys(("wake", "turn", "request", "batch", "record"), 0.5)}))
    assert kept(path, "one") == Costs(wake=0.5, turn=0.5, request=0.5, batch=0.5, record=0.5)


def test_stalls_are_kept_beside_the_costs(tmp_path: Path) -> None:
    path = tmp_path / "below" / "costs.json"
    stalls = Stalls(seconds=3.0, long=((1.0, 2.0),), spread=(0.1,) * 101)
    assert kept_stalls(path, "one") is None
    keep_stalls(stalls, path, "one")
    keep(TRUE, path, "one")
    assert kept_stalls(path, "one") == stalls and kept_stalls(path, "two") is None
    assert sorted(each.name for each in path.parent.iterdir()) == ["costs.json", "stalls.json"]
    path.with_name("stalls.json").write_text('{"one": {"seconds": 0, "long": [], "spread": []}}')
    assert kept_stalls(path, "one") is None


def test_where_it_is_kept() -> None:
    assert cache_file({"XDG_CACHE_HOME": "/somewhere"}) == Path("/somewhere/forebay/costs.json")
    assert cache_file({"XDG_CACHE_HOME": "relative"}) == Path.home() / ".cache" / "forebay" / "costs.json"
    assert cache_file({}) == Path.home() / ".cache" / "forebay" / "costs.json"


def test_the_machine_is_named() -> None:
    name = machine()
    assert "forebay" in name and "Python" in name
    assert options("host:1", linger_ms=5)["linger_ms"] == 5


def test_a_sample_says_what_a_codec_leaves_of_small_and_of_large_batches() -> None:
    values = [b'{"user": %d, "path": "/orders/%d"}' % (number, number % 7) for number in range(2000)]
    found = own_costs.compression_of(values, "gzip")
    sizes, ratios = zip(*found.by_size, strict=True)
    assert len(sizes) == 5
    assert sizes[0] < 50
    assert sizes[-1] >= 16_000
    assert list(ratios) == sorted(ratios, reverse=True)
    assert found.ratio == ratios[-1] == found.of(sizes[-1]) == found.of(1 << 20)
    assert ratios[-1] < found.of(sizes[-1] - 5000) < ratios[-2]
    assert found.ms_per_mib >= 0


def test_a_sample_of_few_values_is_one_batch() -> None:
    found = own_costs.compression_of([b"one"], "gzip")
    ((_size, ratio),) = found.by_size
    assert ratio > found.ratio == 2, "a codec's frame is larger than the record"


def test_a_sample_without_values_is_refused() -> None:
    with pytest.raises(TuneError, match="there is none"):
        own_costs.compression_of([b"", b""], "gzip")
