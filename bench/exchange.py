"""The system's part of a request of one record: the same bytes by the same system calls, and nothing else.

The system does a large part of such a request, and its cost changes with the load of the machine.  The rest is the
client's own.  Two threads of this Python that do the same, and hand over the GIL and a lock, are the bound for any
client whose records come from Python.  ``python -m bench.exchange COUNT`` is one such run.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.support import child_environment

# As in exchange.c.
REQUEST, ANSWER = (25, 83, 109, 3), 57
TIMEOUT_MS = 7000


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


def python_exchange(count: int) -> float:
    """The CPU time in µs of one of so many exchanges by two threads of a Python that does nothing else."""
    command = [sys.executable, "-m", "bench.exchange", str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, env=child_environment())
    return float(done.stdout)


def main(count: int) -> float:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answerer = os.fork()  # before there are threads
        if answerer == 0:
            answer(listener)
        with socket.create_connection(listener.getsockname()) as peer:
            prompt(peer)
            spent = ask(peer, count)
    os.waitpid(answerer, 0)
    return spent


def answer(listener: socket.socket) -> None:
    """The child's whole life: as many answers as there are requests."""
    try:
        peer, _ = listener.accept()
        prompt(peer)
        while peer.recv(8192):
            peer.send(bytes(ANSWER))
    finally:
        os._exit(0)


def prompt(peer: socket.socket) -> None:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def ask(peer: socket.socket, count: int) -> float:
    answered = threading.Lock()
    answered.acquire()
    poller = select.poll()
    poller.register(peer, select.POLLIN)

    def receive() -> None:
        for _ in range(count):
            poller.poll(TIMEOUT_MS)
            peer.recv(8192)
            answered.release()

    receiver = threading.Thread(target=receive)
    receiver.start()
    pieces = [bytes(size) for size in REQUEST]
    spent = -time.process_time_ns()
    for _ in range(count):
        peer.sendmsg(pieces)
        answered.acquire()
    spent += time.process_time_ns()
    receiver.join()
    return spent / 1e3 / count


if __name__ == "__main__":
    print(f"{main(int(sys.argv[1])):.3f}")
