"""One HTML page with plots from the benches' JSON: throughput, CPU per million, latency distribution, memory over time.

The page stands alone: inline SVG, no scripts, nothing loaded from elsewhere, readable in light and dark.  It draws what
the newest result of each bench says, under the targets judged by these results, and measures nothing of its own.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench import goals
from bench.support import RESULTS, ROOT

WIDTH = 860
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
td:nth-child(n+3) { white-space: nowrap; }
tr.met td:last-child { color: #3fb950; }
tr.missed td:last-child { color: #f85149; font-weight: bold; }
tr.unknown td:last-child { color: GrayText; }
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
    height, left, bottom = max(320, 18 * len(drawn) + 40), 60, 40
    right = 44 + LETTER * max(len(one.label) for one in drawn)
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
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in one.points)
        parts.extend(drawn_line(number, one.label, path, WIDTH - right))
    return figure(title, y_name, height, parts)


def drawn_line(number: int, label: str, path: str, legend: float) -> Iterable[str]:
    """A line and its name at ``legend``; with more lines than colours, the second of a colour is dashed."""
    dashes = "none" if number < len(COLOURS) else "5 3"
    stroke = f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-dasharray="{dashes}"'
    y = 24 + 18 * number
    yield f'<polyline points="{path}" fill="none" {stroke} stroke-width="1.8"/>'
    yield f'<line x1="{legend + 12}" x2="{legend + 30}" y1="{y - 4}" y2="{y - 4}" {stroke} stroke-width="3"/>'
    yield f'<text x="{legend + 36}" y="{y}">{html.escape(label)}</text>'


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
        result = json.loads(path.read_text(encoding="utf-8"))
        # Files of an older form have no figures, the table of targets has none either.
        if "figures" in result:
            found[name] = {**result, "file": path.name}
    return found


class Bars(NamedTuple):
    """One figure of a bench as bars: its title, the figure, its unit, and what it is multiplied with."""

    title: str
    figure: str
    unit: str
    factor: float = 1.0


RATE = Bars("Records per second", "records_per_s", "thousands/s", 1e-3)
CPU = Bars("Client CPU", "cpu_s_per_million", "CPU seconds per million records")
SECTIONS: dict[str, tuple[str, tuple[Bars, ...]]] = {
    "peers": ("The peers, a real broker", (CPU, RATE)),
    "peers-sink": ("The peers, a sink that only acknowledges", (RATE, CPU)),
    "columns": ("Columns from Arrow", (RATE, CPU)),
    "spark": (
        "DataFrames, beside Spark's own sink",
        (Bars("Rows per second", "rows_per_s", "thousands/s", 1e-3), CPU),
    ),
    "codecs": (
        "Compressed JSON events",
        (RATE, CPU, Bars("Size", "wire_bytes_a_record", "bytes a record on the wire")),
    ),
    "latency": ("Latency, a real broker", (Bars("99th percentile", "p99", "ms"),)),
    "latency-sink": ("Latency, a sink that only acknowledges", (Bars("99th percentile", "p99", "ms"),)),
    "sender": (
        "The sender's thread",
        (
            Bars("A batch", "batch_us", "µs of CPU"),
            Bars("A request, the whole client", "client_request_us", "µs of CPU"),
        ),
    ),
    "footprint": ("Memory of what is queued", (Bars("Resident", "bytes_a_record", "bytes a record"),)),
    "partitions": ("Partitions", (CPU, Bars("A batch", "batch_us", "µs of CPU"))),
    "threads": ("Sending threads", (RATE, CPU)),
    "startup": ("Import, construct, first acknowledgement", (Bars("Together", "total_ms", "ms"),)),
    "tls": ("TLS and logins", (CPU, RATE, Bars("Handshake", "handshake_ms", "ms of CPU"))),
    "append": ("A call of send()", (Bars("Nothing is sent", "idle_ns", "ns"), Bars("Sending", "sending_cpu_ns", "ns"))),
    "instructions": ("Instructions", (Bars("Of one unit", "instructions", "instructions"),)),
}


def of_figures(result: Mapping[str, Any], bars_of: Bars) -> str:
    """The bars of one figure; nothing where no label has it."""
    found = {
        label: tuple(value * bars_of.factor for value in by_name[bars_of.figure])
        for label, by_name in result["figures"].items()
        if bars_of.figure in by_name
    }
    return bars(bars_of.title, bars_of.unit, found) if found else ""


def of_memory(result: Mapping[str, Any]) -> str:
    """Resident memory over time, the last run of each label; nothing where no run has it."""
    last = {run["label"]: run["memory"] for run in result["runs"] if run.get("memory")}
    series = [Series(label, points) for label, points in last.items()]
    return lines("Memory over time", "s", "resident MiB of the client's process, last run of each", series)


def of_distributions(result: Mapping[str, Any]) -> Iterable[str]:
    """Latency by share of the records, a plot for each setting; of each client the run whose p99 is the median."""
    runs = [run for run in result["runs"] if run.get("distribution")]

    def case(run: Mapping[str, Any]) -> tuple[Any, ...]:
        return run["linger_ms"], run["computing"], run.get("switch_ms", 5.0), run["rate"]

    for linger, computing, switch_ms, rate in dict.fromkeys(case(run) for run in runs):
        here = [run for run in runs if case(run) == (linger, computing, switch_ms, rate)]
        series = []
        for client in dict.fromkeys(run["client"] for run in here):
            mine = sorted((run for run in here if run["client"] == client), key=lambda run: float(run["p99"]))
            series.append(Series(client, mine[len(mine) // 2]["distribution"]))
        beside = f", beside a computing thread, switch interval {switch_ms:g} ms" if computing else ""
        title = f"Latency, linger {linger:g} ms, {rate:,.0f} records/s{beside}"
        yield lines(title, "percent of the records", "ms from send to callback, logarithmic", series, log_y=True)


def of_targets(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of targets."""
    rows = []
    for verdict in goals.verdicts(results):
        kind = {goals.MET: "met", goals.MISSED: "missed"}.get(verdict.met, "unknown")
        cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in verdict.cells())
        rows.append(f'<tr class="{kind}">{cells}</tr>')
    heads = "".join(f"<th>{html.escape(head)}</th>" for head in goals.HEADS)
    return f"<h2>Targets</h2>\n<table><tr>{heads}</tr>\n{chr(10).join(rows)}\n</table>"


def section(name: str, result: Mapping[str, Any]) -> str:
    """One bench: what it ran on, and its plots."""
    title, figures = SECTIONS[name]
    about = html.escape(json.dumps({**result.get("machine", {}), **result.get("settings", {})}, sort_keys=True))
    plots = [*(of_figures(result, one) for one in figures), of_memory(result), *of_distributions(result)]
    body = "\n".join(filter(None, plots))
    return f'<h2>{html.escape(title)}</h2>\n<p class="about">{about}</p>\n{body}'


def render(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The page."""
    sections = [section(name, results[name]) for name in SECTIONS if name in results]
    body = "\n".join([of_targets(results), *sections]) if sections else "<p>There are no results yet.</p>"
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
    """``python -m bench page``: draws the newest results again, and prints the targets by them."""
    goals.show(goals.verdicts(newest()))
    print(f"\nwritten to {write()}")
    return 0
