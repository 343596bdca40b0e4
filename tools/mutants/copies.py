"""Copies of the last commit, where mutants run: nothing is written into the working tree."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tools.mutants.choice import PACKAGE, Mutant
from tools.mutants.plugin import VARIABLE

TAIL = 2000
"""Characters of a run's output that a message shows."""


class Run(NamedTuple):
    """How a run of pytest ended."""

    status: int | None
    """None: it took longer than its limit."""
    tail: str
    """The end of what it printed."""


class Stopped(Exception):
    """The runs of a copy were stopped: the last one says nothing."""


class Copy:
    """A clone of its own.

    It has the working tree's ``.cache``, because the jars of real brokers are there, and no compiled modules.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        subprocess.run(["git", "clone", "--quiet", "--shared", root, folder], check=True)
        (root / ".cache").mkdir(exist_ok=True)
        (folder / ".cache").symlink_to(root / ".cache")

    def write(self, mutant: Mutant) -> None:
        """Changes the mutant's line."""
        text = (self.folder / mutant.path).read_text(encoding="utf-8")
        self._put(mutant.path, mutant.change.applied(text))

    def restore(self, mutant: Mutant) -> None:
        """Gives the mutant's file its text of the commit back."""
        command = ["git", "show", f"HEAD:{mutant.path}"]
        self._put(
            mutant.path, subprocess.run(command, cwd=self.folder, check=True, capture_output=True).stdout.decode()
        )

    def _put(self, path: str, text: str) -> None:
        (self.folder / path).write_text(text, encoding="utf-8")
        # Python knows a changed source by its size and by its time in seconds; both may be the same as before.
        Path(importlib.util.cache_from_source(str(self.folder / path))).unlink(missing_ok=True)

    def pytest(
        self,
        arguments: Sequence[str],
        plan: Mapping[str, Any],
        environment: Mapping[str, str],
        limit: float | None = None,
    ) -> Run:
        """Runs pytest with the plan for its plugin, for ``limit`` seconds at most.

        Raises:
            Stopped: by another thread.
        """
        if self._stopped:
            raise Stopped
        place, output = self.folder.with_suffix(".plan"), self.folder.with_suffix(".output")
        place.write_text(json.dumps(plan), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.mutants.plugin"]
        paths = os.pathsep.join([str(self.folder / Path(PACKAGE).parent), str(self.folder)])
        surroundings = {"FOREBAY_INTERPRETED": "1", "PYTHONPATH": paths, VARIABLE: str(place), **environment}
        with output.open("w", encoding="utf-8") as file:
            self._process = subprocess.Popen(
                [*command, *arguments],
                cwd=self.folder,
                env={**os.environ, **surroundings},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            status = _ended(self._process, limit)
        if self._stopped:
            raise Stopped
        return Run(status, output.read_text(encoding="utf-8", errors="replace")[-TAIL:])

    def stop(self) -> None:
        """Ends the run that goes on, and every later one at once; for another thread."""
        self._stopped = True
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)


def _ended(process: subprocess.Popen[bytes], limit: float | None) -> int | None:
    """Its status; None if it had to be killed, with all that it started."""
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
