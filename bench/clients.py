"""The same work in each Python client: so many records of one size into one topic, all acknowledged.

Run as a child (``run_child("bench.clients", work)``), one client a process.  The clock runs from the first send,
with the topic's metadata there, to the last acknowledgement; CPU time from before the client is made until after
it is closed, imports and interpreter start apart.  All are idempotent with acks=all (forebay's default and Java's);
each client keeps its other defaults but for what the work says, and where its buffer is full, it waits as its
documentation tells to.  Callbacks are one function for all records, which looks at the error and counts.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from bench.support import cpu_seconds, peak_kib, work_of_child

POLL_EVERY = 1000
"""Sends between two polls of confluent-kafka, which runs its callbacks there; a poll after each, as in its examples,
costs more."""
KEYS = 1024
HEADERS = [("trace", b"0123456789abcdef"), ("kind", b"bench")]


class Count:
    """How many records were acknowledged; callbacks count inline, for a further call in each would be measured too."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = 0


def fail(error: object) -> NoReturn:
    """The first error ends the run."""
    raise RuntimeError(f"a record was not delivered: {error}")


Outcome = tuple[float, int]
"""Seconds, and how many acknowledgements were seen by callbacks."""


def keys(records: int) -> Iterator[bytes]:
    """A key of 12 bytes for each record, out of a few that were made before: making them is not what is measured."""
    made = [b"key-%08d" % number for number in range(KEYS)]
    return itertools.islice(itertools.cycle(made), records)


def forebay(work: dict[str, Any]) -> Outcome:
    from forebay import KafkaProducer

    count = Count()
    topic, value, records = work["topic"], bytes(work["size"]), work["records"]
    config = {"bootstrap.servers": work["bootstrap"], "acks": "all", "linger.ms": work["linger_ms"], **work["config"]}
    with KafkaProducer(config) as producer:
        producer.partitions_for(topic)
        send = producer.send
        begun = time.perf_counter()
        if work["callback"]:
            # A plain function, as an application would have; a bound method costs the same.
            def delivered(report: Any) -> None:
                if report.error is not None:
                    fail(report.error)
                count.done += 1

            for _ in range(records):
                send(topic, value, on_delivery=delivered)
        elif work.get("keyed"):
            headers = HEADERS
            for key in keys(records):
                send(topic, value, key, headers=headers)
        else:
            for _ in range(records):
                send(topic, value)
        producer.flush()
        seconds = time.perf_counter() - begun
    return seconds, count.done


def forebay_aio(work: dict[str, Any]) -> Outcome:
    return asyncio.run(_forebay_aio(work))


async def _forebay_aio(work: dict[str, Any]) -> Outcome:
    from forebay.producer.aio import AsyncKafkaProducer

    count = Count()
    topic, value, records = work["topic"], bytes(work["size"]), work["records"]
    config = {"bootstrap.servers": work["bootstrap"], "acks": "all", "linger.ms": work["linger_ms"], **work["config"]}
    async with AsyncKafkaProducer(config) as producer:
        await producer.partitions_for(topic)
        send = producer.send

        def delivered(report: Any) -> None:
            if report.error is not None:
                fail(report.error)
            count.done += 1

        begun = time.perf_counter()
        if work["callback"]:
            for _ in range(records):
                await send(topic, value, on_delivery=delivered)
        else:
            for _ in range(records):
                await send(topic, value)
        await producer.flush()
        while work["callback"] and count.done < records:
            await asyncio.sleep(0)
        seconds = time.perf_counter() - begun
    return seconds, count.done


def confluent_aio(work: dict[str, Any]) -> Outcome:
    return asyncio.run(_confluent_aio(work))


