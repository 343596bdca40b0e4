"""The load of ``send_batch``: tables sent as a whole, followed by their deliveries, row by row in the journal."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from typing import NamedTuple

import pyarrow as pa

from forebay import BatchDelivery, KafkaProducer
from forebay.errors import KafkaError
from tests.soak.journal import ACKNOWLEDGED, FAILED, Entry, Journal, Name
from tests.soak.load import Plan, Senders, draw
from tests.support.pace import within

ROWS = 150
PAUSE_S = (0.1, 0.5)
LOOK_S = 0.02


class Appended(NamedTuple):
    """One table whose rows are under way."""

    delivery: BatchDelivery
    entries: list[Entry]


class ColumnLoad:
    """Tables from one thread through one producer."""

    def __init__(self, plan: Plan, bootstrap_servers: str) -> None:
        self.plan = plan
        self.journal = Journal()
        self._producer = KafkaProducer({"bootstrap.servers": bootstrap_servers, **plan.settings})
        self._senders = Senders(1)
        self.trouble = self._senders.trouble
        self._topic = ""
        self._rounds = 0
        # Put in by the sender, taken by the follower: the sender may wait for room while outcomes come.
        self._under_way: deque[Appended] = deque()
        self._follower = threading.Thread()
        self._settled = threading.Event()

    def begin(self, topic: str) -> None:
        self.journal = Journal()
        self._topic = topic
        self._rounds += 1
        self._settled.clear()
        self._follower = threading.Thread(target=self._follow, daemon=True)
        self._follower.start()
        self._senders.start(self.plan.name, self._work)

    def end(self) -> None:
        self._senders.stop(self.plan.promise.told_within_s + self._producer.config["max.block.ms"] / 1000)

    def settle(self) -> None:
        deadline = time.monotonic() + self.plan.promise.told_within_s + within(1)
        while self.journal.untold() and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        self._settled.set()
        self._follower.join()
        self._under_way.clear()

    def close(self) -> None:
        self._producer.close(self.plan.promise.told_within_s)

    def log_in(self, username: str, password: str) -> None:
        """The password has changed."""
        self._producer.set_sasl_credentials(username, password)

    def _work(self, sender: int) -> None:
        dice = random.Random(f"{self.plan.seed}/{self._rounds}/{sender}")
        number = 0
        while not self._senders.ended.is_set():
            count = dice.randint(1, ROWS)
            self._append(dice, [Name(sender, number + row) for row in range(count)])
            number += count
            self._senders.ended.wait(dice.uniform(*PAUSE_S))

    def _append(self, dice: random.Random, names: list[Name]) -> None:
        rows = [draw(dice, name) for name in names]
        batch = pa.record_batch(
            {
                "key": pa.array([key for key, _ in rows], pa.binary()),
                "value": pa.array([value for _, value in rows], pa.binary()),
            }
        )
        entries = [self.journal.enter(name) for name in names]
        try:
            delivery = self._producer.send_batch(self._topic, batch)
        except KafkaError as error:
            # No room in time: the caller knows which rows were not taken.
            delivery = error.delivery
            taken = {row for rows in delivery.taken() for row in rows}
            for row, entry in enumerate(entries):
                if row not in taken:
                    entry.told, entry.error = FAILED, error
        moment = time.monotonic()
        for entry in entries:
            entry.moment = entry.told_at = moment
        self._under_way.append(Appended(delivery, entries))

    def _follow(self) -> None:
        while not self._settled.wait(LOOK_S):
            for _ in range(len(self._under_way)):
                appended = self._under_way.popleft()
                if not appended.delivery.done():
                    self._under_way.append(appended)
                else:
                    self._note(appended)

    def _note(self, appended: Appended) -> None:
        moment = time.monotonic()
        failed = {row: one.error for one in appended.delivery.failures for row in one.rows}
        for rows in appended.delivery.taken():
            for row in rows:
                entry, error = appended.entries[row], failed.get(row)
                entry.told = ACKNOWLEDGED if error is None else FAILED
                entry.error, entry.told_at, entry.told_times = error, moment, 1
