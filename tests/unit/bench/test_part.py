from __future__ import annotations

import argparse
from typing import Any

import pytest

from bench import part
from bench.part import Column, Part, add_rounds, figures_of, print_figures, result_of, turned
from bench.support import ChildFailed

RUNS = [
    {"label": "b", "rate": 10, "note": "text", "points": [1], "within": True},
    {"label": "a", "rate": 5},
    {"label": "b", "rate": 30, "extra": 4},
    {"label": "b", "rate": 20},
]


def test_figures_are_the_numbers_of_all_runs_by_label() -> None:
    assert figures_of(RUNS) == {"b": {"rate": (20, 10, 30), "extra": (4, 4, 4)}, "a": {"rate": (5, 5, 5)}}
    assert list(figures_of(RUNS)) == ["b", "a"]
    assert figures_of([]) == {}


def test_a_result_keeps_its_runs_beside_their_figures() -> None:
    result = result_of("x", RUNS, to="somewhere")
    assert (result["name"], result["to"], result["runs"]) == ("x", "somewhere", RUNS)
    assert result["figures"] == figures_of(RUNS)


def test_a_table_of_figures_leaves_empty_what_was_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    print_figures(result_of("x", RUNS), (Column("tens", "rate", ".1f", 0.1), Column("extra", "extra", ".0f")))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["client", "tens", "extra"]
    assert lines[2].split() == ["b", "2.0", "(1.0-3.0)", "4", "(4-4)"]
    assert lines[3].split() == ["a", "0.5", "(0.5-0.5)"]


@pytest.mark.parametrize(("by", "expected"), [(0, "abc"), (1, "bca"), (3, "abc"), (5, "cab")])
def test_each_round_begins_at_another_one(by: int, expected: str) -> None:
    assert "".join(turned("abc", by)) == expected
    assert turned([], by) == []


def made(measure: Any) -> Part:
    return Part("made", "about", add_rounds, measure, lambda result: print(f"shown {result['name']}"))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What was written, by name."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(part, "save", lambda name, result: found.setdefault(name, result) and "a-path")
    return found


def test_a_part_measures_shows_and_keeps(kept: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    def measure(options: argparse.Namespace) -> dict[str, Any]:
        return result_of("made-twice", [{"label": "a", "rounds": options.rounds}])

    assert made(measure).main(["--rounds", "7"]) == 0
    assert kept["made-twice"]["figures"]["a"]["rounds"] == (7, 7, 7)
    assert kept["made-twice"]["settings"] == {"rounds": 7}
    assert kept["made-twice"]["machine"]["processors"] >= 1
    assert capsys.readouterr().out == "shown made-twice\n\nwritten to a-path\n"


def test_a_part_whose_clients_failed_ends_with_1(kept: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert made(lambda options: result_of("made", [], failed=["one"])).main([]) == 1
    assert "made" in kept


def test_a_part_that_cannot_be_run_says_why(kept: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    def measure(options: argparse.Namespace) -> dict[str, Any]:
        raise ChildFailed("the client went away")

    assert made(measure).main([]) == 1
    assert capsys.readouterr().err == "bench: the client went away\n"
    assert kept == {}
