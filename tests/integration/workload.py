"""What a test sent, and its comparison with what an independent reader finds: every record, by every field."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from forebay import KafkaProducer
from forebay.errors import KafkaError
from forebay.model import RecordMetadata
from forebay.testing import EmbeddedBroker
from tests.support.fixtures import Broker, TopicFactory
from tests.support.pace import HANG_S, until
from tests.support.readback import ReadRecord, read_all

BASE = 1_700_000_000_000
WAIT_S = HANG_S
#: What the embedded broker answers as every batch's append time.
MOCK_APPEND_TIME = 1234
Headers = tuple[tuple[str, bytes | None], ...]
Place = tuple[str, int, int]


class Sent(NamedTuple):
    """One record as it was handed to the producer, and its future; ``sender`` is the thread's own number."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int
    future: Any
    sender: int


class Ledger:
    """Sends through ``producer``, which may be replaced by another, and remembers; any thread may send."""

    def __init__(self, producer: KafkaProducer | None = None) -> None:
        self.producer = producer
        self.sent: list[Sent] = []

    def send(
        self,
        topic: str,
        value: bytes | None = b"",
        key: bytes | None = None,
        headers: Headers = (),
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        sender: int = 0,
    ) -> Any:
        assert self.producer is not None
        moment = BASE + len(self.sent) if timestamp is None else timestamp
        future = self.producer.send(topic, value, key, headers=headers, partition=partition, timestamp=moment)
        self.sent.append(Sent(topic, key, value, headers, moment, future, sender))
        return future

    def outcomes(self, timeout_s: float = WAIT_S) -> list[tuple[Sent, RecordMetadata | KafkaError]]:
        """Each record with its metadata, or with the error it failed with."""
        deadline = time.monotonic() + timeout_s
        found: list[tuple[Sent, RecordMetadata | KafkaError]] = []
        for sent in self.sent:
            error = sent.future.exception(max(deadline - time.monotonic(), 0.0))
            found.append((sent, sent.future.result() if error is None else error))
        return found

    def acknowledged(self, timeout_s: float = WAIT_S) -> list[tuple[Sent, RecordMetadata]]:
        """Each record with its metadata; raises the first error."""
        return [(sent, good(outcome)) for sent, outcome in self.outcomes(timeout_s)]

    def check(self, broker: Broker) -> dict[str, list[ReadRecord]]:
        """All were acknowledged, each is where its metadata says, nothing else is there, promised order is kept."""
        acknowledged = self.acknowledged()
        stored = {topic: read_all(broker.bootstrap_servers, topic) for topic in sorted({s.topic for s in self.sent})}
        places = {(topic, r.partition, r.offset): r for topic, records in stored.items() for r in records}
        for sent, metadata in acknowledged:
            where = (sent.topic, metadata.partition, metadata.offset)
            assert metadata.topic == sent.topic
            assert as_stored(sent, where) == places.get(where), where
            sizes = (metadata.serialized_key_size, metadata.serialized_value_size)
            assert sizes == (_size(sent.key), _size(sent.value))
            appended = MOCK_APPEND_TIME if isinstance(broker, EmbeddedBroker) else sent.timestamp
            assert metadata.timestamp == appended
        assert len(places) == len(acknowledged)
        if keeps_order(self.producer):
            assert out_of_order(acknowledged) == []
        return stored


def good(outcome: RecordMetadata | KafkaError) -> RecordMetadata:
    """The metadata; raises the error that is there instead."""
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


def keeps_order(producer: KafkaProducer | None) -> bool:
    """Whether a batch that is sent again cannot be overtaken; a new topic's leader refuses the first ones at times."""
    assert producer is not None
    config = producer.config
    return bool(config["enable.idempotence"]) or config["max.in.flight.requests.per.connection"] == 1


def as_stored(sent: Sent, where: Place) -> ReadRecord:
    """The record as a reader must see it at that place."""
    _, partition, offset = where
    return ReadRecord(partition, offset, sent.key, sent.value, sent.headers, sent.timestamp)


def out_of_order(acknowledged: Iterable[tuple[Sent, RecordMetadata]]) -> list[tuple[Place, Place]]:
    """Neighbours of one thread and partition whose offsets do not ascend; acknowledged records in sending order."""
    last: dict[tuple[str, int, int], int] = {}
    wrong = []
    for sent, metadata in acknowledged:
        line = (sent.topic, metadata.partition, sent.sender)
        before = last.get(line, -1)
        if metadata.offset <= before:
            wrong.append(((sent.topic, metadata.partition, before), (sent.topic, metadata.partition, metadata.offset)))
        last[line] = metadata.offset
    return wrong


