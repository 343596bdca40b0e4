"""When an acknowledgement's bytes were read, whatever the GIL does: noted inside ``recv`` by a preloaded library.

A callback runs on the sender's thread in the turn that read its acknowledgement, before the next read: so what the
library noted last is the arrival of the bytes that the callback is about (with one broker).  Beside it stands when the
system had received them: a thread that waits for the GIL reads nothing meanwhile.  Of several acknowledgements that are
read together the last one's moment counts for all.  Nothing of it is in the product, whose send path would pay for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SYMBOL = "forebay_bench_last_arrival_ns"
RECEIVED_SYMBOL = "forebay_bench_last_received_ns"


@contextlib.contextmanager
def preloaded() -> Iterator[dict[str, str]]:
    """What a child's environment needs in addition; empty where there is no compiler, or no such preloading."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        yield {}
        return
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "arrival.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        yield {"LD_PRELOAD": str(library)}


def last_arrival(symbol: str = SYMBOL) -> ctypes.c_longlong | None:
    """The note of this process, whose ``value`` is on the clock of ``time.monotonic_ns``; None where nothing notes."""
    try:
        return ctypes.c_longlong.in_dll(ctypes.PyDLL(None), symbol)
    except ValueError:
        return None
