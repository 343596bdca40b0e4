"""A bare loopback connection: as many bytes as a client sends, without a client; what the machine carries at most."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from types import TracebackType
from typing import Self

from bench.sink import RECEIVE_SIZE
from bench.support import child_environment, cpu_seconds

PIECE = 1 << 20


def send_bytes(address: str, size: int) -> tuple[float, float]:
    """Sends so many bytes, 1 MiB a time; seconds until the other side has them all, and this side's CPU seconds."""
    host, _, port = address.partition(":")
    data = memoryview(os.urandom(PIECE))
    with socket.create_connection((host, int(port))) as connection:
        before, begun = cpu_seconds(), time.perf_counter()
        for _ in range(size // PIECE):
            connection.sendall(data)
        connection.sendall(data[: size % PIECE])
        connection.shutdown(socket.SHUT_WR)
        # The other side closes when it has read the end.
        connection.recv(1)
        return time.perf_counter() - begun, cpu_seconds() - before


def receive_for_ever(listener: socket.socket) -> None:
    """One connection after the other, read to its end into a buffer like the sink's."""
    buffer = memoryview(bytearray(RECEIVE_SIZE))
    while True:
        peer, _ = listener.accept()
        with peer:
            while peer.recv_into(buffer):
                pass


class Receiver:
    """A receiving process, while in ``with``."""

    def __init__(self) -> None:
        self.address = ""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.loopback"], stdout=subprocess.PIPE, text=True, env=child_environment()
        )
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], 30)[0]:
            raise RuntimeError("the receiving process does not begin")
        self.address = self._process.stdout.readline().strip()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"127.0.0.1:{listening.getsockname()[1]}", flush=True)
    receive_for_ever(listening)