async def _confluent_aio(work: dict[str, Any]) -> Outcome:
    from confluent_kafka.aio import AIOProducer

    topic, value, records = work["topic"], bytes(work["size"]), work["records"]
    producer = AIOProducer(_of_librdkafka(work))
    await producer.list_topics(topic, timeout=10)
    begun = time.perf_counter()
    # Its futures are the only way to hear of an error, and a full queue fails them: so many are outstanding.
    for first in range(0, records, 10 * POLL_EVERY):
        sent = [await producer.produce(topic, value) for _ in range(min(10 * POLL_EVERY, records - first))]
        await producer.flush()
        for message in await asyncio.gather(*sent):
            if message.error() is not None:
                fail(message.error())
    seconds = time.perf_counter() - begun
    await producer.close()
    return seconds, 0


def confluent(work: dict[str, Any]) -> Outcome:
    """confluent-kafka, or the class here that takes its place: the import alone differs."""
    Producer = importlib.import_module(MODULES[work["client"]]).Producer

    count = Count()
    topic, value, records = work["topic"], bytes(work["size"]), work["records"]
    producer = Producer(_of_librdkafka(work))
    producer.list_topics(topic, timeout=10)

    def delivered(error: object, message: object) -> None:
        if error is not None:
            fail(error)
        count.done += 1

    produce_each = _with_callbacks if work["callback"] else _keyed if work.get("keyed") else _plain
    each: Iterator[Any] = keys(records) if work.get("keyed") else itertools.repeat(None, records)
    begun = time.perf_counter()
    for _ in range(0, records, POLL_EVERY):
        produce_each(producer, topic, value, itertools.islice(each, POLL_EVERY), delivered)
        producer.poll(0)
    producer.flush()
    return time.perf_counter() - begun, count.done


# Each call as a program would write it: one by ** would cost more than what it measures.


def _plain(producer: Any, topic: str, value: bytes, each: Iterator[Any], delivered: Any) -> None:
    produce = producer.produce
    for _ in each:
        try:
            produce(topic, value)
        except BufferError:
            _again(producer, topic, value)


def _with_callbacks(producer: Any, topic: str, value: bytes, each: Iterator[Any], delivered: Any) -> None:
    produce = producer.produce
    for _ in each:
        try:
            produce(topic, value, on_delivery=delivered)
        except BufferError:
            _again(producer, topic, value, on_delivery=delivered)


def _keyed(producer: Any, topic: str, value: bytes, each: Iterator[Any], delivered: Any) -> None:
    produce, headers = producer.produce, HEADERS
    for key in each:
        try:
            produce(topic, value, key, headers=headers)
        except BufferError:
            _again(producer, topic, value, key, headers=headers)


def _again(producer: Any, *arguments: Any, **options: Any) -> None:
    """The queue was full."""
    while True:
        producer.poll(0.005)
        try:
            producer.produce(*arguments, **options)
            return
        except BufferError:
            pass


def _of_librdkafka(work: dict[str, Any]) -> dict[str, Any]:
    config = {"bootstrap.servers": work["bootstrap"], "acks": "all", "enable.idempotence": True}
    # Keys are placed as by Java.
    return {**config, "linger.ms": work["linger_ms"], "partitioner": "murmur2_random", **work["config"]}


def confluent_batches(work: dict[str, Any]) -> Outcome:
    """Lists of messages instead of single ones; what found the queue full is handed over again."""
    from confluent_kafka import Producer

    topic, value, records = work["topic"], bytes(work["size"]), work["records"]
    producer = Producer(_of_librdkafka(work))
    producer.list_topics(topic, timeout=10)
    begun = time.perf_counter()
    for first in range(0, records, POLL_EVERY):
        messages: list[dict[str, Any]] = [{"value": value} for _ in range(min(POLL_EVERY, records - first))]
        while messages:
            left = len(messages) - producer.produce_batch(topic, messages)
            # The library marks those it refused; which ones is of no matter where all are alike.
            messages = [{"value": value} for _ in range(left)]
            producer.poll(0.005 if left else 0)
    producer.flush()
    return time.perf_counter() - begun, 0


