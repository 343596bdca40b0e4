"""librdkafka's options: names, units, defaults, and what is refused."""

from __future__ import annotations

import logging
from typing import Any

import confluent_kafka
import pytest

from forebay.compat._librdkafka_config import _CONSUMERS, LibrdkafkaOptions, read_options
from forebay.compat._librdkafka_errors import KafkaException

SERVERS = {"bootstrap.servers": "localhost:9092"}


def read(**options: Any) -> LibrdkafkaOptions:
    return read_options({**SERVERS, **{name.replace("_", "."): value for name, value in options.items()}})


def test_defaults_are_librdkafkas() -> None:
    options = read_options(SERVERS)
    assert options.partitioner == "consistent_random" and options.is_sticky
    assert (options.most_messages, options.native["buffer.memory"]) == (100_000, 2**30)
    assert (options.native["delivery.timeout.ms"], options.native["linger.ms"]) == (300_000, 5)
    assert options.native["max.request.size"] == 1_000_000
    assert (options.default_callback, options.only_errors, options.error_cb) == (None, False, None)


def test_names_and_units() -> None:
    given = {
        "metadata.broker.list": "a:1",
        "queue.buffering.max.kbytes": "64000",
        "queue.buffering.max.messages": "7",
        "queue.buffering.max.ms": "20",
        "request.required.acks": 1,
        "compression.codec": "gzip",
        "compression.level": 3,
        "message.send.max.retries": 4,
        "message.max.bytes": 2000,
        "max.in.flight": 1,
        "enable.idempotence": "false",
        "delivery.report.only.error": "True",
    }
    options = read_options(given)
    native = options.native
    assert native["bootstrap.servers"] == ("a:1",) and native["buffer.memory"] == 65_536_000
    assert (options.most_messages, native["linger.ms"], native["acks"], options.only_errors) == (7, 20, 1, True)
    assert (native["compression.type"], native["compression.gzip.level"], native["retries"]) == ("gzip", 3, 4)
    assert (native["max.request.size"], native["max.in.flight.requests.per.connection"]) == (2000, 1)


@pytest.mark.parametrize(("given", "kept"), [("false", False), (False, False), ("true", True), (None, True)])
def test_metrics_for_brokers_have_the_same_switch_and_default(given: Any, kept: bool) -> None:
    assert read_options({**SERVERS, "enable.metrics.push": given}).native["enable.metrics.push"] is kept


def test_topic_options_may_be_in_a_dict_of_their_own() -> None:
    topics = {"acks": "all", "partitioner": "fnv1a", "message.timeout.ms": 7000}
    options = read_options({**SERVERS, "acks": 1, "delivery.timeout.ms": 9000, "default.topic.config": topics})
    assert options.native["acks"] == -1 and options.partitioner == "fnv1a"  # they go before the client's own
    assert options.native["delivery.timeout.ms"] == 7000
    with pytest.raises(TypeError, match=r"default\.topic\.config must be a dict, got str"):
        read_options({**SERVERS, "default.topic.config": "acks=all"})


@pytest.mark.parametrize("name", sorted(_CONSUMERS))
def test_options_of_consumers_are_taken_as_the_original_takes_them(name: str) -> None:
    assert read_options({**SERVERS, name: "anything"}).native["bootstrap.servers"] == ("localhost:9092",)
    for value in (1, True, "latest", "range", "none", "classic", "read_committed"):
        try:
            confluent_kafka.Producer({"bootstrap.servers": "localhost:1", "log_level": 0, name: value})
            break
        except confluent_kafka.KafkaException as error:
            assert "No such configuration property" not in str(error)


def test_a_dict_that_is_shared_with_a_consumer_gives_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "forebay.compat"):
        read_options({**SERVERS, **dict.fromkeys(_CONSUMERS, "anything")})
    (record,) = caplog.records
    assert "group.id, group.instance.id" in record.getMessage() and "anything" not in record.getMessage()


@pytest.mark.parametrize(("message", "request_ms"), [(10, 5), (300_000, 30_000), (0, 30_000)])
def test_a_short_message_timeout_shortens_requests(message: int, request_ms: int) -> None:
    native = read(message_timeout_ms=message).native
    assert native["delivery.timeout.ms"] == (message or 2**31 - 1) == native["max.block.ms"]
    assert native["request.timeout.ms"] == request_ms


def test_what_has_no_effect_is_taken_with_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "forebay.compat"):
        read_options({**SERVERS, "debug": "all", "api.version.request": True, "log_level": 7})
    said = [record.getMessage() for record in caplog.records]
    assert "debug='all' has no effect in this client" in said and len(said) == 3


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("should.fail", 1, 'No such configuration property: "should.fail"'),
        ("linger.ms", "soon", '"linger.ms" must be a number'),
        ("linger.ms", True, '"linger.ms" must be a number'),
        ("message.timeout.ms", 1.5, '"message.timeout.ms" must be an integer'),
        ("queue.buffering.max.kbytes", 0, '"queue.buffering.max.kbytes" must be an integer from 1'),
        ("partitioner", "murmur", 'Invalid value for configuration property "partitioner": murmur'),
        ("delivery.report.only.error", "perhaps", "true or false"),
        ("acks", "some", "Invalid value 'some' for option acks"),
        ("stats_cb", print, "metrics()"),
        ("statistics.interval.ms", 1000, "metrics()"),
        ("key.serializer", str, "SerializingProducer"),
        ("partitioner.class", print, "forebay.KafkaProducer(partitioner_class=...)"),
        ("bootstrap.servers", "", "bootstrap.servers is empty"),
    ],
)
def test_what_cannot_be_is_refused(name: str, value: Any, said: str) -> None:
    with pytest.raises(KafkaException) as caught:
        read_options({**SERVERS, name: value})
    assert said in caught.value.args[0].str() and caught.value.args[0].name() == "_INVALID_ARG"


@pytest.mark.parametrize("name", ["error_cb", "on_delivery"])
def test_callbacks_must_be_callable(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be callable"):
        read_options({**SERVERS, name: 1})
    options = read_options({**SERVERS, name: print})
    assert print in (options.error_cb, options.default_callback)


def test_no_statistics_is_what_there_is() -> None:
    assert read(statistics_interval_ms=0).native["bootstrap.servers"] == ("localhost:9092",)
    assert not read(sticky_partitioning_linger_ms=0).is_sticky
