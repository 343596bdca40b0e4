"""Plots are well-formed SVG in which a value is where its axis says."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from forebay._plots import (
    Mark,
    Series,
    area,
    bars,
    columns,
    lines,
    page,
    scatter,
    short,
    stacked,
    table,
    ticks,
)


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
    [
        (0, 10, False, [0, 2, 4, 6, 8, 10]),
        (0.5, 200, True, [1, 10, 100]),
        (15, 120, True, [20, 50, 100]),
        (11, 14, True, [11, 11.5, 12, 12.5, 13, 13.5, 14]),
        (3, 3, False, [3]),
    ],
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


def test_an_area_has_its_bands_and_its_limit_where_they_belong() -> None:
    assert area("t", "x", "c", [Series("a", [])]) == ""
    points = [(float(at), 10.0 * at) for at in range(11)]
    root = well_formed(
        area("t", "s", "c", [Series("a", points), Series("b", points)], bands=[(2, 4), (9, 99)], limit=200)
    )
    first, last = ({key: float(one.get(key, 0)) for key in ("x", "width")} for one in root.iter("rect"))
    polygon = next(root.iter("polygon")).get("points", "").split()
    left, right = (float(place.split(",")[0]) for place in (polygon[0], polygon[-1]))
    assert first["x"] - left == pytest.approx(0.2 * (right - left), abs=0.2)
    assert first["width"] == pytest.approx(0.2 * (right - left), abs=0.2)
    assert last["x"] + last["width"] == pytest.approx(right, abs=0.2)
    (dashed,) = (one for one in root.iter("line") if one.get("stroke-dasharray") == "6 4")
    assert float(dashed.get("y1", 0)) == 16
    highest = min(float(place.split(",")[1]) for place in polygon)
    assert highest == pytest.approx((16 + 200) / 2)


def test_a_scatter_has_its_named_points_on_logarithmic_axes() -> None:
    assert scatter("t", "x", "c", [(0, 1), (1, float("inf"))], []) == ""
    marks = [Mark("today", 1, 1), Mark("defaults", 10, 10), Mark("<best>", 100, 100), Mark("none", 0, 1)]
    root = well_formed(scatter("t", "x", "c", [(1, 1), (10, 10), (100, 100)], marks))
    dots = [(float(one.get("cx", 0)), float(one.get("cy", 0))) for one in root.iter("circle") if one.get("r") == "2.5"]
    assert dots[1][0] - dots[0][0] == pytest.approx(dots[2][0] - dots[1][0], abs=0.2)
    assert dots[0][1] - dots[1][1] == pytest.approx(dots[1][1] - dots[2][1], abs=0.2)
    texts = [one.text for one in root.iter("text")]
    assert texts[-3:] == ["today", "defaults", "<best>"]
    assert len(list(root.iter("rect"))) == 4


def test_stacked_bars_are_as_long_as_their_parts_together() -> None:
    assert stacked("t", "ms", {"a": {"p": 0.0}}) == ""
    root = well_formed(stacked("t", "ms", {"a": {"p": 1.0, "q": 3.0}, "b": {"p": 2.0, "q": 0.0}}))
    widths = [float(one.get("width", 0)) for one in root.iter("rect")]
    assert widths[1] == pytest.approx(3 * widths[0], abs=0.2) and widths[3] == 0
    assert widths[0] + widths[1] == pytest.approx(2 * widths[2], abs=0.2)


def test_what_is_no_number_of_ours_is_escaped_and_a_plot_says_what_it_shows() -> None:
    text = lines("a < b", "x", "c > d", [Series("&", [(1, 1), (2, 2)])], below=table(["<h>"], [["<c>"]], folded="<f>"))
    root = well_formed(page("<title>", text).removeprefix("<!doctype html>"))
    assert [one.text for one in root.iter("title")] == ["<title>"]
    assert [one.get("aria-label") for one in root.iter("svg")] == ["a < b. c > d"]
    assert [one.text for name in ("summary", "th", "td") for one in root.iter(name)] == ["<f>", "<h>", "<c>"]
