"""The system's part of a request of one record: the same bytes by the same system calls, and nothing else.

More than half of such a request is the system's, and how much that is changes with the machine's hour; what is left is
the client's own.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def bare_exchange() -> Iterator[Callable[[int], float] | None]:
    """What gives the CPU time in µs of one of so many exchanges; None where there is no compiler, or another system."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "exchange"
        source = Path(__file__).with_suffix(".c")
        subprocess.run([compiler, "-O2", "-pthread", "-o", program, source], check=True)

        def run(count: int) -> float:
            done = subprocess.run([program, str(count)], check=True, capture_output=True, text=True, timeout=120)
            return float(done.stdout)

        yield run
