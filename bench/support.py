"""What the benches share: children that are measured, medians with their spread, tables, and results as JSON.

A measured run is a process of its own (``run_child``), so that no client pays for what another left behind; its
CPU time and peak memory are the operating system's account of that process.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
CHILD_TIMEOUT_S = 300
SAMPLE_S = 0.1
"""Between two looks at a child's memory."""
CLIENTS = ("confluent-kafka", "aiokafka", "kafka-python", "forebay")


class ChildFailed(RuntimeError):
    """A measured process did not do its work; carries the end of what it printed."""


class Spread(NamedTuple):
    """The median of some runs, with the lowest and the highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Of at least one value."""
        found = sorted(values)
        return cls(statistics.median(found), found[0], found[-1])

    def times(self, factor: float) -> Spread:
        """In another unit."""
        return Spread(self.median * factor, self.low * factor, self.high * factor)

    def text(self, layout: str) -> str:
        """``median (low-high)``, each in ``layout``."""
        return f"{self.median:{layout}} ({self.low:{layout}}-{self.high:{layout}})"


def run_child(
    module: str, work: dict[str, Any], timeout_s: int = CHILD_TIMEOUT_S, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    """Runs ``python -m module --child WORK``; what it printed as JSON, and the process' own account beside it.

    ``process_cpu_s`` is all of its CPU time, ``memory`` pairs of seconds and resident MiB; ``environment`` is added.

    Raises:
        ChildFailed: it failed, or did not end within ``timeout_s``.
    """
    command = [sys.executable, "-m", module, "--child", json.dumps(work)]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        env = {**child_environment(), **(environment or {})}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=env, text=True)
        memory: list[tuple[float, float]] = []
        usage = _wait(process, timeout_s, memory)
        output.seek(0)
        errors.seek(0)
        text = output.read()
        if process.returncode:
            raise ChildFailed(f"{module} {json.dumps(work)}: {_end_of(errors.read() or text)}")
    found: dict[str, Any] = json.loads(text.splitlines()[-1])
    return {**found, "process_cpu_s": usage.ru_utime + usage.ru_stime, "memory": memory}


def child_environment() -> dict[str, str]:
    """This process' environment, with this repository's modules on the path.

    Bytecode is written whatever the image says: the peers' was, when they were installed.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": ""}


def _wait(process: subprocess.Popen[str], timeout_s: int, memory: list[tuple[float, float]]) -> resource.struct_rusage:
    # wait4 tells what this one process used, but has no time limit of its own.
    begun = time.monotonic()
    deadline = begun + timeout_s
    while True:
        resident = resident_mib(process.pid)
        if resident > 0 and (not memory or time.monotonic() - begun - memory[-1][0] >= SAMPLE_S):
            memory.append((round(time.monotonic() - begun, 2), round(resident, 1)))
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.monotonic() > deadline:
            process.send_signal(signal.SIGKILL)
            process.wait()
            raise ChildFailed(f"no end after {timeout_s} s: {process.args!r}")
        time.sleep(0.02)


def resident_mib(pid: int) -> float:
    """What a process has resident now; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as status:
            return int(status.read().split()[1]) * resource.getpagesize() / 2**20
    except (OSError, IndexError):
        return 0.0


def _end_of(text: str) -> str:
    return " | ".join(line.strip() for line in text.splitlines()[-4:])


def work_of_child(arguments: Sequence[str] | None = None) -> dict[str, Any] | None:
    """The work that ``run_child`` handed over, or None in a process that it did not start."""
    given = sys.argv[1:] if arguments is None else arguments
    if len(given) == 2 and given[0] == "--child":
        found: dict[str, Any] = json.loads(given[1])
        return found
    return None


def cpu_seconds() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_kib() -> int:
    """The most memory that this process had resident so far."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        # Elsewhere than on Linux; there a child's figure begins with that of the process that started it.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // 1024 if sys.platform == "darwin" else peak


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value that ``share`` of the ascending values do not exceed."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def machine() -> dict[str, Any]:
    """What the figures depend on: processors, versions, and how busy the machine was beside."""
    versions = {}
    for name in CLIENTS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "processors": os.cpu_count(),
        "architecture": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_average_before": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "versions": versions,
    }


def commit() -> str:
    """The short name of the checked out commit, with a sign where the sources differ from it; empty without git."""
    try:
        words = ["git", "describe", "--always", "--abbrev=7", "--exclude=*", "--dirty=+"]
        return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def save(name: str, result: dict[str, Any]) -> str:
    """Writes a result into the results' folder; its path below the repository."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return str(path.relative_to(ROOT))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Columns as wide as their widest cell; the first ``left`` to the left, all others to the right."""
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    for row in [heads, ["-" * width for width in widths], *rows]:
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    sys.stdout.flush()


def say(text: str) -> None:
    """Progress: to standard error, so that standard output has the results alone."""
    print(text, file=sys.stderr, flush=True)
