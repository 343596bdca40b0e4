"""The error codes that brokers do send, in front of a real broker, and what is in its log afterwards.

A proxy answers one request of each API with the code: in place of the broker, which then has not seen the request,
or after the broker did the work.  A record must be in the log once or not at all, whatever the producer was told;
without idempotence it is there once for each time it was sent.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest

from forebay import KafkaProducer, errors
from tests.error_matrix import MATRIX, NAMES, RETURNED
from tests.integration.workload import WAIT_S, metric
from tests.support.fixtures import ProxyFactory, TopicFactory
from tests.support.pace import until, within_ms
from tests.support.proxy import Fault, KafkaProxy, refused, told
from tests.support.readback import read_all
from tests.support.refusal import INIT_PRODUCER_ID
from tests.support.rewrite import API_VERSIONS, METADATA, PRODUCE, Answer, metadata_error
from tools.kafka import RealKafka

QUICK: dict[str, Any] = {
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 5,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 5,
    "linger.ms": 0,
    "max.block.ms": within_ms(20_000),
}
RETRIED = ("retry", "fresh", "mend")
GONE_ON = (*RETRIED, "done", "fail", "split")


@pytest.fixture(autouse=True)
def without_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "forebay")


def producer(proxy: KafkaProxy, **options: Any) -> KafkaProducer:
    return KafkaProducer({"bootstrap.servers": proxy.bootstrap_servers, **QUICK, **options})


def ends(ours: KafkaProducer, name: str, *values: bytes) -> list[str]:
    """How each of these records, sent one after the other, ends."""
    found = []
    for value in values:
        error = ours.send(name, value).exception(WAIT_S)
        found.append("acknowledged" if error is None else type(error).__name__)
    return found


def expected_ends(column: str, code: int) -> list[str]:
    """Of the record that met the code, and of the next one."""
    word = MATRIX[column][code]
    kind = errors.ProducerFencedError if word == "fence" else errors.for_code(code)
    assert kind is not None
    first = "acknowledged" if word in (*RETRIED, "done") else kind.__name__
    return [first, "acknowledged" if word in GONE_ON else kind.__name__]


def copies(kafka: RealKafka, name: str) -> Counter[bytes | None]:
    return Counter(record.value for record in read_all(kafka.bootstrap_servers, name))


# -- Produce --------------------------------------------------------------------------------------------------


def written(column: str, code: int, fault: Fault) -> int:
    """How often the record is in the log that met the code; after ``mend`` and ``done`` only if that was no lie."""
    word = MATRIX[column][code]
    if not fault.arrives:
        return int(word in RETRIED)
    return 2 if word in RETRIED and column == "plain" else 1


@pytest.mark.parametrize("way", [refused, told])
@pytest.mark.parametrize("column", ["idem", "plain"])
def test_produce(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, column: str, way: Any) -> None:
    name, proxy = topic(kafka), proxied(kafka)
    # A broker that wrote a batch does not miss one before it, and one that has not seen a batch has no duplicate.
    lies = (45, 59) if way is told else (46,)
    codes = [code for code in RETURNED["idem"] if code not in lies]
    found, expected, stored = {}, {}, Counter[bytes | None]()
    for code in codes:
        values = [b"%d before" % code, b"%d" % code, b"%d after" % code]
        with producer(proxy, **{"enable.idempotence": column == "idem"}) as ours:
            first = ends(ours, name, values[0])
            proxy.plan(PRODUCE, way(code))
            found[NAMES[code]] = first + ends(ours, name, *values[1:])
        expected[NAMES[code]] = ["acknowledged", *expected_ends(column, code)]
        assert proxy.planned() == 0
        stored.update({values[0]: 1, values[1]: written(column, code, way(code))})
        stored.update({values[2]: MATRIX[column][code] in GONE_ON})
    assert found == expected
    assert copies(kafka, name) == +stored


def test_one_of_several_in_flight_is_refused_for_good(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory
) -> None:
    """The second of five: the others are written, in order and once, though the broker misses its sequences."""
    name, proxy = topic(kafka), proxied(kafka)
    with producer(proxy) as ours:
        ours.send(name, b"before").result(WAIT_S)
        proxy.stall(answers=False, requests=True)
        futures = [ours.send(name, b"0")]
        until(lambda: sum(request.api_key == PRODUCE for request in proxy.requests) == 2, "the first request")
        futures += [ours.send(name, b"%d" % number) for number in range(1, 5)]
        proxy.plan(PRODUCE, refused(87))
        proxy.resume()
        ended = [type(future.exception(WAIT_S)) for future in futures]
        later = ours.send(name, b"later").result(WAIT_S)
    values = [record.value for record in read_all(kafka.bootstrap_servers, name)]
    kept = [b"%d" % number for number, end in enumerate(ended) if end is type(None)]
    assert values == [b"before", *kept, b"later"]
    assert later.offset == len(values) - 1
    assert ended[:2] == [type(None), errors.InvalidRecordError]
    assert set(ended) == {type(None), errors.InvalidRecordError}


# -- InitProducerId -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [refused, told])
def test_init_producer_id(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, way: Any) -> None:
    name, proxy = topic(kafka), proxied(kafka)
    found, expected, stored = {}, {}, Counter[bytes | None]()
    for code in RETURNED["init"]:
        values = [b"%d" % code, b"%d after" % code]
        # The id is asked for before there is a record, and again for the first one if that is refused.
        planned = [way(code)] * (2 if MATRIX["init"][code] == "fail" else 1)
        proxy.plan(INIT_PRODUCER_ID, *planned)
        with producer(proxy) as ours:
            first = ends(ours, name, values[0])
            assert proxy.planned() < len(planned)
            proxy.clear_plans()
            found[NAMES[code]] = first + ends(ours, name, values[1])
        expected[NAMES[code]] = expected_ends("init", code)
        stored.update(value for value, end in zip(values, expected[NAMES[code]], strict=True) if end == "acknowledged")
    assert found == expected
    assert copies(kafka, name) == stored


# -- Metadata and ApiVersions ---------------------------------------------------------------------------------


def test_metadata(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory) -> None:
    """A top-level error, of the first answer and of a later one: nobody hears of it, and records get through."""
    name, proxy = topic(kafka), proxied(kafka)
    for code in (*RETURNED["meta"], 42, -1):
        proxy.plan(METADATA, refused(code))
        with producer(proxy, **{"metadata.max.age.ms": 50}) as ours:
            assert ends(ours, name, b"%d" % code) == ["acknowledged"]
            proxy.plan(METADATA, refused(code))
            while proxy.planned():
                assert ends(ours, name, b"%d" % code) == ["acknowledged"]
            assert ends(ours, name, b"%d" % code) == ["acknowledged"]


def asked_for_metadata(proxy: KafkaProxy) -> int:
    return sum(request.api_key == METADATA for request in proxy.requests)


@pytest.mark.parametrize("column", ["topic", "part"])
def test_errors_in_metadata(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, column: str) -> None:
    found, expected = {}, {}
    for code in RETURNED[column]:
        name = topic(kafka)
        left, word = [2], MATRIX[column][code]

        def hook(answer: Answer, code: int = code, name: str = name, left: list[int] = left) -> bytes | None:
            return metadata_error(answer, name, code, left, of_partition=column == "part")

        proxy = proxied(kafka, hooks=[hook])
        with producer(proxy) as ours:
            found[NAMES[code]] = ends(ours, name, b"v")[0]
            # Where the broken answer names a leader, the record may be written before the next question.
            least = 1 if word == "fail" else 2
            until(lambda: asked_for_metadata(proxy) >= least, "another request")  # noqa: B023 - called in here
        kind = errors.for_code(code)
        assert kind is not None
        expected[NAMES[code]] = kind.__name__ if word == "fail" else "acknowledged"
        assert [r.value for r in read_all(kafka.bootstrap_servers, name)] == ([] if word == "fail" else [b"v"])
    assert found == expected


def test_api_versions(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory) -> None:
    name, proxy = topic(kafka), proxied(kafka)
    for code in (*RETURNED["api"], -1):
        proxy.plan(API_VERSIONS, refused(code))
        with producer(proxy) as ours:
            assert ends(ours, name, b"%d" % code) == ["acknowledged"]
            # The bootstrap connection and the node's; "anew" is one more.
            assert metric(ours, "connection-creation-total") == (2 if MATRIX["api"][code] == "lower" else 3)
        assert proxy.planned() == 0
