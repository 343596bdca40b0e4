"""Writes the figures of benches into docs/measurements.md and README: ``python -m bench page --write [RESULT ...]``.

Between the marks of both pages stands what this writes, so a figure for people comes out of a result's file and is not
typed.  A result counts only if the machine was quiet when its bench began.  Without files it takes the newest result
of each bench.  Tables and rows of benches that have no result stay, if they are of the same commit.  ``--to FILE``
writes a page by itself out of whatever there is, and says what is wrong with it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench import goals, page
from bench.goals import NotMeasured, Results, number
from bench.quiet import LOAD, SEND_DIFFERENCE
from bench.support import ROOT, Spread, say
from tools.check_pages import FIGURES, between

MEASURED = ("<!-- measured:begin -->\n", "<!-- measured:end -->")
"""Around the tables of every bench in docs/measurements.md."""
OF_SHORT = ("peers", "peers-sink", "latency", "columns", "footprint")
"""Benches whose figures are in the short table."""
HEADING = "### "
"""Before the title of a bench's table."""
SHORT_HEAD = ("| What | forebay | Beside it |", "|---|---|---|")


class Short(NamedTuple):
    """A row of the short table: what it is, our figure, and those of others."""

    what: str
    ours: Callable[[Results], str]
    others: Callable[[Results], str]

    def line(self, found: Results) -> str:
        """Raises NotMeasured where no result has a figure of it."""
        return f"| {self.what} | {self.ours(found)} | {self.others(found)} |"


def cpu(found: Results, labels: Sequence[str]) -> str:
    return number(found.best("peers", labels, goals.CPU, min))


def rate(found: Results, bench: str, labels: Sequence[str]) -> str:
    return number(found.best(bench, labels, goals.RATE, max) / 1000)


def waits(found: Results, client: str) -> str:
    """The median and the 99th percentile."""
    return ", ".join(number(found.value("latency", f"{client}, linger 0", share)) for share in ("p50", "p99"))


SHORT = (
    Short("a real broker: CPU s per million records",
          lambda found: cpu(found, ("forebay",)),
          lambda found: f"{cpu(found, goals.CONFLUENT)} confluent-kafka, {cpu(found, goals.JAVA)} Java with callbacks"),
    Short("a real broker: 1,000 records/s",
          lambda found: rate(found, "peers", ("forebay",)),
          lambda found: f"{rate(found, 'peers', goals.CONFLUENT)} confluent-kafka, "
                        f"{rate(found, 'peers', goals.JAVA)} Java with callbacks"),
    Short("a sink: 1,000 records/s with a callback for each",
          lambda found: rate(found, "peers-sink", ("forebay, callback",)),
          lambda found: f"{rate(found, 'peers-sink', goals.CONFLUENT_CALLBACK)} confluent-kafka, "
                        f"{rate(found, 'peers-sink', goals.JAVA)} Java"),
    Short("latency at 10,000 records/s, linger 0: p50 and p99 in ms",
          lambda found: waits(found, "forebay"),
          lambda found: f"{waits(found, 'confluent-kafka')} confluent-kafka; {waits(found, 'Java')} Java"),
    Short("`send_batch` from Arrow: million rows/s",
          lambda found: number(found.value("columns", "1024 KiB", goals.RATE) / 1e6),
          lambda found: f"{number(found.value('columns', 'sendall of the same bytes', goals.RATE) / 1e6)} "
                        "a bare `sendall` of the same bytes"),
    Short("bytes of memory for a queued record of 100 B",
          lambda found: number(found.value("footprint", "forebay", "bytes_a_record")),
          lambda found: f"{number(found.value('footprint', 'confluent-kafka', 'bytes_a_record'))} confluent-kafka"),
)  # fmt: skip


def complaints(results: Mapping[str, Mapping[str, Any]], kept: Mapping[str, str]) -> Iterator[str]:
    """Why these results are not for the pages: a busy machine, several commits, figures that are missing.

    Args:
        kept: rows of the short table that stay where they were not measured, by what they are.
    """
    for name, result in results.items():
        about = result.get("machine", {})
        load = about.get("load_average_before")
        if load is None or load >= LOAD:
            yield f"{name}: the load at its start was {load}, it must be below {LOAD}"
        if not about.get("steady"):
            yield f"{name}: no bare loopback send before it came within {SEND_DIFFERENCE:.0%} of the median"
    commits = {str(result.get("machine", {}).get("commit")) for result in results.values()}
    if len(commits) > 1 or "None" in commits:
        yield f"the results are of several commits, or of one that nobody wrote down: {', '.join(sorted(commits))}"
    for row in SHORT:
        try:
            row.line(Results(results))
        except NotMeasured as error:
            if row.what not in kept:
                yield f"{row.what}: not measured ({error.args[0]})"


def short_rows(results: Mapping[str, Mapping[str, Any]], kept: Mapping[str, str]) -> Iterator[str]:
    """The short table; a row that was not measured is the kept one, or left out."""
    yield from SHORT_HEAD
    for row in SHORT:
        try:
            yield row.line(Results(results))
        except NotMeasured:
            if row.what in kept:
                yield kept[row.what]


