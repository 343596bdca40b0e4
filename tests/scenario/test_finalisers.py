"""A finaliser that sends, run by the garbage collector in the middle of a send or of new metadata.

Wherever a lock is held nothing is made that may run the collector: the thread would wait for itself.  A child process
tries it at many points, since a thread that waits so waits for ever.
"""

from __future__ import annotations

import subprocess
import sys

from tests.support.pace import HANG_S

SEND = """
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

rng, rounds = random.Random(3), 0
gc.disable()
while rounds < 10_000:
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

METADATA = """
import gc, random, time
from forebay.model._cluster import Cluster
from forebay.model import Node, PartitionInfo
from tests.unit._accumulator.shelf import TOPIC, Shelf

nodes = [Node(number, "localhost", 1111 + number) for number in range(3)]
shelf = Shelf(batch_size=1000, linger=10**6)
shelf.accumulator.appender.guard = None
version, ran = shelf.version, 0

def cluster():
    global version
    version += 1
    leaders = [None if rng.random() < 0.3 else nodes[rng.randrange(3)] for _ in range(8)]
    infos = [PartitionInfo(name, n, leader) for name in (TOPIC, new) for n, leader in enumerate(leaders)]
    return Cluster(nodes, infos, version=version)

class Refreshes:
    def __del__(self):
        global ran
        ran += 1
        shelf.accumulator.refresh(TOPIC, newest)
        shelf.accumulator.refresh(new, newest)
        shelf.append(-1)

rng, end, rounds = random.Random(3), time.monotonic() + 4, 0
new = "new"
newest = cluster()
shelf.accumulator.refresh(TOPIC, newest)
gc.disable()
while time.monotonic() < end:
    rounds += 1
    one = Refreshes()
    one.itself, one = one, None
    new = f"new-{rounds}"
    newest = cluster()
    kept = [[] for _ in range(100)], [(n, n) for n in range(100)]
    gc.set_threshold(gc.get_count()[0] + rng.randrange(40))
    gc.enable()
    shelf.accumulator.refresh((TOPIC, new)[rounds & 1], newest)
    gc.disable()
    gc.set_threshold(10**6)
    kept = None
    if rounds % 20 == 0:
        gc.collect()
        shelf.clock.advance(1)
        for node in range(3):
            for batch in shelf.drain(node):
                shelf.accumulator.deallocate(batch)
print(rounds, ran)
"""


def run(child: str) -> None:
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr
    rounds, ran = map(int, done.stdout.split())
    assert ran > rounds // 2 > 50


def test_a_send_in_a_finaliser_in_a_send_waits_for_nobody() -> None:
    run(SEND)


def test_a_send_in_a_finaliser_while_metadata_is_taken_over_waits_for_nobody() -> None:
    run(METADATA)
