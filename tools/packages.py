"""Fills the virtual environment by pip, says all the time what it is doing, and notes how long downloads took.

python tools/packages.py FOLDER build|demo|dev

``build`` makes the environment and gets what compiles forebay, ``demo`` what the demo needs, ``dev`` everything.  It
runs before there is an environment, so it imports nothing but the standard library.  pip's whole output is in
``FOLDER/pip.log``, and the time of each part in ``FOLDER/times.json`` (``tools/times.py``).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.times import note

ROOT = Path(__file__).parents[1]
HERE = ("--no-build-isolation",)
"""Builds use what the environment has, and fetch nothing of their own."""
STILL_S = 5.0
"""After so much silence of pip it is said what it still does."""
STEPS = re.compile(r"^\s*(Collecting|Downloading|Building (?:wheel|editable)|Installing collected packages)\b[: ]*(.*)")
UNREACHED = re.compile(
    r"NewConnectionError|NameResolution|name resolution|ConnectTimeout|ReadTimeout|ProxyError|ConnectionReset"
    r"|Network is unreachable|Connection refused|Could not fetch URL|No matching distribution found for setuptools"
)
FULL = re.compile(r"No space left on device|Errno 28|Disk quota exceeded")
REASON = re.compile(r"^\s*(?:ERROR|error): (.*)")


class PackagesMissing(Exception):
    """Why the environment is not filled, in one sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code; what keeps pip from its work is one sentence on stderr."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("what", choices=FILLERS)
    options = parser.parse_args(arguments)
    begun = time.monotonic()
    try:
        downloads = FILLERS[options.what](options.folder)
    except PackagesMissing as error:
        print(f"forebay: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("forebay: interrupted; the next run goes on from here", file=sys.stderr)
        return 130
    spent = time.monotonic() - begun
    note(options.folder, f"packages ({options.what})", spent - downloads)
    note(options.folder, f"downloads ({options.what})", downloads)
    print(f"packages: done after {spent:.0f} s, {downloads:.0f} s of them downloads", flush=True)
    return 0


def fill_for_building(folder: Path) -> float:
    """The environment, with what ``pyproject.toml`` says a build needs; returns the seconds of downloads."""
    if not (folder / "bin" / "python").exists():
        print(f"packages: making the environment {folder}", flush=True)
        made = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, text=True, check=False)
        if made.returncode:
            raise PackagesMissing(why(made.stdout + made.stderr, folder))
    return install(folder, project()["build-system"]["requires"])


def fill_for_the_demo(folder: Path) -> float:
    """PySpark comes first: its wheel is built here out of jars, which are compressed already, so it is only packed."""
    (pyspark,) = [each for each in project()["project"]["optional-dependencies"]["spark"] if each.startswith("pyspark")]
    packed = ["--use-pep517", "--config-settings=--build-option=--compression=stored"]
    downloads = install(folder, [*HERE, *packed, "--no-deps", re.sub(r"\[.*\]", "", pyspark)])
    return downloads + install(folder, [*HERE, "-e", ".[demo]"])


def fill_for_everything(folder: Path) -> float:
    """All that a developer needs; what the demo has is there the quick way first."""
    return fill_for_the_demo(folder) + install(folder, ["-e", ".[dev]"])


FILLERS: dict[str, Callable[[Path], float]] = {
    "build": fill_for_building,
    "demo": fill_for_the_demo,
    "dev": fill_for_everything,
}


def project() -> dict[str, dict]:  # type: ignore[type-arg]
    """``pyproject.toml``."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def install(folder: Path, what: Sequence[str]) -> float:
    """``pip install`` in the environment; returns the seconds of downloads.

    Nothing is compiled to bytecode ahead: most of what is installed is never imported.
    """
    command = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--no-compile"]
    # The package in place, without compiled modules: `make build` compiles them beside their sources.
    environment = {**os.environ, "FOREBAY_INTERPRETED": "1", "PYTHONUNBUFFERED": "1"}
    progress = Progress()
    lines: list[str] = []
    with (
        subprocess.Popen(
            [*command, "--progress-bar", "off", *what],
            cwd=ROOT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as pip,  # fmt: skip
        open(folder / "pip.log", "a") as log,
        progress,
    ):
        assert pip.stdout is not None
        for line in pip.stdout:
            log.write(line)
            lines.append(line)
            progress.see(line)
    if pip.returncode:
        raise PackagesMissing(why("".join(lines), folder))
    return progress.downloads


def why(said: str, folder: Path) -> str:
    """What pip failed for, in one sentence, out of all that it said."""
    details = f"; all that pip said is in {folder / 'pip.log'}"
    if FULL.search(said):
        return f"the disk is full: pip cannot write into {folder} or its temporary folder{details}"
    if UNREACHED.search(said):
        return f"pip does not reach a package index: no network, or it needs an index or a proxy (pip config){details}"
    reasons = [found[1] for line in said.splitlines() if (found := REASON.match(line))]
    reasons += [line for line in said.strip().splitlines()[-1:] if not reasons]
    return f"pip failed: {reasons[-1] if reasons else 'it said nothing'}{details}"


def shortened(text: str) -> str:
    """What fits on a line of a terminal."""
    return text if len(text) <= 60 else f"{text[:60].rstrip()} ..."


class Progress:
    """Says each step of pip's, says again what takes long, and counts the time of downloads."""

    def __init__(self) -> None:
        self.downloads = 0.0
        self._step = "asking the package index"
        self._since = time.monotonic()
        self._downloading = False
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._count()
        self._done.set()
        self._thread.join()

    def see(self, line: str) -> None:
        """Takes a line of pip's output.  A download ends with the next line."""
        found = STEPS.match(line)
        self._count()
        self._downloading = bool(found and found[1] == "Downloading")
        if found is None:
            return
        self._step = f"{found[1].lower()} {shortened(found[2])}".replace("collecting", "asking for")
        if found[1] != "Collecting":
            print(f"packages: {self._step}", flush=True)

    def _count(self) -> None:
        now = time.monotonic()
        if self._downloading:
            self.downloads += now - self._since
        self._since = now

    def _repeat(self) -> None:
        while not self._done.wait(STILL_S):
            if time.monotonic() - self._since >= STILL_S:
                print(f"packages: still {self._step}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
