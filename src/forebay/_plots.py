"""Plots as inline SVG, for pages that stand alone: no scripts, nothing loaded, readable in light and dark."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence

WIDTH = 860
"""Of a plot that has the page for itself; a narrower one has its legend below."""
BAR = 22
LABELS = 290
LETTER = 6.4
"""About the width of one in a legend."""
COLOURS = ("#1f6feb", "#d29922", "#3fb950", "#db61a2", "#a371f7", "#f85149", "#56d4dd", "#8b949e")
STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 920px; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; }
svg { width: 100%; height: auto; }
svg text { fill: currentColor; font: 12px system-ui, sans-serif; }
svg .axis { stroke: currentColor; stroke-opacity: .35; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th { text-align: left; }
td, th { padding: .15rem .5rem; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
p.about, figcaption { color: GrayText; font-size: 13px; }
"""


class Series:
    """One line of a plot: its points and its name."""

    def __init__(self, label: str, points: Iterable[tuple[float, float]]) -> None:
        self.label = label
        self.points: list[tuple[float, float]] = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


class _Frame:
    """The axes of a plot and what lies where on them; sizes are those of the SVG's view box."""

    left, bottom, top = 60, 40, 16

    def __init__(self, width: float, height: float, right: float, xs: tuple[float, float], ys: tuple[float, float]):
        self.width, self.height, self.right = width, height, right
        self.xs, self.ys = xs, ys
        self.log_y = False

    def across(self, x: float) -> float:
        low, high = self.xs
        return self.left + (x - low) / ((high - low) or 1.0) * (self.width - self.left - self.right)

    def up(self, y: float) -> float:
        low, high = self.ys
        if self.log_y:
            share = (math.log10(max(y, low)) - math.log10(low)) / ((math.log10(high) - math.log10(low)) or 1.0)
        else:
            share = y / (high or 1.0)
        return self.height - self.bottom - share * (self.height - self.bottom - self.top)

    def axes(self, x_name: str, x_ticks: Iterable[float]) -> Iterable[str]:
        """The two lines, their ticks, and the name of the lower one."""
        foot, end = self.height - self.bottom, self.width - self.right
        yield f'<line class="axis" x1="{self.left}" x2="{end:.1f}" y1="{foot}" y2="{foot}"/>'
        yield f'<line class="axis" x1="{self.left}" x2="{self.left}" y1="{self.top}" y2="{foot}"/>'
        middle = (self.left + end) / 2
        yield f'<text x="{middle:.1f}" y="{self.height - 6}" text-anchor="middle">{html.escape(x_name)}</text>'
        for tick in ticks(*self.ys, self.log_y):
            y = self.up(tick)
            yield f'<text x="{self.left - 6}" y="{y + 4:.1f}" text-anchor="end">{short(tick)}</text>'
            yield f'<line class="axis" x1="{self.left - 4}" x2="{self.left}" y1="{y:.1f}" y2="{y:.1f}"/>'
        for tick in x_ticks:
            yield f'<text x="{self.across(tick):.1f}" y="{foot + 16}" text-anchor="middle">{short(tick)}</text>'


def bars(title: str, unit: str, values: Mapping[str, tuple[float, float, float]], *, ours: str = "") -> str:
    """Horizontal bars: the median, and a whisker from the lowest to the highest.

    Args:
        ours: bars whose labels begin with this stand out.
    """
    top = max((high for _, _, high in values.values()), default=0.0) or 1.0
    height = BAR * len(values) + 24
    scale = (WIDTH - LABELS - 90) / top
    parts = []
    for row, (label, (median, low, high)) in enumerate(values.items()):
        y = row * BAR + 4
        colour = COLOURS[0] if label.startswith(ours) else COLOURS[7]
        middle = y + BAR / 2 - 3
        parts.append(f'<text x="{LABELS - 8}" y="{middle + 4}" text-anchor="end">{html.escape(label)}</text>')
        parts.append(
            f'<rect x="{LABELS}" y="{y}" width="{median * scale:.1f}" height="{BAR - 8}" fill="{colour}" rx="2"/>'
        )
        parts.append(
            f'<line class="axis" x1="{LABELS + low * scale:.1f}" x2="{LABELS + high * scale:.1f}" y1="{middle}" '
            f'y2="{middle}"/>'
        )
        parts.append(f'<text x="{LABELS + high * scale + 6:.1f}" y="{middle + 4}">{median:,.3g}</text>')
    return figure(title, f"{unit}; bar: median, line: lowest to highest", WIDTH, height, parts)


