"""One HTML page with plots from the benches' JSON: throughput, CPU per million, latency distribution, memory over time.

The page stands alone: inline SVG, no scripts, nothing loaded from elsewhere, readable in light and dark.  It draws what
the newest result of each bench says, under the targets judged by these results, and measures nothing of its own.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench import goals
from bench.support import RESULTS, ROOT
from forebay._plots import STYLE as PLOTS_STYLE
from forebay._plots import Series, bars, lines, page

STYLE = (
    PLOTS_STYLE
    + """
td:nth-child(n+3) { white-space: nowrap; }
tr.met td:last-child { color: #3fb950; }
tr.missed td:last-child { color: #f85149; font-weight: bold; }
tr.unknown td:last-child { color: GrayText; }
"""
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
LATENCY = (Bars("Median", "p50", "ms"), Bars("99th percentile", "p99", "ms"), Bars("99.9th", "p99.9", "ms"))
SECTIONS: dict[str, tuple[str, tuple[Bars, ...]]] = {
    "peers": ("The peers, a real broker", (CPU, RATE)),
    "peers-sink": ("The peers, a sink that only acknowledges", (RATE, CPU)),
    "columns": ("Columns from Arrow", (RATE, CPU)),
    "spark": (
        "DataFrames, beside Spark's own sink",
        (Bars("Rows per second", "rows_per_s", "thousands/s", 1e-3), CPU),
    ),
    "guarantees": (
        "DataFrames, at least once and exactly once",
        (Bars("CPU over reading", "cpu_s_over", "s"), Bars("Time over reading", "seconds_over", "s")),
    ),
    "codecs": (
        "Compressed JSON events",
        (RATE, CPU, Bars("Size", "wire_bytes_a_record", "bytes a record on the wire")),
    ),
    "latency": ("Latency, a real broker", LATENCY),
    "latency-sink": ("Latency, a sink that only acknowledges", LATENCY),
    "sender": (
        "The sender's thread",
        (
            Bars("A batch", "batch_us", "µs of CPU"),
            Bars("A request, the whole client", "client_request_us", "µs of CPU"),
        ),
    ),
    "footprint": ("Memory of what is queued", (Bars("Resident", "bytes_a_record", "bytes a record"),)),
    "memory": (
        "Memory in use",
        (
            Bars("The most over the idle producer", "peak_kib", "MiB", 1 / 1024),
            Bars("Allowed", "limit", "MiB", 1 / 1024**2),
        ),
    ),
    "batch-cost": ("Batches of many partitions", (CPU, Bars("A batch", "batch_us", "µs of CPU"))),
    "partitions": (
        "Many partitions, a real broker",
        (RATE, CPU, Bars("The broker", "broker_us", "µs of CPU a record")),
    ),
    "threads": ("Sending threads", (RATE, CPU)),
    "cli": ("The command line", (CPU, RATE)),
    "telemetry": (
        "Looking at a producer",
        (Bars("A look", "look_ms", "ms of CPU"), Bars("A record", "record_us", "µs")),
    ),
    "many": (
        "Many producers in a process",
        (Bars("To one delivered record", "cpu_ms", "ms of CPU"), Bars("Resident", "kib", "KiB")),
    ),
    "micro-batches": ("A micro-batch of 1,000 rows", (Bars("addBatch", "ms", "ms"),)),
    "in-flight": (
        "Requests in flight",
        (Bars("Requests per second", "requests_s", "requests/s"), Bars("Median", "p50_ms", "ms")),
    ),
    "transactional-ids": ("A transactional.id in its coordinator", (Bars("Heap", "heap_bytes", "bytes"),)),
    "startup": ("Import, construct, first acknowledgement", (Bars("Together", "total_ms", "ms"),)),
    "tls": ("TLS and logins", (CPU, RATE, Bars("Handshake", "handshake_ms", "ms of CPU"))),
    "tls-sink": (
        "TLS against a sink",
        (RATE, CPU, Bars("From send to the acknowledgement, 99th percentile", "p99_ms", "ms")),
    ),
    "append": ("A call of send()", (Bars("Nothing is sent", "idle_ns", "ns"), Bars("Sending", "sending_cpu_ns", "ns"))),
    "rows": ("Rows of tables as JSON", (Bars("Made", "rows_a_cpu_s", "rows/s of CPU"),)),
    "instructions": ("Instructions", (Bars("Of one unit", "instructions", "instructions"),)),
    "compat": ("Drop-in classes", (Bars("Instructions of a record", "instructions", "instructions"),)),
}


def of_figures(result: Mapping[str, Any], bars_of: Bars) -> str:
    """The bars of one figure; nothing where no label has it."""
    found = {
        label: tuple(value * bars_of.factor for value in by_name[bars_of.figure])
        for label, by_name in result["figures"].items()
        if bars_of.figure in by_name
    }
    return bars(bars_of.title, bars_of.unit, found, ours="forebay") if found else ""


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
    return page("forebay: benches", f"<h1>forebay beside its peers</h1>\n{body}", STYLE)


def write() -> str:
    """Writes the page beside the results; its path below the repository."""
    path: Path = RESULTS / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(newest()), encoding="utf-8")
    return str(path.relative_to(ROOT))


def main(arguments: list[str]) -> int:
    """``python -m bench page``: draws the newest results again, and prints the targets by them."""
    if arguments[:1] == ["--write"]:
        from bench import written  # here, because it reads this module's sections

        return written.main(arguments[1:])
    goals.show(goals.verdicts(newest()))
    print(f"\nwritten to {write()}")
    return 0
