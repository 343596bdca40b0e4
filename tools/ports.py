"""Free ports of the loopback for servers that may be ended and started again."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST = 10_000
ATTEMPTS = 1000


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now, and that the system gives to no outgoing connection.

    A port of the system's own range may be taken while its server is away: by any connection that is begun then, even
    by one to this very port, which TCP joins with itself.  The server could not start again.
    """
    below = _first_outgoing()
    found: list[int] = []
    with contextlib.ExitStack() as kept:
        for _ in range(ATTEMPTS):
            one = kept.enter_context(socket.socket())
            try:
                one.bind(("127.0.0.1", random.randrange(LOWEST, below) if below > LOWEST else 0))
            except OSError:
                continue  # somebody has it
            found.append(one.getsockname()[1])
            if len(found) == count:
                return found
    raise OSError(f"{count} free ports below {below} were not found in {ATTEMPTS} attempts")


def _first_outgoing() -> int:
    """The first port that an outgoing connection may get; 0 where the system does not say."""
    try:
        return int(RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
