"""``forebay pipeline run job.toml``: the job's steps on stderr, its counters on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from forebay.cli.failure import PREFIX, one_line
from forebay.errors import ConfigError
from forebay.pipeline.runner import PipelineResult
from forebay.pipeline.runner import run as run_job


def parse_overrides(pairs: Sequence[str]) -> dict[str, str]:
    """``section.key=value`` pairs, as they stand behind ``--set``.

    Raises:
        ConfigError: a pair without ``=`` or without a dot in its place.
    """
    overrides: dict[str, str] = {}
    for pair in pairs:
        place, equals, value = pair.partition("=")
        if not equals or "." not in place:
            raise ConfigError(f"--set {pair!r}: give section.key=value, such as sink.topic=flights")
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
    return [*lines, ("rows/s", f"{rows / spent:,.0f}")] if spent > 0 else lines


def run(
    path: str,
    overrides: Mapping[str, str] | None = None,
    *,
    as_json: bool = False,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> PipelineResult:
    """Runs the job and prints; the result's ``exit_code`` is the command's."""
    out, err = out or sys.stdout, err or sys.stderr
    result = run_job(path, overrides, report=lambda line: print(line, file=err, flush=True))
    if result.error is not None:
        print(f"{PREFIX}{one_line(result.error)}", file=err)
    elif as_json:
        print(json.dumps(dict(result.counters), indent=2), file=out)
    else:
        for label, value in summary(result.counters):
            print(f"{label:<24}{value}", file=out)
    return result
