"""A hook for the proxy that makes brokers' Produce answers worse than they were: errors, throttling."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from kio.schema.errors import ErrorCode
from kio.static.primitive import i32Timedelta, i64

from tests.support.rewrite import PRODUCE, Answer, decode, encode

#: Codes after which a batch is sent again as it is.
RETRIABLE = (2, 3, 5, 6, 7, 13, 19, 20, 56, 74, 75)


class Damage:
    """Changes Produce answers while it is told to; set from any thread, read by the proxy's.

    With ``code`` every partition of each ``every``-th answer gets this error, though the broker has written the
    records; with ``throttle_ms`` each answer asks for that pause.
    """

    def __init__(self) -> None:
        self.code = 0
        self.every = 1
        self.throttle_ms = 0
        self.damaged = 0
        self._seen = 0

    def stop(self) -> None:
        """Lets answers through as they are."""
        self.code = self.throttle_ms = 0

    def __call__(self, answer: Answer) -> bytes | None:
        code, throttle_ms = self.code, self.throttle_ms
        if answer.api_key != PRODUCE or not (code or throttle_ms):
            return answer.payload
        self._seen += 1
        value = decode(answer)
        if throttle_ms:
            value = replace(value, throttle_time=i32Timedelta.parse(timedelta(milliseconds=throttle_ms)))
        if code and self._seen % self.every == 0:
            value = replace(value, responses=tuple(_failed(topic, code) for topic in value.responses))
        self.damaged += 1
        return encode(value)


def _failed(topic: Any, code: int) -> Any:
    partitions = tuple(
        replace(one, error_code=ErrorCode(code), base_offset=i64(-1)) for one in topic.partition_responses
    )
    return replace(topic, partition_responses=partitions)
