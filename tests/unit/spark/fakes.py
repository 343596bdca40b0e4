"""A producer that keeps rows in lists and settles them when it is told to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay._delivery.result import BatchResult
from forebay.errors import KafkaError
from forebay.model import TransactionIdentity
from forebay.spark.options import SinkOptions


class FakeProducer:
    """Puts every ``rows_per_batch`` rows of a topic into one batch, all in partition 0."""

    batch_size = 1000

    def __init__(self, *, rows_per_batch: int = 3, refuse: KafkaError | None = None) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.results: list[BatchResult] = []
        self.outcomes: dict[int, KafkaError] = {}
        self.flushes = 0
        self.prepared: list[str | None] = []
        self.closed_with: float | None = None
        self.settles = True
        self.transactions: list[str] = []
        self.abort_error: KafkaError | None = None
        self._id = ""
        self._rows_per_batch = rows_per_batch
        self._refuse = refuse

    def fail_batch(self, number: int, error: KafkaError) -> None:
        self.outcomes[number] = error

    def prepare(self, topic: str | None) -> None:
        self.prepared.append(topic)

    def append(self, columns: Any, deliveries: Any, first_row: int) -> None:
        for at in range(len(columns)):
            row = columns.row(at)
            if self._refuse is not None and row[4] == b"refuse":
                raise self._refuse
            if len(self.rows) % self._rows_per_batch == 0:
                self.results.append(BatchResult(row[0], 0))
            self.rows.append(row)
            deliveries._track(self.results[-1], first_row + at, 10)

    def flush(self) -> None:
        self.flushes += 1
        if self.settles:
            self.settle()

    def settle(self) -> None:
        for number, result in enumerate(self.results):
            result.settle(-1, -1, self.outcomes.get(number), {}, 1, print)

    def begin(self, transactional_id: str) -> None:
        self._id = transactional_id
        self.transactions.append(f"begin {transactional_id}")

    def detach(self) -> TransactionIdentity:
        self.transactions.append("detach")
        return TransactionIdentity(self._id, 50, 0, 2)

    def abort(self, timeout: float) -> None:
        self.transactions.append("abort")
        if self.abort_error is not None:
            raise self.abort_error

    def counts(self) -> Mapping[str, float]:
        return {"byte-total": 100.0 * len(self.results), "record-send-total": float(len(self.rows))}

    def close(self, timeout: float) -> None:
        self.closed_with = timeout


def options(**producer: str) -> SinkOptions:
    return SinkOptions(tuple(sorted({"bootstrap.servers": "b:1", **producer}.items())), "t")
