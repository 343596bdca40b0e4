"""Plots are well-formed SVG in which a value is where its axis says."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from forebay.spark.jobs.plots import Series, bars, columns, lines, short, ticks


def well_formed(text: str) -> ET.Element:
    return ET.fromstring(text)


def test_a_bar_is_as_long_as_its_median() -> None:
    root = well_formed(bars("t", "u", {"forebay": (2.0, 1.0, 4.0), "other": (4.0, 4.0, 4.0)}))
    first, second = (float(one.get("width", 0)) for one in root.iter("rect"))
    assert second == pytest.approx(2 * first)


def test_lines_need_points_and_skip_what_is_not_finite() -> None:
    assert lines("t", "x", "y", [Series("a", [])]) == ""
    assert lines("t", "x", "y", [Series("a", [(0, float("nan"))])]) == ""
    assert Series("a", [(0, 1), (1, float("inf"))]).points == [(0, 1)]


@pytest.mark.parametrize(
    ("low", "high", "logarithmic", "expected"),
    [(0, 10, False, [0, 2, 4, 6, 8, 10]), (0.5, 200, True, [1, 10, 100]), (3, 3, False, [3])],
)
def test_ticks_are_round(low: float, high: float, logarithmic: bool, expected: list[float]) -> None:
    assert ticks(low, high, logarithmic) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "expected"), [(0, "0"), (12.5, "12.5"), (1500, "1.5k"), (2_000_000, "2M"), (3.25e9, "3.25G")]
)
def test_an_axis_shows_short_numbers(value: float, expected: str) -> None:
    assert short(value) == expected


def test_columns_stand_on_the_axis_and_are_as_high_as_their_values() -> None:
    assert columns("t", "x", "y", []) == ""
    root = well_formed(columns("<t>", "x", "y", [(0, 5), (1, 10), (3, 0)], width=400))
    heights = [float(one.get("height", 0)) for one in root.iter("rect")]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2) and heights[2] == 0
    feet = {round(float(one.get("y", 0)) + float(one.get("height", 0))) for one in root.iter("rect")}
    assert feet == {200}
    lefts = [float(one.get("x", 0)) for one in root.iter("rect")]
    assert lefts[2] - lefts[1] == pytest.approx(2 * (lefts[1] - lefts[0]), abs=0.3)


def test_a_narrow_plot_has_its_legend_below_and_a_lone_point_is_seen() -> None:
    two = [Series("a", [(0, 1), (1, 2)]), Series("b", [(0, 2)])]
    narrow = well_formed(lines("t", "x", "y", two, width=400))
    svg = next(narrow.iter("svg"))
    low = float(svg.get("viewBox", "").split()[3])
    names = {one.text: float(one.get("y", 0)) for one in narrow.iter("text") if one.text in ("a", "b")}
    assert all(240 < y < low for y in names.values()) and len(names) == 2
    assert len(list(narrow.iter("circle"))) == 1
    wide = well_formed(lines("t", "x", "y", two))
    assert all(float(one.get("y", 0)) < 60 for one in wide.iter("text") if one.text in ("a", "b"))
