"""One page for one advice or prediction, of what its JSON has; it stands alone.

The same advice gives the same bytes: there is no date on the page.  All that is drawn stands in a table below the plot.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from forebay._closed_forms.wording import CAUSES, COLUMNS, ONE_SEED, PARTS, SHORT, VERDICTS, in_bytes, option_value
from forebay._plots import NARROW, PAGE_STYLE, Mark, Series, area, lines, page, scatter, stacked, table

Values = Mapping[str, Any]
"""An advice or a prediction, as ``dataclasses.asdict`` gives it."""
KIB, MIB = 1 << 10, 1 << 20
NEAR = 0.25
"""Share of ``buffer.memory`` that must be in use for its limit to be drawn: else the plot is flat."""
FINE = 1.01
"""Points of a distribution that differ by less on both logarithmic axes are drawn as one."""
OF_GOAL = {
    "p50_ms": "p50 at most {:g} ms",
    "p99_ms": "p99 at most {:g} ms",
    "memory": "at most {:,.0f} bytes of memory",
}
OF_GOAL |= {"lost": "at most {:g} records lost", "hold_ms": "send held for at most {:g} ms"}
OF_FRONT = ("linger.ms", "batch.size", "max.in.flight.requests.per.connection")
SAID_WHOLE = ("leave", "trial", "unmet")
"""Kinds of reasons whose parts say nothing apart."""
TRUST = (
    "Counts come from the code that sends, so they are right as far as the load is described right.",
    "Latency is as good as the times of the cluster that were given.",
    "Pauses of the brokers are not in it, so that a measured p99 may be higher.",
)
STYLE = """
.numbers td:nth-child(n+2), .numbers th:nth-child(n+2) { text-align: right; }
.numbers td:first-child, .numbers th { white-space: normal; min-width: 4rem; }
.numbers td:first-child { min-width: 7rem; }
pre { padding: .6rem .8rem; border-radius: 6px; user-select: all; overflow-x: auto; }
pre { background: color-mix(in srgb, currentColor 8%, transparent); }
details { margin: .4rem 0; } summary { cursor: pointer; font-size: 13px; color: GrayText; }
"""


def advice_page(found: Values) -> str:
    """The page of an advice.

    Args:
        found: all of it, as ``dataclasses.asdict`` gives it.
    """
    after = {"proposed": found["proposed"]} if found["settings"] else {}
    runs = {"today": found["present"], **after}
    best = "proposed" if found["verdict"] == "change" else "best found"
    columns = {**COLUMNS, "best": best}
    body = [
        "<h1>Advice for a producer</h1>",
        _about(found["present"], found["seed"], found["goal"]),
        _verdict(found),
        _numbers(["", *(columns[name] for name in found["figures"])], _figures(found["figures"])),
        _reasons(found["reasons"]),
        _plots([_front(found, columns), *_of_runs(runs)]),
        _what_if(found["what_if"], away=bool(found["present"]["outages"])),
        *_tables(runs),
        _trials(found["trials"]),
        _trust(found["present"], found["seed"], found["tried"]),
    ]
    return _page("Advice for a producer", body)


def prediction_page(found: Values) -> str:
    """The page of a prediction.

    Args:
        found: all of it, as ``dataclasses.asdict`` gives it.
    """
    runs = {"predicted": found}
    body = [
        "<h1>Prediction for a producer</h1>",
        _about(found, found["seed"]),
        _numbers(["", "predicted"], _totals(found)),
        _plots(_of_runs(runs)),
        *_tables(runs),
        _trust(found, found["seed"]),
    ]
    return _page("Prediction for a producer", body)


def _page(title: str, body: Iterable[str]) -> str:
    return page(f"{title}: forebay tune", "\n".join(filter(None, body)), PAGE_STYLE + STYLE)


def _about(run: Values, seed: int, goal: Values | None = None) -> str:
    settings = " ".join(f"{name}={value}" for name, value in run["settings"].items())
    said = {
        "load": ", ".join(run["load"]),
        "settings of today" if goal else "settings": settings or "the defaults",
        "goal": _goal(goal) if goal else "",
        "simulated": f"{run['seconds']:g} s, {run['sent']:,} records, seed {seed}",
    }
    pairs = [f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in said.items() if text]
    return f"<dl>{''.join(pairs)}</dl>"


def _goal(goal: Values) -> str:
    least = {"latency": "p99", "cpu": "processor time"}.get(goal["least"], goal["least"])
    limits = [text.format(goal[name]) for name, text in OF_GOAL.items() if goal[name] is not None]
    return "; ".join([f"the least {least}", *limits])


def _verdict(found: Values) -> str:
    said = VERDICTS[found["verdict"]]
    block = "".join(f"{name}={value}\n" for name, value in found["settings"].items())
    if found["verdict"] == "unmet" and not block:
        said += " what is set today"
    text = f"<h2>{html.escape(said[0].upper() + said[1:])}</h2>"
    return f"{text}\n<pre>{html.escape(block)}</pre>" if block else text


def _figures(figures: Mapping[str, Values]) -> list[list[str]]:
    """A row for each figure, a column for each of the settings."""
    rows = {
        "p50": ("p50", "{:,.2f} ms"),
        "p99": ("p99", "{:,.2f} ms"),
        "requests/s": ("requests", "{:,.1f}"),
        "longest hold of send": ("hold", "{:,.1f} ms"),
        "records lost": ("lost", "{:,.0f}"),
    }
    found = [[name, *(text.format(each[key]) for each in figures.values())] for name, (key, text) in rows.items()]
    for name, key in (("bytes/s", "bytes"), ("memory at most", "memory")):
        found.append([name, *(in_bytes(each[key]) for each in figures.values())])
    found.append(["processor, of one", *(f"{each['cpu'] / 1000:.1%}" for each in figures.values())])
    return found


def _totals(run: Values) -> list[list[str]]:
    causes = ", ".join(f"{CAUSES[name]} {share:.0%}" for name, share in run["causes"].items() if share >= 0.005)
    lost = sum(run["failed"].values())
    why = ", ".join(f"{name} {count:,}" for name, count in run["failed"].items())
    return [
        ["p50, p99, longest", " / ".join(f"{run['latency'][name]:,.2f}" for name in ("p50", "p99", "longest")) + " ms"],
        ["requests/s", f"{run['requests_s']:,.1f}, of {run['batches_a_request']:,.1f} batches"],
        ["bytes/s", in_bytes(run["bytes_s"])],
        ["records a batch", f"{run['records_a_batch']:,.1f}, {run['fill']:.1%} full"],
        ["batches closed because", causes or "none"],
        ["memory at most", f"{in_bytes(run['pool']['peak'])} of {in_bytes(run['pool']['limit'])}"],
        ["calls of send that were held", f"{run['holds']:,}, the longest for {run['longest_hold_ms']:,.1f} ms"],
        ["records lost", f"{lost:,}" + (f": {why}" if lost else "")],
        ["records not sent in time", f"{run['backlog']:,}"],
        ["processor, of one", f"{run['cpu']:.1%}"],
    ]


def _reasons(reasons: Iterable[Values]) -> str:
    told = []
    for reason in reasons:
        what, _, _rest = reason["text"].partition(": ")
        if reason["kind"] in SAID_WHOLE:
            told.append(f"<p>{html.escape(reason['text'])}</p>")
            continue
        parts = {"cause": reason["cause"], "effect": reason["effect"], "price": reason["price"].removeprefix("price: ")}
        pairs = "".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in parts.items() if text)
        told.append(f"<h3>{html.escape(what)}</h3>\n<dl>{pairs}</dl>")
    return "\n".join(["<h2>Why</h2>", *told])


def _plots(figures: Iterable[str]) -> str:
    return f'<h2>In pictures</h2>\n<div class="plots">{chr(10).join(filter(None, figures))}</div>'


def _of_runs(runs: Mapping[str, Values]) -> Iterator[str]:
    # The newest is drawn first, as it is the one that is shaded.
    newest = dict(reversed(list(runs.items())))
    yield _distribution(newest)
    yield _parts(newest)
    yield _pool(newest)


def _front(found: Values, columns: Mapping[str, str]) -> str:
    marks = [Mark(columns[name], each["p99"], each["requests"]) for name, each in found["figures"].items()]
    rows = [[mark.label, "", f"{mark.x:,.1f}", f"{mark.y:,.1f}", ""] for mark in marks]
    points = []
    for settings, p99, requests, memory in found["front"]:
        short = ", ".join(_option(name, settings[name]) for name in OF_FRONT)
        served = math.isfinite(p99)
        cells = [f"{p99:,.1f}", f"{requests:,.1f}", in_bytes(memory)] if served else ["not served", "", ""]
        rows.append(["front", short, *cells])
        points.append((p99, requests))
    return scatter(
        "Latency against requests",
        "p99, ms",
        "Requests a second, both axes logarithmic. Dots: settings that no others beat, by closed forms, which are "
        "estimates. Signs: what the simulation says.",
        points,
        marks,
        below=_numbers(["", "settings", "p99, ms", "requests/s", "memory"], rows, folded="The settings of the dots"),
    )


def _distribution(runs: Mapping[str, Values]) -> str:
    names = ("p50", "p90", "p99", "p999", "longest", "mean")
    rows = [[label, *(f"{run['latency'][name]:,.2f}" for name in names)] for label, run in runs.items()]
    return lines(
        "How long records take",
        "ms from due to acknowledged, logarithmic",
        "Percent of the records that take longer, logarithmic.",
        [Series(label, _longer(run["distribution"])) for label, run in runs.items()],
        log_x=True,
        log_y=True,
        width=NARROW,
        below=_numbers(["ms", "p50", "p90", "p99", "p99.9", "longest", "mean"], rows, folded="Quantiles"),
    )


def _longer(distribution: Sequence[tuple[float, int]]) -> list[tuple[float, float]]:
    """(ms, percent of the records that take longer) in steps, only so many as can be told apart.

    The last step is that of the last record: there is no place for none on a logarithmic axis.
    """
    total = sum(count for _, count in distribution)
    sums = accumulate(count for _, count in distribution)
    found: list[tuple[float, float]] = []
    for (ms, count), below in zip(distribution, sums, strict=True):
        before, left = (100 * (total - done) / total for done in (below - count, below))
        if ms <= 0:
            continue
        if not found or left == 0 or ms > found[-1][0] * FINE or left < found[-1][1] / FINE:
            found += [(ms, before), (ms, max(left, 100 / total))]
    return found


def _parts(runs: Mapping[str, Values]) -> str:
    values = {label: {said: run["parts"][name]["mean"] for name, said in PARTS.items()} for label, run in runs.items()}
    rows = [
        [label, said, *(f"{run['parts'][name][figure]:,.2f}" for figure in ("mean", "p50", "p99", "longest"))]
        for label, run in runs.items()
        for name, said in PARTS.items()
    ]
    return stacked(
        "Where the latency is spent",
        "Mean ms of a record.",
        values,
        below=_numbers(["", "part", "mean", "p50", "p99", "longest"], rows, folded="The parts in ms"),
    )


def _pool(runs: Mapping[str, Values]) -> str:
    limits = {label: run["pool"]["limit"] for label, run in runs.items()}
    drawn, *_ = runs.values()
    limit = drawn["pool"]["limit"]
    near = drawn["pool"]["peak"] >= NEAR * limit
    small = max(run["pool"]["peak"] for run in runs.values()) < MIB and not near
    unit = KIB if small else MIB
    said = ", ".join(f"{label} {in_bytes(each)}" for label, each in limits.items())
    where = "the dashed line is that of the shaded run" if near else "too far above to be drawn"
    shaded = " Bands: a broker is away." if drawn["outages"] else ""
    rows = [
        [label, in_bytes(run["pool"]["limit"]), in_bytes(run["pool"]["peak"]), in_bytes(run["pool"]["mean"])]
        for label, run in runs.items()
    ]
    return area(
        "Memory over time",
        "s",
        f"{'KiB' if small else 'MiB'} of the pool in use, the most in each part of the time. buffer.memory: {said}; "
        f"{where}.{shaded}",
        [Series(label, _over_time(run, unit)) for label, run in runs.items()],
        bands=[each["seconds"] for each in drawn["outages"]],
        limit=limit / unit if near else None,
        below=_numbers(["", "buffer.memory", "at most", "mean"], rows, folded="The figures"),
    )


def _over_time(run: Values, unit: int) -> list[tuple[float, float]]:
    values = run["pool"]["over_time"]
    width = run["seconds"] / max(1, len(values))
    return [((at + 0.5) * width, value / unit) for at, value in enumerate(values)]


def _what_if(rows: Sequence[Values], *, away: bool) -> str:
    def ms(value: float | None, none: str) -> str:
        return none if value is None else f"{value:,.1f}"

    shown = [
        [
            _option(row["option"], row["value"]) if row["option"] else "as proposed",
            ms(row["p50_ms"], "overload"),
            ms(row["p99_ms"], "overload"),
            f"{row['requests_s']:,.1f}",
            in_bytes(row["bytes_s"]),
            "more than there is" if row["memory"] is None else in_bytes(row["memory"]),
            *(_in_outages(row) if away else ()),
        ]
        for row in rows
    ]
    heads = ["", "p50, ms", "p99, ms", "requests/s", "bytes/s", "memory needed"]
    heads += ["send held", "records expire"] if away else []
    about = (
        "Each option one step down and up, the others as they are proposed. All rows are estimates by closed forms, "
        "the first one too, so compare them with each other."
    )
    about += " The last two columns are about the declared outages." if away else ""
    return f'<h2>What if</h2>\n<p class="about">{about}</p>\n{_numbers(heads, shown)}'


def _option(name: str, value: int | str) -> str:
    """As it stands in a sentence."""
    return f"{SHORT.get(name, name)} {option_value(name, value)}"


def _in_outages(row: Values) -> tuple[str, str]:
    """Whether send is held, and records expire."""
    held = row["held_ms"]
    said = "always" if held is None else f"{held / 1000:,.1f} s" if held else "no"
    return said, "yes" if row["expires"] else "no"


def _tables(runs: Mapping[str, Values]) -> Iterator[str]:
    outages = [
        [
            label,
            f"node {each['node']} {each['kind']}, {each['seconds'][0]:g} to {each['seconds'][1]:g} s",
            in_bytes(each["pool_peak"]),
            "not seen in the simulated time" if each["recovery_s"] is None else f"{each['recovery_s']:,.1f} s",
            f"{sum(run['failed'].values()):,}",
            f"{run['longest_hold_ms'] / 1000:,.1f} s",
        ]
        for label, run in runs.items()
        for each in run["outages"]
    ]
    if outages:
        heads = ["", "outage", "memory at most", "over after", "lost in the run", "longest hold in the run"]
        yield f"<h2>Outages</h2>\n{_numbers(heads, outages)}"
    nodes = [
        [
            label,
            str(each["node"]),
            f"{each['requests_s']:,.1f}",
            in_bytes(each["bytes_s"]),
            f"{each['records_s']:,.0f}",
            f"{each['busy']:.1%}",
            f"{each['answer']['p50']:,.1f}",
            f"{each['answer']['p99']:,.1f}",
            in_bytes(each["memory"]),
        ]
        for label, run in runs.items()
        for each in run["nodes"]
    ]
    heads = ["", "broker", "requests/s", "bytes/s", "records/s", "handlers busy", "answer p50, ms", "p99, ms", "waits"]
    yield f"<h2>Brokers</h2>\n{_numbers(heads, nodes)}"


def _trials(trials: Mapping[str, Values]) -> str:
    rows = [
        [
            name,
            *(f"{each[figure]:,.1f}" for figure in ("p50", "p99", "requests")),
            in_bytes(each["memory"]),
            f"{each['lost']:,.0f}",
            f"{each['hold']:,.1f}",
        ]
        for name, each in trials.items()
    ]
    heads = ["the best found, under", "p50, ms", "p99, ms", "requests/s", "memory", "lost", "held, ms"]
    return f"<h2>Tried</h2>\n{_numbers(heads, rows)}" if rows else ""


def _trust(run: Values, seed: int, tried: Sequence[int] = ()) -> str:
    said = [f"Assumed: {each}." for each in run["assumptions"]]
    said += TRUST
    # The figures of an advice are of several seeds.
    said += [f"Trust it less: {each}." for each in run["doubts"] if not tried or each != ONE_SEED]
    if tried:
        said.append(f"{tried[0]:,} settings were looked at by closed forms, {tried[1]:,} by simulation.")
    said.append(f"The same question with seed {seed} gives this page again, byte by byte.")
    items = "".join(f"<li>{html.escape(text)}</li>" for text in said)
    return f"<h2>How far to trust it</h2>\n<ul>{items}</ul>"


def _numbers(heads: Sequence[str], rows: Iterable[Sequence[str]], *, folded: str = "") -> str:
    """A table whose columns but the first stand at the right."""
    return f'<div class="numbers">{table(heads, rows, folded=folded)}</div>'
