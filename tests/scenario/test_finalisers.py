"""A finaliser that sends, run by the garbage collector in the middle of a send.

Wherever a lock is held nothing is made that may run the collector: the thread would wait for itself.  A child process
tries it at many points, since a thread that waits so waits for ever.
"""

from __future__ import annotations

import subprocess
import sys

CHILD = """
import gc, random, time
from forebay._records.compression import CompressionType, compressor
from forebay._records.ratio import CompressionRatioEstimator
from tests.unit._accumulator.shelf import Shelf

estimator = CompressionRatioEstimator()
estimator.set("test", CompressionType.LZ4, 0.05)
shelf = Shelf(batch_size=1000, linger=10**6, compressor=compressor(CompressionType.LZ4), estimator=estimator)
shelf.accumulator.appender.guard = None
sent = 0

class Sends:
    def __del__(self):
        global sent
        sent += 1
        shelf.append(value=b"from a finaliser")

rng, end, rounds = random.Random(3), time.monotonic() + 4, 0
gc.disable()
while time.monotonic() < end:
    rounds += 1
    one = Sends()
    one.itself, one = one, None
    kept = [[] for _ in range(100)]  # no list is left over for the next to be made of
    gc.set_threshold(gc.get_count()[0] + rng.randrange(4))
    gc.enable()
    shelf.append(value=b"0123456789" * 9)
    gc.disable()
    gc.set_threshold(10**6)
    kept = None
    if rounds % 20 == 0:
        gc.collect()
        shelf.clock.advance(1)
        for batch in shelf.drain(0):
            shelf.accumulator.deallocate(batch)
print(rounds, sent)
"""


def test_a_send_in_a_finaliser_in_a_send_waits_for_nobody() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    rounds, sent = map(int, done.stdout.split())
    assert sent > rounds // 2 > 50
