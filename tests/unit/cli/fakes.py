"""A producer that settles each record as the test says, on the caller's thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from forebay.config import ProducerConfig
from forebay.errors import KafkaError
from forebay.model import RecordMetadata
from forebay.producer import KafkaProducer

CONFIG = ProducerConfig(bootstrap_servers="localhost:9092")


class Sent(NamedTuple):
    """What ``send`` was given, without the callback."""

    topic: str
    value: bytes | None
    key: bytes | None
    headers: Any
    partition: int | None
    timestamp_ms: int | None


class FakeProducer:
    """As much of a KafkaProducer as the commands use."""

    def __init__(
        self,
        partitions: int = 3,
        *,
        outcome: Callable[[Sent], KafkaError | None] = lambda sent: None,
        unknown: KafkaError | None = None,
        closing: Sequence[BaseException | None] = (),
        raising: Callable[[Sent], BaseException | None] = lambda sent: None,
        committing: Sequence[BaseException | None] = (),
    ) -> None:
        self.config = CONFIG
        self.sent: list[Sent] = []
        self.closes: list[float | None] = []
        self.flushed = 0
        self._partitions = partitions
        self._outcome = outcome
        self._unknown = unknown
        self._closing = list(closing)
        self._raising = raising
        self._committing = list(committing)
        self.calls: list[str] = []
        """Transactional calls, and how many records went before each."""

    def make(self, config: ProducerConfig) -> KafkaProducer:
        """The ``make`` of the commands."""
        self.config = config
        return self.typed()

    def typed(self) -> KafkaProducer:
        """Itself, as what it stands for."""
        return cast(KafkaProducer, self)

    def partitions_for(self, topic: str) -> tuple[int, ...]:
        if self._unknown is not None:
            raise self._unknown
        return tuple(range(self._partitions))

    def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        *,
        on_delivery: Callable[[RecordMetadata, KafkaError | None], object],
    ) -> None:
        record = Sent(topic, value, key, headers, partition, timestamp_ms)
        refusal = self._raising(record)
        if refusal is not None:
            raise refusal
        self.sent.append(record)
        sizes = [-1 if part is None else len(part) for part in (key, value)]
        on_delivery(RecordMetadata(topic, partition or 0, len(self.sent), -1, *sizes), self._outcome(record))

    def init_transactions(self) -> None:
        self._note("init")

    def begin_transaction(self) -> None:
        self._note("begin")

    def commit_transaction(self, timeout: float | None = None) -> None:
        self._note("commit")
        failure = self._committing.pop(0) if self._committing else None
        if failure is not None:
            raise failure

    def _note(self, call: str) -> None:
        self.calls.append(f"{call} {len(self.sent)}")

    def flush(self) -> None:
        self.flushed += 1

    def metrics(self) -> dict[Any, float]:
        return {}

    def close(self, timeout: float | None = None) -> None:
        self.closes.append(timeout)
        failure = self._closing.pop(0) if self._closing else None
        if failure is not None:
            raise failure
