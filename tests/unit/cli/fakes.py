"""A producer that settles each record as the test says, on the caller's thread."""

from __future__ import annotations

import io
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

from forebay.cli.input.blocks import Block
from forebay.cli.input.rows import BadRow, Row
from forebay.config import ProducerConfig
from forebay.errors import IllegalStateError, KafkaError
from forebay.errors._base import own_copy
from forebay.model import DeliveryCallback, DeliveryReport, RecordMetadata
from forebay.producer import KafkaProducer
from forebay.producer._columns.batch_delivery import FailedRows

CONFIG = ProducerConfig(bootstrap_servers="localhost:9092")


def rows_of(found: Iterable[Block | BadRow]) -> list[Row | BadRow]:
    """Blocks row by row, each with its size checked."""
    rows: list[Row | BadRow] = []
    for item in found:
        if isinstance(item, BadRow):
            rows.append(item)
            continue
        nothing = [None] * len(item.numbers)
        values, keys = (_cells(column, len(nothing)) for column in (item.values, item.keys))
        assert item.size == sum(len(cell) for cell in (*values, *keys) if cell is not None)
        columns = (item.headers or [()] * len(nothing), item.partitions or nothing, item.timestamps or nothing)
        rows += [Row(*cells) for cells in zip(item.numbers, values, keys, *columns, strict=True)]
    return rows


def _cells(column: Any, count: int) -> list[bytes | None]:
    """The cells as bytes; a column of text in Arrow gives str."""
    cells = [None] * count if column is None else column if isinstance(column, list) else column.to_pylist()
    return [cell.encode() if isinstance(cell, str) else cell for cell in cells]


class Trickle(io.RawIOBase):
    """A pipe: hands out the pieces it was given, one a read."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__()
        self._pieces = list(pieces)

    def read1(self, size: int) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


class Sent(NamedTuple):
    """A record as ``send`` was given it, without the callback, or a row of ``send_batch``."""

    topic: str
    value: bytes | None
    key: bytes | None
    headers: Any
    partition: int | None
    timestamp_ms: int | None


class FakeDelivery:
    """What ``send_batch`` returns; everything has its outcome."""

    def __init__(self, taken: Sequence[range] = ()) -> None:
        self.acknowledged = 0
        self.failures: tuple[FailedRows, ...] = ()
        self._taken = list(taken)

    def add(self, row: int, record: Sent, error: KafkaError | None) -> None:
        """Notes the outcome of the next row."""
        self._taken = [range(row + 1)]
        if error is None:
            self.acknowledged += 1
        else:
            own = own_copy(error).with_context(partition=f"{record.topic}-{record.partition or 0}")
            self.failures += (FailedRows(array("q", [row]), own),)

    def taken(self) -> list[range]:
        """Rows that were taken, ascending."""
        return self._taken

    def exception(self) -> KafkaError | None:
        """The first one."""
        return self.failures[0].error if self.failures else None

    def add_done_callback(self, function: Callable[[Any], object]) -> None:
        """Calls it at once."""
        function(self)


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
        self.batches: list[int] = []
        """Rows of each call of ``send_batch``."""
        self.closes: list[float | None] = []
        self.flushed = 0
        self.waits: list[float | None] = []
        """For how many seconds ``partitions_for`` was to wait."""
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

    def partitions_for(self, topic: str, *, timeout: float | None = None) -> tuple[int, ...]:
        self.waits.append(timeout)
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
        timestamp: int | None = None,
        *,
        on_delivery: DeliveryCallback,
    ) -> None:
        record = Sent(topic, value, key, headers, partition, timestamp)
        refusal = self._raising(record)
        if refusal is not None:
            raise refusal
        self.sent.append(record)
        sizes = [-1 if part is None else len(part) for part in (key, value)]
        metadata = RecordMetadata(topic, partition or 0, len(self.sent), -1, *sizes)
        on_delivery(DeliveryReport(metadata, self._outcome(record)))

    def send_batch(
        self, topic: str, values: Any, *, key: Any, headers: Any, partition: Any, timestamp: Any
    ) -> FakeDelivery:
        """Refuses a row as the producer does: for what ``raising`` says, and what an outcome waited for."""
        self.batches.append(len(values))
        nothing = [None] * len(values)
        partitions = [partition] * len(values) if isinstance(partition, int) else partition or nothing
        columns = (values, key or nothing, headers or nothing, partitions, timestamp or nothing)
        delivery = FakeDelivery()
        for row, cells in enumerate(zip(*columns, strict=True)):
            record = Sent(topic, *(cell.as_py() if hasattr(cell, "as_py") else cell for cell in cells))
            refusal = self._raising(record)
            outcome = None if refusal is not None else self._outcome(record)
            if refusal is None:
                self.sent.append(record)
            if outcome is not None and str(outcome.context.get("phase")).startswith("waiting"):
                refusal = outcome
            if refusal is not None:
                refusal.delivery = delivery  # type: ignore[attr-defined]
                if isinstance(refusal, KafkaError) and not isinstance(refusal, IllegalStateError):
                    refusal.with_context(row=row)
                raise refusal
            delivery.add(row, record, outcome)
        return delivery

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
