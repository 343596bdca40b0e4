"""The future of a record that never reached a batch."""

from __future__ import annotations

from typing import Any

from cython.cimports.forebay._delivery.callbacks import DeliveryCallbacks
from cython.cimports.forebay._delivery.future import BatchResult, RecordFuture, new_future

from forebay.errors import KafkaError


def failed_future(
    topic: str, partition: int, error: KafkaError, callback: Any = None, report: Any = None
) -> RecordFuture:
    """The future of a record that never reached a batch; its callback has run.

    Raises:
        KeyboardInterrupt: Ctrl-C came while the callback ran, which is on the caller's own thread here.
    """
    interrupts: list[BaseException] = []

    def report_or_keep(raised: BaseException, result: Any) -> None:
        if isinstance(raised, KeyboardInterrupt):
            interrupts.append(raised)
        else:
            report(raised, result)

    # Its traceback would pin the frames of the refused send.
    error = error.with_traceback(None)
    future: RecordFuture = new_future()
    future._batch = BatchResult(topic, partition)
    future._index = 0
    future._timestamp = -1
    future._key_size = -1
    future._value_size = -1
    if callback is not None:
        deliveries: DeliveryCallbacks = DeliveryCallbacks()
        deliveries.reserve(0, 1)
        deliveries.add(0, callback, -1, -1, -1)
        future._batch.deliveries = deliveries
    future._batch.settle(-1, -1, error, None, 1, report_or_keep)
    if interrupts:
        raise interrupts[0]
    return future
