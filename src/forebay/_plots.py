"""Plots as inline SVG, for pages that stand alone: no scripts, nothing loaded, readable in light and dark."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

WIDTH = 860
"""Of a plot that has the page for itself; a narrower one has its legend below."""
NARROW = 430
"""Of a plot: two stand beside each other on a wide screen, and one fits a narrow one without being shrunk much."""
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
PAGE_STYLE = (
    STYLE
    + """
body { max-width: 1000px; }
figure { margin: 0; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 1.5rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem; padding: 0; }
.tiles div { border: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
.tiles div { border-radius: 6px; padding: .4rem .7rem; }
.tiles b { display: block; font-size: 19px; }
.wide { overflow-x: auto; }
.wide td, .wide th { white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: 13px; }
dt { color: GrayText; } dd { margin: 0; overflow-wrap: anywhere; }
h3 { font-size: 15px; margin: .5rem 0; }
"""
)
"""Of a page with narrow plots."""


class Series:
    """One line of a plot: its points and its name."""

    def __init__(self, label: str, points: Iterable[tuple[float, float]]) -> None:
        self.label = label
        self.points: list[tuple[float, float]] = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


class Mark(NamedTuple):
    """A point of a scatter that has a name."""

    label: str
    x: float
    y: float


class _Frame:
    """The axes of a plot and what lies where on them; sizes are those of the SVG's view box."""

    left, bottom, top = 60, 40, 16

    def __init__(self, width: float, height: float, right: float, xs: tuple[float, float], ys: tuple[float, float]):
        self.width, self.height, self.right = width, height, right
        self.xs, self.ys = xs, ys
        self.log_x = self.log_y = False

    def across(self, x: float) -> float:
        low, high = self.xs
        share = _of_decades(x, low, high) if self.log_x else (x - low) / ((high - low) or 1.0)
        return self.left + share * (self.width - self.left - self.right)

    def up(self, y: float) -> float:
        low, high = self.ys
        share = _of_decades(y, low, high) if self.log_y else y / (high or 1.0)
        return self.height - self.bottom - share * (self.height - self.bottom - self.top)

    def path(self, points: Iterable[tuple[float, float]]) -> str:
        """The points of a polyline."""
        return " ".join(f"{self.across(x):.1f},{self.up(y):.1f}" for x, y in points)

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


def _of_decades(value: float, low: float, high: float) -> float:
    """Where a value is between two others on a logarithmic axis, from 0 to 1."""
    return (math.log10(max(value, low)) - math.log10(low)) / ((math.log10(high) - math.log10(low)) or 1.0)


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
    log_x: bool = False,
    log_y: bool = False,
    width: float = WIDTH,
    below: str = "",
) -> str:
    """Lines over a common pair of axes; nothing if there is no point.

    Args:
        log_x: the x axis is logarithmic, so each x must be above 0.
        below: HTML, as for ``figure``.
    """
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
    frame.log_x, frame.log_y = log_x, log_y
    parts = list(frame.axes(x_name, ticks(*frame.xs, log_x)))
    for number, one in enumerate(drawn):
        parts.append(_line(number, frame.path(one.points)))
        if len(one.points) == 1:
            x, y = one.points[0]
            parts.append(
                f'<circle cx="{frame.across(x):.1f}" cy="{frame.up(y):.1f}" r="3" fill="{COLOURS[number % 8]}"/>'
            )
        if not narrow:
            parts.extend(_named(number, one.label, width - right + 12, 24 + 18 * number))
        elif legend:
            parts.extend(_named(number, one.label, frame.left, height + 14 + 18 * number))
    return figure(title, y_name, width, height + 18 * legend + (6 if legend else 0), parts, below=below)


def area(
    title: str,
    x_name: str,
    caption: str,
    series: Sequence[Series],
    *,
    bands: Iterable[tuple[float, float]] = (),
    limit: float | None = None,
    width: float = NARROW,
    below: str = "",
) -> str:
    """Lines from 0 up, the first with what is below it shaded; nothing if there is no point.

    Args:
        bands: spans of x that are shaded from top to bottom.
        limit: a y at which a dashed line goes across.
        below: HTML, as for ``figure``.
    """
    drawn = [one for one in series if one.points]
    if not drawn:
        return ""
    xs = [x for one in drawn for x, _ in one.points]
    top = max([y for one in drawn for _, y in one.points] + ([] if limit is None else [limit]))
    frame = _Frame(width, 240, 16, (min(xs), max(xs) or 1.0), (0.0, top or 1.0))
    parts = [_band(frame, *band) for band in bands]
    parts += frame.axes(x_name, ticks(*frame.xs, False))
    points = drawn[0].points
    closed = frame.path([(points[0][0], 0.0), *points, (points[-1][0], 0.0)])
    parts.append(f'<polygon points="{closed}" fill="{COLOURS[0]}" fill-opacity=".25"/>')
    for number, one in enumerate(drawn):
        parts += [_line(number, frame.path(one.points)), *_named(number, one.label, frame.left, 254 + 18 * number)]
    if limit is not None:
        y, end = frame.up(limit), width - frame.right
        parts.append(
            f'<line x1="{frame.left}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{COLOURS[5]}" '
            'stroke-dasharray="6 4" stroke-width="1.5"/>'
        )
    return figure(title, caption, width, 246 + 18 * len(drawn), parts, below=below)


