"""Loads: threads that send through one producer in the ways that programs do, and keep account of it.

A load lives through several rounds, each with a topic and a journal of its own; the producer stays.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from forebay import KafkaProducer
from forebay.errors import KafkaTimeoutError as ForebayTimeout
from tests.soak.checker import Promise
from tests.soak.journal import Entry, Journal, Name, to_value
from tests.support.pace import within

BURST = 60
PAUSE_S = (0.02, 0.15)
SIZES = (12, 60, 60, 200, 200, 700, 2_000)
LARGE, LARGE_SHARE = 30_000, 0.003
KEYS = 40
FLUSH_SHARE = 0.03


@dataclass(frozen=True, slots=True)
class Plan:
    """One load: what its producer is configured with, how many threads send, and what is promised.

    ``seed`` decides on sizes, keys, bursts and pauses.  ``proxied`` puts it behind the proxy.
    """

    name: str
    settings: Mapping[str, Any]
    promise: Promise
    seed: str
    senders: int = 2
    proxied: bool = False


class Load(Protocol):
    """What the run needs of a load."""

    plan: Plan
    journal: Journal
    trouble: list[str]
    """What was raised where nothing should be."""

    def begin(self, topic: str) -> None:
        """Starts to send to ``topic``, with a new journal."""
        ...

    def end(self) -> None:
        """Sends no more; returns when the senders have ended."""
        ...

    def settle(self) -> None:
        """Returns when every record has its outcome, or should have had."""
        ...

    def close(self) -> None:
        """Ends the producer."""
        ...


@dataclass
class Senders:
    """Threads that repeat a step until they are to end; what one raises ends it and is kept as text."""

    count: int
    trouble: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self, name: str, work: Any) -> None:
        """Runs ``work(sender)`` on each thread."""
        self.ended.clear()
        self.threads = [
            threading.Thread(target=self._guarded, args=(work, sender), name=f"{name}-{sender}", daemon=True)
            for sender in range(self.count)
        ]
        for thread in self.threads:
            thread.start()

    def stop(self, timeout_s: float) -> None:
        """Waits for the threads; one that does not end is trouble, and is left behind."""
        self.ended.set()
        deadline = time.monotonic() + timeout_s
        for thread in self.threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
            if thread.is_alive():
                self.trouble.append(f"{thread.name} still runs {timeout_s:g} s after it was to end")

    def _guarded(self, work: Any, sender: int) -> None:
        try:
            work(sender)
        except BaseException as error:  # noqa: BLE001 -- kept for the verdict
            self.trouble.append(f"sender {sender}: {type(error).__name__}: {error}")


class SendLoad:
    """``send()`` from several threads: half of the records with callbacks, half with futures, and a flush at times."""

    def __init__(self, plan: Plan, bootstrap_servers: str) -> None:
        self.plan = plan
        self.journal = Journal()
        self._producer = KafkaProducer({"bootstrap.servers": bootstrap_servers, **plan.settings})
        self._senders = Senders(plan.senders)
        self.trouble = self._senders.trouble
        self._topic = ""
        self._rounds = 0
        # Records that are followed by their futures, a line for each sender: appended to by it, taken by the reaper.
        self._followed: list[deque[tuple[Entry, Any]]] = []
        self._reapers: list[threading.Thread] = []

    def begin(self, topic: str) -> None:
        self.journal = Journal()
        self._topic = topic
        self._rounds += 1
        self._followed = [deque() for _ in range(self.plan.senders)]
        self._senders.start(self.plan.name, self._send)
        self._reapers = [threading.Thread(target=self._reap, args=(line,), daemon=True) for line in self._followed]
        for reaper in self._reapers:
            reaper.start()

    def end(self) -> None:
        self._senders.stop(self._limit_s() + self._producer.config["max.block.ms"] / 1000)

    def settle(self) -> None:
        deadline = time.monotonic() + self._limit_s() + within(1)
        for reaper in self._reapers:
            reaper.join(max(deadline - time.monotonic(), 0.0))
        while self.journal.untold() and time.monotonic() < deadline:
            time.sleep(0.05)

    def close(self) -> None:
        self._producer.close(self._limit_s())

    def log_in(self, username: str, password: str) -> None:
        """The password has changed."""
        self._producer.set_sasl_credentials(username, password)

    def _limit_s(self) -> float:
        return self.plan.promise.told_within_s

    def _send(self, sender: int) -> None:
        dice = random.Random(f"{self.plan.seed}/{self._rounds}/{sender}")
        number = 0
        while not self._senders.ended.is_set():
            for _ in range(dice.randint(1, BURST)):
                self._send_one(dice, Name(sender, number))
                number += 1
            if dice.random() < FLUSH_SHARE:
                self._producer.flush(self._limit_s())
            self._senders.ended.wait(dice.uniform(*PAUSE_S))

    def _send_one(self, dice: random.Random, name: Name) -> None:
        key, value = draw(dice, name)
        entry = self.journal.enter(name)
        if dice.random() < 0.5:
            self._producer.send(self._topic, value, key, on_delivery=entry.tell)
            entry.moment = time.monotonic()
        else:
            future = self._producer.send(self._topic, value, key)
            entry.moment = time.monotonic()
            self._followed[name.sender].append((entry, future))

    def _reap(self, line: deque[tuple[Entry, Any]]) -> None:
        """Waits for each future until its own deadline: those before it in line have earlier ones."""
        while line or not self._senders.ended.is_set() or any(t.is_alive() for t in self._senders.threads):
            if not line:
                time.sleep(0.01)
                continue
            entry, future = line.popleft()
            try:
                error = future.exception(max(entry.moment + self._limit_s() - time.monotonic(), 0.0))
            except ForebayTimeout:
                continue  # stays without an outcome, which the checker calls silent
            entry.note(None if error else future.result(0), error)
            # Waiting in line is no delay of the producer's.
            entry.told_at = min(entry.told_at, entry.moment + self._limit_s())


def draw(dice: random.Random, name: Name) -> tuple[bytes | None, bytes]:
    """Key and value of a record: half of them keyed, of mixed sizes, a few large."""
    key = b"k%d" % dice.randrange(KEYS) if dice.random() < 0.5 else None
    size = LARGE if dice.random() < LARGE_SHARE else dice.choice(SIZES)
    return key, to_value(name, key, size)