def lines(
    title: str,
    x_name: str,
    y_name: str,
    series: Sequence[Series],
    *,
    log_y: bool = False,
    width: float = WIDTH,
) -> str:
    """Lines over a common pair of axes; nothing if there is no point."""
    drawn = [one for one in series if one.points]
    if not drawn:
        return ""
    narrow = width < WIDTH
    legend = len(drawn) if narrow and len(drawn) > 1 else 0
    height = 240 if narrow else max(320, 18 * len(drawn) + 40)
    right = 16 if narrow else 44 + LETTER * max(len(one.label) for one in drawn)
    xs = [x for one in drawn for x, _ in one.points]
    ys = [y for one in drawn for _, y in one.points if y > 0 or not log_y] or [1.0]
    low = min(ys) if log_y else 0.0
    frame = _Frame(width, height, right, (min(xs), max(xs) or 1.0), (low, max(ys) or 1.0))
    frame.log_y = log_y
    parts = list(frame.axes(x_name, ticks(*frame.xs, False)))
    for number, one in enumerate(drawn):
        path = " ".join(f"{frame.across(x):.1f},{frame.up(y):.1f}" for x, y in one.points)
        parts.append(_line(number, path))
        if len(one.points) == 1:
            x, y = one.points[0]
            parts.append(
                f'<circle cx="{frame.across(x):.1f}" cy="{frame.up(y):.1f}" r="3" fill="{COLOURS[number % 8]}"/>'
            )
        if not narrow:
            parts.extend(_named(number, one.label, width - right + 12, 24 + 18 * number))
        elif legend:
            parts.extend(_named(number, one.label, frame.left, height + 14 + 18 * number))
    return figure(title, y_name, width, height + 18 * legend + (6 if legend else 0), parts)


def columns(
    title: str, x_name: str, y_name: str, values: Sequence[tuple[float, float]], *, width: float = WIDTH
) -> str:
    """Upright bars, one for each (x, y), at their places on the x axis; nothing if there is none."""
    if not values:
        return ""
    xs = [x for x, _ in values]
    low, high = min(xs), max(xs)
    frame = _Frame(width, 240, 16, (low - 0.5, high + 0.5), (0.0, max(y for _, y in values) or 1.0))
    whole = [tick for tick in ticks(low, high or 1.0, False) if tick == int(tick) and low <= tick <= high]
    parts = list(frame.axes(x_name, whole or [low]))
    each = (width - frame.left - frame.right) / (high - low + 1)
    wide = min(max(each * 0.8, 0.6), 48)
    for x, y in values:
        up = frame.up(y)
        parts.append(
            f'<rect x="{frame.across(x) - wide / 2:.1f}" y="{up:.1f}" width="{wide:.1f}" '
            f'height="{frame.height - frame.bottom - up:.1f}" fill="{COLOURS[0]}"/>'
        )
    return figure(title, y_name, width, frame.height, parts)


def _stroke(number: int) -> str:
    """The colour of a line; with more lines than colours, the second of a colour is dashed."""
    dashes = "none" if number < len(COLOURS) else "5 3"
    return f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-dasharray="{dashes}"'


def _line(number: int, path: str) -> str:
    return f'<polyline points="{path}" fill="none" {_stroke(number)} stroke-width="1.8"/>'


def _named(number: int, label: str, x: float, y: float) -> Iterable[str]:
    """A line of a legend."""
    yield f'<line x1="{x}" x2="{x + 18}" y1="{y - 4}" y2="{y - 4}" {_stroke(number)} stroke-width="3"/>'
    yield f'<text x="{x + 24}" y="{y}">{html.escape(label)}</text>'


def ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """A handful of round values from ``low`` to ``high``."""
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        return [10.0**power for power in range(first, last + 1) if low <= 10.0**power <= high]
    span = (high - low) or 1.0
    step = 10 ** math.floor(math.log10(span / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 6)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def short(value: float) -> str:
    """A number as an axis shows it: at most four characters and a prefix."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def figure(title: str, caption: str, width: float, height: float, parts: Iterable[str]) -> str:
    """A plot with its title and what its values are."""
    body = "\n".join(parts)
    return (
        f'<figure><h3>{html.escape(title)}</h3>\n<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{html.escape(title)}">\n{body}\n</svg>\n<figcaption>{html.escape(caption)}</figcaption></figure>'
    )
