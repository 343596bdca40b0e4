"""Waits until the machine is quiet: a low load, and a bare loopback send that is as fast as it is as a rule.

Both, because the load says what ran in the last minute here, and the send what the machine's other guests take now.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench.loopback import Receiver, send_bytes
from bench.support import say

LOAD = 0.5
"""Of the last minute; a measurement begins below it."""
SEND_DIFFERENCE = 0.1
"""How far the last send may be from the median of all of them."""
SENDS, MOST_SENDS = 5, 15
SEND_BYTES = 256 << 20
LOAD_WAITS, WAIT_S = 60, 10.0
"""How often it looks at the load, and how long it waits in between: ten minutes."""


def load_now() -> float:
    return os.getloadavg()[0]


def wait_for_load(load: Callable[[], float] = load_now, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Whether the load fell below the limit."""
    for left in range(LOAD_WAITS, 0, -1):
        if load() < LOAD:
            return True
        if left == LOAD_WAITS:
            say(f"bench: waits until the load is below {LOAD}")
        sleep(WAIT_S)
    return load() < LOAD


def steady(send: Callable[[], float]) -> tuple[float, bool]:
    """The median GB/s of some sends, and whether the last one was near it; it sends again until one is."""
    found = [send() for _ in range(SENDS)]
    while True:
        median = statistics.median(found)
        if abs(found[-1] - median) <= SEND_DIFFERENCE * median:
            return median, True
        if len(found) >= MOST_SENDS:
            return median, False
        found.append(send())


def state() -> dict[str, Any]:
    """Waits, and tells what a result keeps of it; the load is that before the sends, which are load themselves."""
    wait_for_load()
    load = load_now()
    with Receiver() as receiver:
        median, was_steady = steady(lambda: SEND_BYTES / send_bytes(receiver.address, SEND_BYTES)[0] / 1e9)
    return {"load_average_before": load, "loopback_gb_s": median, "steady": was_steady}
