"""One HTML page with plots from the benches' JSON: throughput, CPU per million, latency distribution, memory over time.

The page stands alone: inline SVG, no scripts, nothing loaded from elsewhere, readable in light and dark.  It draws what
the newest result of each bench says and computes nothing of its own.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.support import RESULTS, ROOT

WIDTH = 760
BAR = 22
LABELS = 250
COLOURS = ("#1f6feb", "#d29922", "#3fb950", "#db61a2", "#a371f7", "#f85149", "#56d4dd", "#8b949e")
STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 860px; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; }
svg { width: 100%; height: auto; }
svg text { fill: currentColor; font: 12px system-ui, sans-serif; }
svg .axis { stroke: currentColor; stroke-opacity: .35; }
p.about, figcaption { color: GrayText; font-size: 13px; }
"""


class Series:
    """One line of a plot: its points and its name."""

    def __init__(self, label: str, points: Iterable[tuple[float, float]]) -> None:
        self.label = label
        self.points = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def bars(title: str, unit: str, values: Mapping[str, tuple[float, float, float]]) -> str:
    """Horizontal bars: the median, and a whisker from the lowest to the highest."""
    top = max((high for _, _, high in values.values()), default=0.0) or 1.0
    height = BAR * len(values) + 24
    scale = (WIDTH - LABELS - 90) / top
    parts = []
    for row, (label, (median, low, high)) in enumerate(values.items()):
        y = row * BAR + 4
        colour = COLOURS[0] if label.startswith("forebay") else COLOURS[7]
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
    return figure(title, f"{unit}; bar: median, line: lowest to highest", height, parts)


def lines(title: str, x_name: str, y_name: str, series: Sequence[Series], *, log_y: bool = False) -> str:
    """Lines over a common pair of axes."""
    drawn = [one for one in series if one.points]
    if not drawn:
        return ""
    height, left, bottom, right = 320, 60, 40, 190
    xs = [x for one in drawn for x, _ in one.points]
    ys = [y for one in drawn for _, y in one.points if y > 0 or not log_y]
    x_low, x_high = min(xs), max(xs) or 1.0
    y_low, y_high = (min(ys), max(ys)) if log_y else (0.0, max(ys) or 1.0)

    def across(x: float) -> float:
        return left + (x - x_low) / ((x_high - x_low) or 1.0) * (WIDTH - left - right)

    def up(y: float) -> float:
        if log_y:
            share = (math.log10(max(y, y_low)) - math.log10(y_low)) / ((math.log10(y_high) - math.log10(y_low)) or 1.0)
        else:
            share = y / y_high
        return height - bottom - share * (height - bottom - 16)

    parts = [
        f'<line class="axis" x1="{left}" x2="{WIDTH - right}" y1="{height - bottom}" y2="{height - bottom}"/>',
        f'<line class="axis" x1="{left}" x2="{left}" y1="16" y2="{height - bottom}"/>',
        f'<text x="{(left + WIDTH - right) / 2}" y="{height - 6}" text-anchor="middle">{html.escape(x_name)}</text>',
    ]
    for tick in ticks(y_low, y_high, log_y):
        parts.append(f'<text x="{left - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:,.3g}</text>')
        parts.append(f'<line class="axis" x1="{left - 4}" x2="{left}" y1="{up(tick):.1f}" y2="{up(tick):.1f}"/>')
    for tick in ticks(x_low, x_high, False):
        parts.append(f'<text x="{across(tick):.1f}" y="{height - bottom + 16}" text-anchor="middle">{tick:,.3g}</text>')
    for number, one in enumerate(drawn):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in one.points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        y = 24 + 18 * number
        parts.append(
            f'<line x1="{WIDTH - right + 12}" x2="{WIDTH - right + 30}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" '
            'stroke-width="3"/>'
        )
        parts.append(f'<text x="{WIDTH - right + 36}" y="{y}">{html.escape(one.label)}</text>')
    return figure(title, y_name, height, parts)


def ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """A handful of round values from ``low`` to ``high``."""
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        return [10.0**power for power in range(first, last + 1) if low <= 10.0**power <= high]
    span = (high - low) or 1.0
    step = 10 ** math.floor(math.log10(span / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 6)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def figure(title: str, caption: str, height: float, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<figure><h3>{html.escape(title)}</h3>\n<svg viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{html.escape(title)}">\n{body}\n</svg>\n<figcaption>{html.escape(caption)}</figcaption></figure>'
    )


def newest() -> dict[str, dict[str, Any]]:
    """The newest result of each bench, by the bench's name."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(RESULTS.glob("*.json"), key=lambda path: path.stat().st_mtime):
        name = path.stem.rsplit("-", 2)[0]
        found[name] = {**json.loads(path.read_text(encoding="utf-8")), "file": path.name}
    return found


def by_label(runs: Iterable[Mapping[str, Any]], field: str, factor: float = 1.0) -> dict[str, tuple[float, ...]]:
    """Median, lowest and highest of a field over the runs of each label, in the order of their first run."""
    values: dict[str, list[float]] = {}
    for run in runs:
        values.setdefault(run["label"], []).append(run[field] * factor)
    return {label: (sorted(found)[len(found) // 2], min(found), max(found)) for label, found in values.items() if found}


def of_peers(result: Mapping[str, Any]) -> Iterable[str]:
    """Throughput, CPU and memory of one run of the peers."""
    rate = by_label(result["runs"], "records_per_s", 1 / 1000)
    cpu = by_label(result["runs"], "cpu_s_per_million")
    yield bars("Records per second", "thousands/s", dict(rate))  # type: ignore[arg-type]
    yield bars("Client CPU", "CPU seconds per million records", dict(cpu))  # type: ignore[arg-type]
    last = {run["label"]: run["memory"] for run in result["runs"] if run.get("memory")}
    yield lines(
        "Memory over time",
        "s",
        "resident MiB of the client's process, last run of each",
        [Series(label, points) for label, points in last.items()],
    )


def of_latency(result: Mapping[str, Any]) -> Iterable[str]:
    """The distributions, a plot for each setting."""
    settings = list(dict.fromkeys((row["linger_ms"], row["computing"], row.get("rate", 0)) for row in result["rows"]))
    for linger, computing, rate in settings:
        rows = [row for row in result["rows"] if (row["linger_ms"], row["computing"], row.get("rate", 0)) ==
                (linger, computing, rate) and row.get("distribution")]  # fmt: skip
        beside = ", beside a computing thread" if computing else ""
        title = f"Latency, linger {linger:g} ms, {rate:,.0f} records/s{beside}"
        yield lines(
            title,
            "percent of the records",
            "ms from send to callback, logarithmic",
            [Series(row["client"], row["distribution"]) for row in rows],
            log_y=True,
        )


PLOTS = {"peers": of_peers, "peers-sink": of_peers, "latency": of_latency, "latency-sink": of_latency}
HEADS = {
    "peers": "The peers, a real broker",
    "peers-sink": "The peers, a sink that only acknowledges",
    "latency": "Latency, a real broker",
    "latency-sink": "Latency, a sink that only acknowledges",
}


def render(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The page."""
    sections = []
    for name, draw in PLOTS.items():
        result = results.get(name)
        if result is None:
            continue
        about = html.escape(json.dumps(result.get("machine", {}), sort_keys=True))
        plots = "\n".join(draw(result))
        sections.append(f'<h2>{html.escape(HEADS[name])}</h2>\n<p class="about">{about}</p>\n{plots}')
    body = "\n".join(sections) or "<p>There are no results yet.</p>"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>forebay: benches</title>'
        f"<style>{STYLE}</style></head>\n<body><h1>forebay beside its peers</h1>\n{body}\n</body></html>\n"
    )


def write() -> str:
    """Writes the page beside the results; its path below the repository."""
    path: Path = RESULTS / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(newest()), encoding="utf-8")
    return str(path.relative_to(ROOT))


def main(arguments: list[str]) -> int:
    """``python -m bench page``: draws the newest results again."""
    print(f"written to {write()}")
    return 0