def about(result: Mapping[str, Any]) -> str:
    """When, of which code, and on what a bench was run."""
    machine = result.get("machine", {})
    versions = ", ".join(
        f"{name} {version}"
        for name, version in machine.get("versions", {}).items()
        if version[:1].isdigit() and name != "forebay"
    )
    facts = [
        f"{machine.get('date', 'a day that is not known')}, commit {machine.get('commit', 'not known')}",
        f"{machine.get('processors')} processors ({machine.get('architecture')}), Python {machine.get('python')}",
        f"load at the start {machine.get('load_average_before', float('nan')):.2f}",
        *([f"a bare loopback send {machine['loopback_gb_s']:.2f} GB/s"] if "loopback_gb_s" in machine else []),
        *([versions] if versions else []),
    ]
    return "; ".join(facts) + "."


def table(result: Mapping[str, Any], bars: Sequence[page.Bars]) -> Iterator[str]:
    """A row for each label that has one of the figures: median (lowest-highest)."""
    yield "| | " + " | ".join(f"{each.title}, {each.unit}" for each in bars) + " |"
    yield "|---|" + "---|" * len(bars)
    for label, found in result["figures"].items():
        cells = []
        for each in bars:
            spread = Spread(*found[each.figure]).times(each.factor) if each.figure in found else None
            low_high = (number(spread.median), number(spread.low), number(spread.high)) if spread else ("", "", "")
            cells.append("{} ({}-{})".format(*low_high) if spread else "")
        if any(cells):
            yield f"| {label} | {' | '.join(cells)} |"


def sections(results: Mapping[str, Mapping[str, Any]], kept: Mapping[str, str]) -> Iterator[str]:
    """A heading, what it ran on, and the table, for each bench; of one that has no result the kept text."""
    for name, (title, bars) in page.SECTIONS.items():
        if name not in results:
            yield from kept.get(title, "").splitlines()
        else:
            yield f"{HEADING}{title}\n"
            command = name.replace("-sink", " --sink") if name in ("peers-sink", "latency-sink") else name
            yield f"`python -m bench {command}`: {about(results[name])}\n"
            yield from table(results[name], bars)
            yield ""


def kept_sections(text: str, results: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The tables of a page that are of the same commit as the results, by their titles."""
    commits = [str(result.get("machine", {}).get("commit")) for result in results.values()]
    found = {}
    for part in text.partition(MEASURED[0])[2].partition(MEASURED[1])[0].split(HEADING)[1:]:
        if any(f", commit {commit};" in part for commit in commits):
            found[part.partition("\n")[0]] = HEADING + part
    return found


def kept_rows(text: str, sections: Mapping[str, str]) -> dict[str, str]:
    """The rows of a page's short table, by what they are; none if the tables that they come from do not stay."""
    if not all(page.SECTIONS[name][0] in sections for name in OF_SHORT):
        return {}
    rows = between(text, FIGURES)[len(SHORT_HEAD) :]
    return {row.removeprefix("| ").partition(" | ")[0]: row for row in rows}


def put(text: str, marks: tuple[str, str], lines: Sequence[str]) -> str:
    """A page with other lines between the marks.

    Raises:
        ValueError: it has no such marks.
    """
    before, begin, rest = text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"no lines between {marks[0].strip()} and {marks[1]}")
    return before + begin + "".join(f"{line}\n" for line in lines) + end + after


def write_pages(results: Mapping[str, Mapping[str, Any]], root: Path = ROOT) -> list[str]:
    """Writes both pages, or nothing if there are complaints, which it gives."""
    readme, measurements = root / "README.md", root / "docs" / "measurements.md"
    before = measurements.read_text(encoding="utf-8")
    tables = kept_sections(before, results)
    old = kept_rows(before, tables)
    found = list(complaints(results, old))
    if not found:
        rows = list(short_rows(results, old))
        readme.write_text(put(readme.read_text(encoding="utf-8"), FIGURES, rows), encoding="utf-8")
        text = put(put(before, FIGURES, rows), MEASURED, list(sections(results, tables)))
        measurements.write_text(text, encoding="utf-8")
    return found


def main(arguments: Sequence[str]) -> int:
    """Status 1 if the results are not for the pages."""
    parser = argparse.ArgumentParser(prog="python -m bench page --write", description=__doc__)
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULT", help="JSON files of bench/results")
    parser.add_argument("--to", type=Path, metavar="FILE", help="a page by itself, and no change of the two pages")
    options = parser.parse_args(arguments)
    found = [json.loads(path.read_text(encoding="utf-8")) for path in options.results]
    results = {result["name"]: result for result in found} if found else page.newest()
    if options.to is None:
        failed = write_pages(results)
    else:
        failed = list(complaints(results, {}))
        text = "\n".join(
            ["# Figures\n", *(f"- Not for the pages: {each}" for each in failed), "", *short_rows(results, {})]
        )
        options.to.write_text(text + "\n\n" + "\n".join(sections(results, {})), encoding="utf-8")
    for each in failed:
        say(f"bench: {each}")
    return 1 if failed else 0
