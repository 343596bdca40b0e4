"""The independent reader: the confluent-kafka consumer with CRC checks, reading while the job writes."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from demo.check import digest
from demo.data import DemoError

AT_ONCE = 5000
POLL_S = 0.2


class ReadBack:
    """Reads every partition from the start on a thread of its own.

    ``read``, ``where``, ``per_partition`` and ``error`` are written by that thread; others look at them for
    progress, and in earnest after ``finish``.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.read: Counter[bytes] = Counter()
        self.where: dict[bytes, tuple[int, int]] = {}
        self.per_partition = [0] * partitions
        self.error: str | None = None
        self._topic = topic
        self._next = [0] * partitions
        self._written = threading.Event()
        self._complete = False
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "forebay-demo",
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
            "auto.offset.reset": "error",
        }
        self._consumer = Consumer(settings)
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        self._thread = threading.Thread(target=self._run, name="demo-reader", daemon=True)
        self._thread.start()

    @property
    def count(self) -> int:
        return sum(self.per_partition)

    def finish(self) -> None:
        """Reads up to the end of every partition; call it when nothing is written any more.

        Raises:
            DemoError: records were lost to the reader, or it failed.
        """
        self._written.set()
        self._thread.join()
        if self.error is not None or not self._complete:
            raise DemoError(f"the independent reader failed: {self.error or 'its thread ended early'}")

    def _run(self) -> None:
        try:
            while self.error is None:
                messages = self._consumer.consume(AT_ONCE, POLL_S)
                for message in messages:
                    self._take(message)
                if not messages and self._written.is_set() and self._at_end():
                    self._complete = True
                    return
        except (KafkaException, RuntimeError, ValueError) as error:
            self.error = f"{type(error).__name__}: {error}"
        finally:
            self._consumer.close()

    def _take(self, message: Any) -> None:
        if message.error() is not None:
            self.error = str(message.error())
            return
        partition, offset = message.partition(), message.offset()
        if offset != self._next[partition]:
            self.error = f"partition {partition}: expected offset {self._next[partition]}, got {offset}"
            return
        self._next[partition] = offset + 1
        self.per_partition[partition] += 1
        kind, timestamp = message.timestamp()
        # 1 is CreateTime, the record's own; anything else may not pass for it.
        row = digest(
            partition, timestamp if kind == 1 else -kind - 1, message.key(), message.headers() or (), message.value()
        )
        self.read[row] += 1
        self.where[row] = (partition, offset)

    def _at_end(self) -> bool:
        for partition, position in enumerate(self._next):
            _, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=10)
            if position < high:
                return False
        return True
