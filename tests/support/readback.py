"""An independent reader: what a topic really holds, as librdkafka's consumer sees it, CRC checked.

:class:`ReadBack` reads while the test writes (the embedded broker keeps only 5 MB a partition);
:func:`read_all` reads what is there now.  Whatever the reader cannot read, a dropped offset included, is an
error and never silence.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, TopicPartition

from tests.support.pace import HANG_S

SLICE_S = 0.03
MANY = 5000
# Told by librdkafka while it reconnects by itself; everything else ends the reading.
PASSING = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT})


class ReadRecord(NamedTuple):
    """A record as the consumer hands it out; ``timestamp`` in ms, None when the record has none."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int | None


class ReadBack:
    """Reads all partitions of ``topic`` from offset 0, on a thread, until :meth:`close`.

    From 0 and not from the beginning of what is left: records that the broker dropped are an error.

    ``properties`` go to the consumer (``isolation.level`` is read_committed unless given).
    """

    def __init__(self, bootstrap_servers: str, topic: str, *, properties: Mapping[str, Any] | None = None) -> None:
        self.topic = topic
        self._consumer = _consumer(bootstrap_servers, properties)
        self._ended = threading.Event()
        # Guards the four below: the test asks, the thread answers.
        self._changed = threading.Condition()
        self._records: list[ReadRecord] = []
        self._error: Exception | None = None
        self._asked = 0
        self._answered = 0
        # Where each partition ended when the question of this number was seen; the thread's own.
        self._ends: dict[int, int] = {}
        self._ends_of = 0
        try:
            self._partitions = _partitions(self._consumer, topic)
        except BaseException:
            self._consumer.close()
            raise
        self._consumer.assign([TopicPartition(topic, number, 0) for number in self._partitions])
        self._thread = threading.Thread(target=self._read, name=f"read-back {topic}", daemon=True)
        self._thread.start()

    def count(self) -> int:
        """Records read so far; raises what stopped the reading."""
        with self._changed:
            self._raise()
            return len(self._records)

    def wait_for(self, count: int, timeout_s: float = HANG_S) -> list[ReadRecord]:
        """The records in the order of reading, as soon as there are ``count``; TimeoutError with both numbers."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while len(self._records) < count:
                self._raise()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(
                        f"{self.topic}: {len(self._records)} of {count} records read back in {timeout_s:g} s"
                    )
                self._changed.wait(left)
            self._raise()
            return list(self._records)

    def until_end(self, timeout_s: float = HANG_S) -> list[ReadRecord]:
        """The records, as soon as all that are in the log at this moment have been read."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._asked += 1
            asked = self._asked
            while self._answered < asked:
                self._raise()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(
                        f"{self.topic}: end {self._ends} not reached in {timeout_s:g} s, {len(self._records)} read"
                    )
                self._changed.wait(left)
            self._raise()
            return list(self._records)

    def close(self) -> None:
        """Stops reading; what was read can still be asked for."""
        self._ended.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _read(self) -> None:
        # The consumer is used by this thread only: calls of two threads at once wait for each other.
        try:
            while not self._ended.is_set():
                self._take([_record(message) for message in self._consumer.consume(MANY, SLICE_S) if _good(message)])
        except Exception as error:  # noqa: BLE001 -- whatever it is, the test that asks gets it
            with self._changed:
                self._error = error
                self._changed.notify_all()
        finally:
            self._consumer.close()

    def _take(self, found: list[ReadRecord]) -> None:
        with self._changed:
            if found:
                self._records += found
                self._changed.notify_all()
            asked = self._asked
        if asked == self._answered:
            return
        if self._ends_of != asked:
            self._ends_of = asked
            self._ends = {number: _end(self._consumer, self.topic, number) for number in self._partitions}
        if self._reached():
            with self._changed:
                self._answered = asked
                self._changed.notify_all()

    def _reached(self) -> bool:
        # The position, not the last record: control records and compacted ones are passed without being seen.
        asked = [TopicPartition(self.topic, number) for number, end in self._ends.items() if end > 0]
        return all(found.offset >= self._ends[found.partition] for found in self._consumer.position(asked))


def read_all(
    bootstrap_servers: str, topic: str, *, properties: Mapping[str, Any] | None = None, timeout_s: float = HANG_S
) -> list[ReadRecord]:
    """Everything in ``topic`` at this moment, sorted by partition and offset."""
    with ReadBack(bootstrap_servers, topic, properties=properties) as reader:
        return sorted(reader.until_end(timeout_s), key=lambda record: record[:2])


def _consumer(bootstrap_servers: str, properties: Mapping[str, Any] | None) -> Consumer:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "read-back",
        "enable.auto.commit": False,
        "check.crcs": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 50,
        "log_level": 2,
    }
    return Consumer({**settings, **(properties or {})})


def _partitions(consumer: Consumer, topic: str) -> tuple[int, ...]:
    deadline = time.monotonic() + HANG_S
    while True:
        found = consumer.list_topics(topic, timeout=HANG_S).topics[topic]
        if found.error is None and found.partitions:
            return tuple(sorted(found.partitions))
        if time.monotonic() > deadline:
            raise RuntimeError(f"topic {topic!r} cannot be read back: {found.error or 'no partitions'}")
        time.sleep(SLICE_S)


def _end(consumer: Consumer, topic: str, partition: int) -> int:
    offsets = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=HANG_S)
    if offsets is None:
        raise TimeoutError(f"{topic}-{partition}: the broker does not tell where it ends")
    low, high = offsets
    return high if high > low else 0


def _good(message: Any) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.code() in PASSING:
        return False
    raise RuntimeError(f"{message.topic()}-{message.partition()} at {message.offset()}: {error}")


def _record(message: Any) -> ReadRecord:
    kind, timestamp = message.timestamp()
    return ReadRecord(
        partition=message.partition(),
        offset=message.offset(),
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),
        timestamp=None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
    )
