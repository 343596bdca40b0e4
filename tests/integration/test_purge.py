"""``purge`` on a real Kafka: what is dropped, what is written all the same, and what comes after it."""

from __future__ import annotations

import pytest

from forebay import KafkaProducer, RecordFuture
from forebay.errors import PurgedError
from tests.integration.workload import WAIT_S
from tests.support.fixtures import Broker, ProxyFactory, ReadBackFactory, TopicFactory
from tests.support.pace import until
from tests.support.proxy import KafkaProxy
from tests.support.readback import read_all

PRODUCE = 0
COUNT = 5


def values(mark: str) -> list[bytes]:
    return [b"%s %d" % (mark.encode(), number) for number in range(COUNT)]


def phases(futures: list[RecordFuture]) -> set[str | None]:
    """Of the errors by which they were purged; None for a record that was acknowledged."""
    found = set()
    for future in futures:
        error = future.exception(WAIT_S)
        assert error is None or isinstance(error, PurgedError)
        found.add(None if error is None else str(error.context["phase"]))
    return found


def produced(proxy: KafkaProxy) -> int:
    return sum(request.api_key == PRODUCE for request in proxy.requests)


@pytest.mark.parametrize("arrives", [True, False], ids=["the broker has it", "the broker never has it"])
@pytest.mark.parametrize(
    ("in_queue", "in_flight"), [(True, False), (False, True), (True, True)], ids=["queue", "in flight", "both"]
)
def test_what_is_purged_and_what_is_written(
    kafka: Broker,
    topic: TopicFactory,
    proxied: ProxyFactory,
    read_back: ReadBackFactory,
    in_queue: bool,
    in_flight: bool,
    arrives: bool,
) -> None:
    """One batch is in flight: written without an answer, or held before the broker.  Another one waits behind it."""
    name, proxy = topic(kafka), proxied(kafka)
    options = {"max.in.flight.requests.per.connection": 1, "linger.ms": 100, "retry.backoff.ms": 100}
    reader = read_back(kafka, name)
    with KafkaProducer({"bootstrap.servers": proxy.bootstrap_servers, **options}) as producer:
        assert producer.send(name, b"before").result(WAIT_S).offset == 0
        proxy.stall(answers=True, requests=not arrives)
        asked = produced(proxy)
        sent = [producer.send(name, value) for value in values("sent")]
        until(lambda: produced(proxy) > asked, "the request at the proxy")
        if arrives:
            assert len(reader.wait_for(1 + COUNT)) == 1 + COUNT
        queued = [producer.send(name, value) for value in values("queued")]
        assert not any(future.done() for future in sent + queued)
        producer.purge(in_queue=in_queue, in_flight=in_flight)
        assert {future.done() for future in queued} == {in_queue} and {future.done() for future in sent} == {in_flight}
        if not arrives:
            proxy.cut()
        proxy.resume()
        after = producer.send(name, b"after")
        assert phases(sent) == {"in flight" if in_flight else None}
        assert phases(queued) == {"queued" if in_queue else None}
        assert after.exception(WAIT_S) is None
    expected = [b"before"]
    expected += values("sent") if arrives or not in_flight else []
    expected += [] if in_queue else values("queued")
    found = read_all(kafka.bootstrap_servers, name)
    assert [record.value for record in found] == [*expected, b"after"]
    assert after.result().offset == found[-1].offset == len(expected)
