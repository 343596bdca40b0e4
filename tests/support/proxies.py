"""Real proxies (pproxy) in processes of their own, for ``proxy.url``."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

from tests.support.pace import HANG_S, until
from tools.ports import free_ports

PROGRAM = """
import asyncio, sys
sys.modules["uvloop"] = None
asyncio.set_event_loop(asyncio.new_event_loop())
from pproxy.server import main
main(sys.argv[1:])
"""
"""pproxy wants the loop of its thread to be there, which neither uvloop nor newer Pythons make."""


@contextlib.contextmanager
def proxy(kind: str, login: str = "") -> Iterator[str]:
    """Runs a proxy on 127.0.0.1 until the block ends.

    Args:
        kind: ``socks5`` or ``http``.
        login: ``user:password`` that it asks for, or nothing.

    Returns:
        Its ``host:port``.
    """
    [port] = free_ports(1)
    listens = f"{kind}://127.0.0.1:{port}" + (f"/#{login}" if login else "")
    command = [sys.executable, "-c", PROGRAM, "-l", listens]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for(process, port)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    def listens() -> bool:
        assert process.poll() is None, f"pproxy did not start: status {process.poll()}, see its output on stderr"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=HANG_S):
            return True
        return False

    until(listens, "pproxy listens")
