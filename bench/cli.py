"""A file of lines through the command line: CPU of ``forebay produce``, beside kcat and kafka-console-producer.

Each runs as a process of its own, start and end counted, against a sink that only acknowledges.  kcat comes from the
path, or is unpacked from Debian's packages for the time of the run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.peers import jars_alone
from bench.support import ChildFailed, child_environment, say
from bench.target import Target, target

PACKAGES = ("kcat", "librdkafka1", "libyajl2")
DOWNLOAD_TIMEOUT_S = 60
CONSOLE = "org.apache.kafka.tools.ConsoleProducer"
BROKERS, TOPIC, FILE = "{brokers}", "{topic}", "{file}"
COLUMNS = (
    Column("CPU s/million", "cpu_s_per_million"),
    Column("1000 records/s", "records_per_s", ".0f", 1e-3),
    Column("peak MiB", "peak_mib", ".0f"),
)


class Tool(NamedTuple):
    """A command line; a word that stands for brokers, topic or file is filled in."""

    label: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    by_input: bool = False
    """The file is its standard input."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=2_000_000, help="lines of the file (default: %(default)s)")
    parser.add_argument("--size", type=int, default=100, help="bytes a line (default: %(default)s)")
    add_rounds(parser)


@contextlib.contextmanager
def kcat() -> Iterator[tuple[str, Mapping[str, str]] | None]:
    """kcat and what its environment needs; None, with a printed reason, if it cannot be had."""
    found = shutil.which("kcat")
    if found is not None:
        yield found, {}
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            get = ["apt-get", "download", *PACKAGES]
            subprocess.run(get, cwd=folder, check=True, capture_output=True, timeout=DOWNLOAD_TIMEOUT_S)
            for package in Path(folder).glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", str(package), folder], check=True, capture_output=True)
            library = next(Path(folder).glob("usr/lib/**/librdkafka.so.1")).parent
        except (OSError, subprocess.SubprocessError, StopIteration) as error:
            say(f"bench: without kcat: it is not on the path, and Debian's package cannot be had ({error})")
            yield None
            return
        yield str(Path(folder) / "usr/bin/kcat"), {"LD_LIBRARY_PATH": str(library)}


def tools(found: tuple[str, Mapping[str, str]] | None, jars: Any) -> list[Tool]:
    """What there is to be measured."""
    ours = (sys.executable, "-m", "forebay.cli")
    flags = ("-P", "-b", BROKERS, "-t", TOPIC, "-l")
    listed = [
        Tool("forebay produce", (*ours, "produce", "-q", "-b", BROKERS, "-t", TOPIC, FILE)),
        Tool("forebay produce, keys", (*ours, "produce", "-q", "-K ", "-b", BROKERS, "-t", TOPIC, FILE)),
        Tool("forebay kcat", (*ours, "kcat", *flags, FILE)),
    ]
    if found is not None:
        program, environment = found
        listed.append(Tool("kcat", (program, *flags, FILE), environment))
        listed.append(Tool("kcat, keys", (program, *flags, "-K ", FILE), environment))
    if jars is not None:
        command = jars.tool_command(CONSOLE, "--bootstrap-server", BROKERS, "--topic", TOPIC)
        listed.append(Tool("kafka-console-producer", tuple(command), by_input=True))
    return listed


def write_lines(path: Path, records: int, size: int) -> None:
    """Lines of ``size`` bytes with their end: a number, a blank, letters."""
    with path.open("wb") as file:
        for number in range(records):
            file.write((b"%d " % number).ljust(size - 1, b"abcdefghij"[number % 10 : number % 10 + 1]) + b"\n")


def measure_one(tool: Tool, file: Path, records: int, to: Target) -> dict[str, Any]:
    """One run, what arrived checked.

    Raises:
        ChildFailed: the command failed, or not every record arrived.
    """
    topic = to.fresh_topic()
    filled = {BROKERS: to.bootstrap_servers, TOPIC: topic, FILE: str(file)}
    command = [filled.get(word, word) for word in tool.command]
    environment = {**child_environment(), **tool.environment}
    with (
        open(file if tool.by_input else os.devnull, "rb") as source,
        tempfile.TemporaryFile() as errors,
    ):
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL, stderr=errors, env=environment)
        # Not Popen.wait: only wait4 tells what this one process used.
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        told = errors.read().decode(errors="replace")
    arrived = to.take(topic)
    if process.returncode or arrived != records:
        raise ChildFailed(f"{tool.label}: status {process.returncode}, {arrived} of {records} arrived: {told[-500:]}")
    return {
        "label": tool.label,
        "cpu_s_per_million": (usage.ru_utime + usage.ru_stime) / records * 1e6,
        "records_per_s": records / seconds,
        "peak_mib": usage.ru_maxrss / 1024,
    }


def measure(options: argparse.Namespace) -> Result:
    """All rounds; what failed is in the result, and the others go on."""
    runs: list[dict[str, Any]] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder, kcat() as found, target(True) as to:
        file = Path(folder) / "lines.txt"
        write_lines(file, options.records, options.size)
        listed = tools(found, jars_alone(True))
        for number in range(options.rounds):
            for tool in turned(listed, number):
                try:
                    runs.append(measure_one(tool, file, options.records, to))
                except ChildFailed as error:
                    failed.append(str(error))
                    say(f"bench: {error}")
        order = [tool.label for tool in listed]
    return result_of("cli", sorted(runs, key=lambda run: order.index(run["label"])), failed=failed)


def show(result: Result) -> None:
    settings = result["settings"]
    print(
        f"{settings['records']} lines of {settings['size']} B through a command line, against a sink that only "
        f"acknowledges; median (lowest-highest) of {settings['rounds']}\n"
    )
    print_figures(result, COLUMNS, "command")


PART = Part("cli", __doc__, add_arguments, measure, show, quick=("--records", "500000", "--rounds", "3"))
