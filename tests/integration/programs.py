"""Programs in processes of their own, so that interpreter exit, fork and Ctrl-C are the real ones."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import forebay
from forebay.testing import EmbeddedBroker
from tests.integration.workload import WAIT_S, by_partition
from tests.support.pace import HANG_S, PROGRAM_S
from tests.support.readback import read_all

COUNT = 1000
PRELUDE = f"""
import gc, os, signal, sys, threading, time
from forebay import KafkaProducer
from forebay.errors import *

bootstrap, topic = sys.argv[1:]
WAIT_S = {WAIT_S}
def make(**options):
    return KafkaProducer(bootstrap_servers=bootstrap, **options)
def values(count, mark=b""):
    return [mark + b"%d" % number for number in range(count)]
def network_threads():
    return [t for t in threading.enumerate() if t.name.startswith("kafka-producer-network-thread")]
def say(*words):
    print(*words, flush=True)
def until_told():
    say("ready")
    sys.stdin.readline()
"""


class Program:
    """A Python process that runs ``prelude`` and ``text``; killed at the end of the block if it still runs."""

    def __init__(self, text: str, bootstrap_servers: str, topic: str, prelude: str = PRELUDE) -> None:
        source = str(Path(forebay.__file__).parents[1])
        self.process = subprocess.Popen(
            # Python 3.12 and later warn of every fork in a process with threads, which is what some of these do.
            [
                sys.executable,
                "-W",
                "ignore:This process:DeprecationWarning",
                "-c",
                prelude + textwrap.dedent(text),
                bootstrap_servers,
                topic,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": source, "PYTHONUNBUFFERED": "1"},
        )

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def until_ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == "ready\n", (line, self.process.communicate(timeout=WAIT_S))

    def go(self) -> None:
        """Lets it on that waits in ``until_told``."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self, status: int = 0, timeout_s: float = WAIT_S) -> tuple[str, str]:
        """What it wrote, once it has ended by itself with ``status``."""
        out, err = self.process.communicate(timeout=timeout_s)
        assert self.process.returncode == status, (out, err)
        return out, err


def run(text: str, broker: EmbeddedBroker, topic: str, status: int = 0, prelude: str = PRELUDE) -> tuple[str, str]:
    with Program(text, broker.bootstrap_servers, topic, prelude) as program:
        return program.end(status)


UNDER_LOCKS = """
import _imp, _strptime, contextlib, faulthandler, json, logging, time
class Interceptor:
    def on_send(self, record):
        return record
    def on_acknowledgement(self, metadata, error):
        pass
config = json.loads(sys.stdin.readline())
if "token" in config:
    token = config.pop("token")
    config["sasl.oauthbearer.token.provider"] = lambda: (token, time.time() + 300)
config = {"bootstrap.servers": bootstrap, "interceptor.classes": [Interceptor()], **config}
faulthandler.dump_traceback_later(TIME, exit=True)
_imp.acquire_lock()
with logging._lock, _strptime._cache_lock, KafkaProducer(config) as producer, threading._active_limbo_lock:
    logging.getLogger("forebay").setLevel(logging.INFO)  # all loggers forget which levels are on
    if config.get("transactional.id"):
        producer.init_transactions(WAIT_S)
    with producer.transaction() if config.get("transactional.id") else contextlib.nullcontext():
        futures = [producer.send(topic, bytes(100), key=b"%d" % number) for number in range(10)]
        delivery = producer.send_batch(topic, [bytes(1000)] * 500)
    producer.flush(WAIT_S)
    delivery.result(WAIT_S)
    for future in futures:
        error = future.exception(WAIT_S)
        assert error is None, error
say("done")
"""


def run_under_locks(bootstrap_servers: str, topic: str, config: dict[str, Any], limit_s: float = PROGRAM_S) -> str:
    """What a program says whose main thread holds locks of Python while it sends, waits and closes.

    A signal handler may have interrupted the main thread amid an import, a ``getLogger``, a ``strptime`` or a
    ``Thread.start``.  If it then waits for the sender's thread, no thread may wait for these locks.

    Args:
        config: the producer's; ``token`` is what a provider of tokens gives.
        limit_s: after which the program says where each thread stands, and ends.
    """
    with Program(UNDER_LOCKS.replace("TIME", str(limit_s)), bootstrap_servers, topic) as program:
        assert program.process.stdin is not None
        program.process.stdin.write(json.dumps(config) + "\n")
        program.process.stdin.flush()
        return program.end(timeout_s=limit_s + HANG_S)[0]


def expected(count: int = COUNT, mark: bytes = b"") -> list[bytes]:
    return [mark + b"%d" % number for number in range(count)]


def stored(broker: EmbeddedBroker, topic: str) -> list[bytes]:
    return [record.value or b"" for record in read_all(broker.bootstrap_servers, topic)]


def all_in_order(broker: EmbeddedBroker, topic: str, count: int = COUNT) -> bool:
    """Each of 0 to ``count`` once, ascending in each partition."""
    lines = by_partition(read_all(broker.bootstrap_servers, topic)).values()
    numbers = [[int(value or b"-1") for value in line] for line in lines]
    assert sorted(itertools.chain(*numbers)) == list(range(count))
    return all(line == sorted(line) for line in numbers)