def by_partition(records: Iterable[ReadRecord]) -> dict[int, list[bytes | None]]:
    """The values of each partition in order of offset."""
    values: dict[int, list[bytes | None]] = defaultdict(list)
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        values[record.partition].append(record.value)
    return dict(values)


def lasting_topic(topic: TopicFactory, broker: Broker, partitions: int = 1) -> str:
    """A topic that takes every timestamp and never drops a record for its age."""
    if isinstance(broker, EmbeddedBroker):
        return topic(broker, partitions)
    forever = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}
    return topic(broker, partitions, config=forever)


def metric(producer: KafkaProducer, name: str) -> float:
    """One of the producer's own metrics."""
    return float(producer.metrics().value(name))


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


class Load:
    """Sends small records with values of their own, to all partitions in turn, on a thread, while the block runs."""

    def __init__(
        self, producer: KafkaProducer, topic: str, partitions: int, *, senders: int = 1, ahead: int | None = None
    ) -> None:
        """``ahead``: how many records may wait for their acknowledgement, about; None: as many as the producer takes.

        Where each record is a batch, a busy machine takes fewer than are sent, and what waits only grows.
        """
        self.ledger = Ledger(producer)
        self._topic = topic
        self._partitions = partitions
        self._ahead = ahead
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(sender,)) for sender in range(senders)]
        self._errors: list[BaseException] = []

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for error in self._errors:
            raise error

    def _work(self, sender: int) -> None:
        number = 0
        try:
            while not self._ended.is_set():
                self.ledger.send(
                    self._topic, b"%d:%d" % (sender, number), partition=number % self._partitions, sender=sender
                )
                number += 1
                if number % 20 == 0:
                    # A pace, so that a test of some seconds does not fill the embedded broker's 5 MB.
                    self._ended.wait(0.004)
                    while self._is_ahead() and not self._ended.is_set():
                        self._ended.wait(0.002)
        except BaseException as error:  # noqa: BLE001 -- raised at the end of the block
            self._errors.append(error)

    def _is_ahead(self) -> bool:
        sent = self.ledger.sent
        return self._ahead is not None and len(sent) > self._ahead and not sent[-self._ahead].future.done()

    def acknowledged(self) -> int:
        """Records acknowledged so far."""
        done = [sent.future for sent in list(self.ledger.sent) if sent.future.done()]
        return sum(future.exception(0) is None for future in done)

    def until_more(self, count: int = 50) -> None:
        """Waits until ``count`` records that are sent from now on were acknowledged."""
        begun = len(self.ledger.sent)

        def later() -> int:
            done = [sent.future for sent in self.ledger.sent[begun:] if sent.future.done()]
            return sum(future.exception(0) is None for future in done)

        until(lambda: later() >= count, f"{count} more records acknowledged")


class Verdict(NamedTuple):
    """What a run with faults came to."""

    acknowledged: int
    errors: list[KafkaError]
    doubled: int


def judge(ledger: Ledger, broker: Broker, *, timeout_s: float) -> Verdict:
    """No acknowledged record is missing, and none precedes one of its sender and partition that was sent before.

    Values must be unique.  ``timeout_s`` is what all futures may still take.
    """
    outcomes = ledger.outcomes(timeout_s)
    (topic,) = {sent.topic for sent in ledger.sent}
    places: dict[bytes | None, list[tuple[int, int]]] = defaultdict(list)
    for record in read_all(broker.bootstrap_servers, topic):
        places[record.value].append((record.partition, record.offset))
    acknowledged = [(sent, outcome) for sent, outcome in outcomes if isinstance(outcome, RecordMetadata)]
    errors = [outcome for _, outcome in outcomes if isinstance(outcome, KafkaError)]
    missing = []
    for sent, metadata in acknowledged:
        found = places.get(sent.value, [])
        if (metadata.has_offset and (metadata.partition, metadata.offset) not in found) or not found:
            missing.append((sent.value, metadata, found))
    assert missing == []
    assert out_of_order((sent, metadata) for sent, metadata in acknowledged if metadata.has_offset) == []
    assert set(places) <= {sent.value for sent in ledger.sent}
    return Verdict(len(acknowledged), errors, sum(len(found) > 1 for found in places.values()))
