"""Celery tasks that send: against the embedded broker, and with a producer that sends nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import Celery  # type: ignore[import-untyped]

from forebay import per_process
from forebay.errors import KafkaError, KafkaTimeoutError
from forebay.testing import MockProducer, ReadRecord

orders = Celery("orders")
# Tasks run at once, in this process.
orders.conf.task_always_eager = True
settings: dict[str, Any] = {}
"""``producer``, which is ``forebay.per_process(...)`` in production, and ``topic``."""


@orders.task(name="orders.place", autoretry_for=(KafkaError,), default_retry_delay=0, max_retries=2)  # type: ignore[untyped-decorator]
def place(number: int) -> int:
    """The task under test."""
    return int(settings["producer"]().send(settings["topic"], b"order %d" % number).result(10).offset)


def test_tasks_send(
    kafka_config: dict[str, Any], kafka_topic: str, kafka_records: Callable[..., list[ReadRecord]]
) -> None:
    producer = per_process(kafka_config)
    try:
        settings.update(producer=producer, topic=kafka_topic)
        assert [place.delay(number).get() for number in range(3)] == [0, 1, 2]
    finally:
        producer.close()
    assert [record.value for record in kafka_records()] == [b"order 0", b"order 1", b"order 2"]


def test_a_task_is_tried_again() -> None:
    """No broker at all: the mock keeps what is sent."""
    refusals = [KafkaTimeoutError("no answer"), KafkaTimeoutError("no answer")]
    mock = MockProducer()

    def producer() -> MockProducer:
        mock.fail("send", refusals.pop() if refusals else None)
        return mock

    settings.update(producer=producer, topic="orders")
    assert place.delay(41).get() == 0
    assert [record.value for record in mock.history()] == [b"order 41"]
