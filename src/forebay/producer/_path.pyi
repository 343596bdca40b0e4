# Written by `make generated` from the module beside it (tools/stubs.py): its public part, without Cython.

from typing import Any

from forebay._delivery.future import RecordFuture
from forebay._runtime.times import Timestamp
from forebay.model import DeliveryCallback, Headers, ProducerRecord

class SendPath:
    def send(
        self,
        topic: str | ProducerRecord,
        value: Any = None,
        key: Any = None,
        *,
        on_delivery: DeliveryCallback | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: Timestamp | None = None,
    ) -> RecordFuture: ...
    def send_nowait(
        self,
        topic: str | ProducerRecord,
        value: Any = None,
        key: Any = None,
        *,
        on_delivery: DeliveryCallback | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: Timestamp | None = None,
    ) -> RecordFuture: ...