def _band(frame: _Frame, begin: float, end: float) -> str:
    """A span of x, as far as the axis goes."""
    low, high = frame.xs
    left, right = (frame.across(min(max(x, low), high)) for x in (begin, end))
    return (
        f'<rect class="band" x="{left:.1f}" y="{frame.top}" width="{max(1.0, right - left):.1f}" '
        f'height="{frame.height - frame.bottom - frame.top}" fill="{COLOURS[5]}" fill-opacity=".18"/>'
    )


def scatter(
    title: str,
    x_name: str,
    caption: str,
    points: Iterable[tuple[float, float]],
    marks: Iterable[Mark],
    *,
    width: float = NARROW,
    below: str = "",
) -> str:
    """Points on two logarithmic axes, some of them named below; those that are not above 0 are left out."""
    plain = [(x, y) for x, y in points if 0 < x < math.inf and 0 < y < math.inf]
    named = [mark for mark in marks if 0 < mark.x < math.inf and 0 < mark.y < math.inf]
    everything = [*plain, *((mark.x, mark.y) for mark in named)]
    if not everything:
        return ""
    xs, ys = _spread([x for x, _ in everything]), _spread([y for _, y in everything])
    frame = _Frame(width, 260, 16, xs, ys)
    frame.log_x = frame.log_y = True
    parts = list(frame.axes(x_name, ticks(*xs, True)))
    parts += [
        f'<circle cx="{frame.across(x):.1f}" cy="{frame.up(y):.1f}" r="2.5" fill="{COLOURS[7]}"/>' for x, y in plain
    ]
    for number, mark in enumerate(named):
        y = 274 + 18 * number
        parts.append(_sign(number, frame.across(mark.x), frame.up(mark.y)))
        parts += [_sign(number, frame.left + 9, y - 4), f'<text x="{frame.left + 24}" y="{y}">']
        parts[-1] += f"{html.escape(mark.label)}</text>"
    return figure(title, caption, width, 266 + 18 * len(named), parts, below=below)


def _spread(values: Sequence[float]) -> tuple[float, float]:
    """The ends of a logarithmic axis: a little beyond the values."""
    return min(values) / 1.15, max(values) * 1.15


def _sign(number: int, x: float, y: float) -> str:
    """The sign of a named point: a ring, a square, then diamonds, so that two at one place are both seen."""
    colour = COLOURS[(1, 3, 0)[number] if number < 3 else number % len(COLOURS)]
    if number == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="none" stroke="{colour}" stroke-width="2.2"/>'
    size, turn, fill = (5, 0, "none") if number == 1 else (3.2, 45, colour)
    return (
        f'<rect x="{x - size:.1f}" y="{y - size:.1f}" width="{2 * size}" height="{2 * size}" fill="{fill}" '
        f'stroke="{colour}" stroke-width="2.2" transform="rotate({turn} {x:.1f} {y:.1f})"/>'
    )


def stacked(
    title: str, unit: str, values: Mapping[str, Mapping[str, float]], *, width: float = NARROW, below: str = ""
) -> str:
    """Horizontal bars of parts, one bar for each label; nothing if there is nothing in any."""
    whole = max((sum(parts.values()) for parts in values.values()), default=0.0)
    if not whole > 0:
        return ""
    scale = (width - 70) / whole
    shown: list[str] = []
    for row, (label, parts) in enumerate(values.items()):
        y, left = row * 52, 0.0
        shown.append(f'<text x="0" y="{y + 14}">{html.escape(label)}</text>')
        for number, size in enumerate(parts.values()):
            place = f'x="{left:.1f}" y="{y + 22}" width="{size * scale:.1f}" height="{BAR}"'
            shown.append(f'<rect {place} fill="{COLOURS[number]}"/>')
            left += size * scale
        shown.append(f'<text x="{left + 6:.1f}" y="{y + 38}">{left / scale:,.3g}</text>')
    names = list(next(iter(values.values())))
    foot = 52 * len(values)
    for number, name in enumerate(names):
        shown.extend(_named(number, name, 0, foot + 18 + 18 * number))
    return figure(title, unit, width, foot + 10 + 18 * len(names), shown, below=below)


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
        tens = [10.0**power for power in range(first, last + 1)]
        found = [ten for ten in tens if low <= ten <= high]
        # Within a decade or two there are hardly any powers of ten.
        finer = [ten * factor for ten in tens for factor in (1, 2, 5) if low <= ten * factor <= high]
        return found if len(found) > 2 else finer if len(finer) > 1 else ticks(low, high, False)
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


def figure(title: str, caption: str, width: float, height: float, parts: Iterable[str], *, below: str = "") -> str:
    """A plot with its title and what its values are.

    Args:
        below: HTML under the caption, such as the table of the figures.
    """
    body = "\n".join(parts)
    return (
        f'<figure><h3>{html.escape(title)}</h3>\n<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{html.escape(f"{title}. {caption}")}">\n{body}\n</svg>\n'
        f"<figcaption>{html.escape(caption)}</figcaption>{below}</figure>"
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, folded: str = "") -> str:
    """A table that scrolls where the page is narrow.

    Args:
        folded: the table is behind a line with this text, which opens it.
    """
    head = "".join(f"<th>{html.escape(each)}</th>" for each in heads)
    body = "\n".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    found = f'<div class="wide"><table><tr>{head}</tr>\n{body}\n</table></div>'
    return f"<details><summary>{html.escape(folded)}</summary>\n{found}</details>" if folded else found


def page(title: str, body: str, style: str = PAGE_STYLE) -> str:
    """A page that stands alone."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{html.escape(title)}</title><style>{style}</style></head>\n<body>{body}\n</body></html>\n"
    )
