"""The transactional load: transactions of random sizes, most committed and some aborted, whatever happens meanwhile.

How each ended is noted: committed or aborted where the producer said so, else unknown; a producer that cannot go on is
replaced by one with the same transactional.id, whose ``init_transactions`` ends what the other left.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from forebay import KafkaProducer
from forebay.errors import KafkaError
from forebay.errors import KafkaTimeoutError as ForebayTimeout
from tests.soak.journal import Journal, Name
from tests.soak.load import Plan, Senders, draw
from tests.support.pace import HANG_S, within

RECORDS = 60
COMMITTED_SHARE = 0.7
#: Of those that are aborted: how many have their records written first.
WRITTEN_SHARE = 0.6
PAUSE_S = (0.0, 0.1)


class TransactionLoad:
    """One thread, one transactional.id, one transaction after the other."""

    def __init__(self, plan: Plan, bootstrap_servers: str) -> None:
        self.plan = plan
        self.journal = Journal()
        self._settings = {"bootstrap.servers": bootstrap_servers, **plan.settings}
        # The sender's own while it runs.
        self._producer: Any = None
        self._senders = Senders(1)
        self.trouble = self._senders.trouble
        self._topic = ""
        self._rounds = 0

    def begin(self, topic: str) -> None:
        self.journal = Journal()
        self._topic = topic
        self._rounds += 1
        self._senders.start(self.plan.name, self._work)

    def end(self) -> None:
        self._senders.stop(2 * HANG_S)

    def settle(self) -> None:
        deadline = time.monotonic() + self.plan.promise.told_within_s + within(1)
        while self.journal.untold() and time.monotonic() < deadline:
            time.sleep(0.05)
        # Until it is known how they ended there may be an open transaction, before which no reader gets on.
        if self._producer is None:
            self._ready()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close(self.plan.promise.told_within_s)

    def _work(self, sender: int) -> None:
        dice = random.Random(f"{self.plan.seed}/{self._rounds}/{sender}")
        transaction = 0
        number = 0
        while not self._senders.ended.is_set():
            count = dice.randint(1, RECORDS)
            names = [Name(sender, number + at, transaction) for at in range(count)]
            self.journal.transactions[transaction] = self._one(dice, names)
            number += count
            transaction += 1
            self._senders.ended.wait(dice.uniform(*PAUSE_S))

    def _one(self, dice: random.Random, names: list[Name]) -> str:
        """One transaction; how it ended."""
        commits = dice.random() < COMMITTED_SHARE
        producer = self._ready()
        try:
            producer.begin_transaction()
            for name in names:
                self._send(producer, dice, name)
            if commits:
                _repeat(producer.commit_transaction)
                return "committed"
            if dice.random() < WRITTEN_SHARE:
                # What was not sent yet is just dropped; a reader is to pass over records that are there.
                producer.flush(self.plan.promise.told_within_s)
        except KafkaError as error:
            if error.fatal:
                return self._give_up(producer)
        try:
            _repeat(producer.abort_transaction)
            return "aborted"
        except KafkaError:
            return self._give_up(producer)

    def _send(self, producer: Any, dice: random.Random, name: Name) -> None:
        key, value = draw(dice, name)
        entry = self.journal.enter(name)
        try:
            producer.send(self._topic, value, key, on_delivery=entry.tell)
        except KafkaError as error:
            entry.moment = time.monotonic()
            entry.note(None, error)
            raise
        entry.moment = time.monotonic()

    def _give_up(self, producer: Any) -> str:
        self._producer = None
        try:
            producer.close(0)
        except KafkaError:
            pass  # says how many records it lost, which the journal knows
        return "unknown"

    def _ready(self) -> Any:
        """The producer, or a new one whose predecessor's transaction is ended."""
        if self._producer is None:
            producer: Any = KafkaProducer(self._settings)
            try:
                _repeat(producer.init_transactions)
            except BaseException:
                producer.close(0)
                raise
            self._producer = producer
        return self._producer


def _repeat(call: Callable[[], None]) -> None:
    """Calls again what timed out, as the contract of transactional calls says."""
    deadline = time.monotonic() + HANG_S
    while True:
        try:
            call()
            return
        except ForebayTimeout:
            if time.monotonic() > deadline:
                raise