def kafka_python(work: dict[str, Any]) -> Outcome:
    """kafka-python, or the class here that takes its place: the import alone differs."""
    KafkaProducer = importlib.import_module(MODULES[work["client"]]).KafkaProducer

    count = Count()
    topic, value, records = work["topic"], bytes(work["size"]), work["records"]
    producer = KafkaProducer(
        bootstrap_servers=work["bootstrap"], acks="all", linger_ms=work["linger_ms"], **work["config"]
    )
    producer.partitions_for(topic)

    def delivered(metadata: object) -> None:
        count.done += 1

    send, headers = producer.send, HEADERS
    begun = time.perf_counter()
    if work["callback"]:
        # As in its documentation.
        for _ in range(records):
            send(topic, value).add_callback(delivered).add_errback(fail)
    elif work.get("keyed"):
        for key in keys(records):
            send(topic, value, key, headers=headers)
    else:
        for _ in range(records):
            send(topic, value)
    producer.flush()
    seconds = time.perf_counter() - begun
    producer.close()
    return seconds, count.done


def aiokafka(work: dict[str, Any]) -> Outcome:
    return asyncio.run(_aiokafka(work))


async def _aiokafka(work: dict[str, Any]) -> Outcome:
    """aiokafka, or the class here that takes its place: the import alone differs."""
    AIOKafkaProducer = importlib.import_module(MODULES[work["client"]]).AIOKafkaProducer

    count = Count()
    topic, value, records = work["topic"], bytes(work["size"]), work["records"]
    producer = AIOKafkaProducer(
        bootstrap_servers=work["bootstrap"],
        acks="all",
        enable_idempotence=True,
        linger_ms=work["linger_ms"],
        **work["config"],
    )
    await producer.start()
    try:
        await producer.partitions_for(topic)

        def delivered(future: asyncio.Future[Any]) -> None:
            if (error := future.exception()) is not None:
                fail(error)
            count.done += 1

        begun = time.perf_counter()
        if work["callback"]:
            for _ in range(records):
                (await producer.send(topic, value)).add_done_callback(delivered)
        else:
            for _ in range(records):
                await producer.send(topic, value)
        await producer.flush()
        # A future's callbacks come one turn of the loop after it is done.
        await asyncio.sleep(0)
        seconds = time.perf_counter() - begun
    finally:
        await producer.stop()
    return seconds, count.done


CLIENTS: dict[str, Callable[[dict[str, Any]], Outcome]] = {
    "forebay": forebay,
    "forebay aio": forebay_aio,
    "confluent-kafka": confluent,
    "forebay as confluent-kafka": confluent,
    "confluent-kafka aio": confluent_aio,
    "confluent-kafka batches": confluent_batches,
    "kafka-python": kafka_python,
    "forebay as kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "forebay as aiokafka": aiokafka,
}


# forebay's own name imports its producer on first use only.
MODULES = {
    "forebay": "forebay.producer",
    "forebay aio": "forebay.producer.aio",
    "confluent-kafka": "confluent_kafka",
    "forebay as confluent-kafka": "forebay.compat.confluent_kafka",
    "confluent-kafka aio": "confluent_kafka.aio",
    "confluent-kafka batches": "confluent_kafka",
    "kafka-python": "kafka",
    "forebay as kafka-python": "forebay.compat.kafka",
    "aiokafka": "aiokafka",
    "forebay as aiokafka": "forebay.compat.aiokafka",
}


def run(work: dict[str, Any]) -> dict[str, Any]:
    """Does the work in this process.

    Raises:
        RuntimeError: callbacks were asked for, and not every record's came.
    """
    # Here, so that the import is in no measurement.
    importlib.import_module(MODULES.get(work["client"], work["client"]))
    before = cpu_seconds()
    seconds, called = CLIENTS[work["client"]](work)
    if work["callback"] and called != work["records"]:
        raise RuntimeError(f"{work['client']}: {called} of {work['records']} callbacks came")
    return {"seconds": seconds, "cpu_s": cpu_seconds() - before, "peak_kib": peak_kib()}


if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.clients is run by the benches")
    print(json.dumps(run(given)))
