from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import pytest

from bench.arrival import last_arrival, preloaded
from bench.support import child_environment

READ = """
import socket, time
from bench.arrival import last_arrival
note = last_arrival()
one, other = socket.socketpair()
assert note.value == 0, note
other.send(b"x")
before = time.monotonic_ns()
one.recv(1)
print(note.value - before, time.monotonic_ns() - note.value)
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or not (shutil.which("cc") or shutil.which("gcc")),
    reason="the library is preloaded on Linux, and compiled when it is needed",
)
def test_the_library_notes_when_bytes_were_read() -> None:
    begun = time.monotonic_ns()
    with preloaded() as environment:
        assert os.path.exists(environment["LD_PRELOAD"])
        done = subprocess.run(
            [sys.executable, "-c", READ],
            env={**child_environment(), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    after, before = map(int, done.stdout.split())
    assert 0 <= after < time.monotonic_ns() - begun
    assert 0 <= before < time.monotonic_ns() - begun
    assert not os.path.exists(environment["LD_PRELOAD"])


def test_without_the_library_there_is_no_note() -> None:
    assert last_arrival() is None
