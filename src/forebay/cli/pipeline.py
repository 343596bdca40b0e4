"""``forebay pipeline run job.toml``: the job's steps on stderr, its counters on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from forebay._runtime.clock import Clock, SystemClock
from forebay.cli.failure import PREFIX, one_line
from forebay.cli.report.progress import Display, display
from forebay.config._door import door
from forebay.errors import ConfigError
from forebay.spark.jobs import Job
from forebay.spark.jobs.runner import PipelineResult
from forebay.spark.jobs.runner import run as run_job

EVERY_MS = 5000
"""How often a stream that is no terminal gets a line of progress."""


@door(wrap=False)
def parse_overrides(pairs: Sequence[str]) -> dict[str, str]:
    """``section.key=value`` pairs, as they stand behind ``--set``.

    Raises:
        ConfigError: a pair without ``=`` or without a dot in its place.
    """
    overrides: dict[str, str] = {}
    for number, pair in enumerate(pairs, 1):
        place, equals, value = pair.partition("=")
        if not equals or "." not in place:
            # It may be a password that lost its name.
            text = (
                f"--set (number {number}, {len(pair)} characters): give section.key=value, such as sink.topic=flights"
            )
            raise ConfigError(text)
        overrides[place.strip()] = value
    return overrides


def summary(counters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The counters as (label, value) rows for people."""
    spent = ((counters.get("finished_ms") or 0) - (counters.get("started_ms") or 0)) / 1000
    rows = counters.get("rows", 0)
    lines = [
        ("rows in", f"{rows:,}"),
        ("records acknowledged", f"{counters.get('acknowledged', 0):,}"),
        ("records per partition", ", ".join(f"{k}: {v:,}" for k, v in counters.get("partitions", {}).items())),
        ("bytes", f"{counters.get('bytes_sent', 0):,}"),
        ("compression ratio", f"{counters.get('compression_ratio', 0):.3f}"),
        ("batches", f"{counters.get('batches', 0):,}, filled {counters.get('average_fill', 0):.0%} on average"),
        ("seconds", f"{spent:.2f}"),
    ]
    if "dead_letters" in counters:
        lines.insert(2, ("dead letters", f"{counters['dead_letters']:,}"))
    return [*lines, ("rows/s", f"{rows / spent:,.0f}")] if spent > 0 else lines


class Lines:
    """Progress where there is no bar: a line now and then, and none twice."""

    def __init__(self, shown: Display, clock: Clock) -> None:
        self._shown = shown
        self._clock = clock
        self._next = clock.now() + EVERY_MS
        self._last = ""

    def show(self, text: str, done: int, total: int | None) -> None:
        """Writes a line if it is time for one."""
        line = f"{text} {done:,}" if total is None else f"{text} {done:,} of {total:,}"
        if line != self._last and self._clock.now() >= self._next:
            self._last, self._next = line, self._clock.now() + EVERY_MS
            self._shown.line(line)


def run(
    job: Job,
    *,
    as_json: bool = False,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> PipelineResult:
    """Runs the job and prints; the result's ``exit_code`` is the command's."""
    out, err = out or sys.stdout, err or sys.stderr
    with display(lambda: "", stream=err) as shown:
        show = shown.show if err.isatty() else Lines(shown, SystemClock()).show
        result = run_job(job, report=shown.line, show=show)
    if result.error is not None:
        print(f"{PREFIX}{one_line(result.error)}", file=err)
    if result.error is not None and not result.counters:
        return result
    if as_json:
        print(json.dumps(dict(result.counters), indent=2), file=out)
    else:
        for label, value in summary(result.counters):
            print(f"{label:<24}{value}", file=out)
    return result


def dry_run(job: Job, *, out: TextIO | None = None, err: TextIO | None = None) -> int:
    """Prints what the job would do, with five records; returns the exit code.

    Raises:
        JobError: what a run would be refused for.
    """
    from forebay.spark.jobs.preview import preview

    out, err = out or sys.stdout, err or sys.stderr
    with display(lambda: "", stream=err) as shown:
        text = preview(job, report=shown.line)
    print(text, file=out)
    return 0
