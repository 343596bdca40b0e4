"""The sink's options: nothing unknown passes, nothing needed is missing."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from forebay.config import table
from forebay.errors import ConfigError
from forebay.spark.options import OF_THE_SOURCE, SinkOptions, ignored, parse
from tests.fakes.names import FORBIDDEN_TOPICS

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_producer_options_lose_their_prefix() -> None:
    parsed = parse({**SERVERS, "kafka.linger.ms": "7", "kafka.acks": "all", "topic": " t "})
    assert parsed == SinkOptions((("acks", "all"), ("bootstrap.servers", "localhost:9092"), ("linger.ms", "7")), "t")


def test_keys_in_any_case_and_what_spark_adds_itself() -> None:
    given = {"Kafka.Bootstrap.Servers": "h:1", "includeHeaders": "true", "checkpointLocation": "c", "queryName": "q"}
    assert parse(given) == SinkOptions((("bootstrap.servers", "h:1"),))


@pytest.mark.parametrize("name", sorted(OF_THE_SOURCE))
def test_a_dict_may_serve_a_reader_too(name: str) -> None:
    """Spark's own sink passes over these; each alone, in capitals, and beside a misspelt one."""
    assert parse({**SERVERS, name: "x"}) == parse({**SERVERS, name.upper(): "x"}) == parse(SERVERS)
    assert ignored({**SERVERS, name.upper(): "x"}) == [name.upper()] and ignored(SERVERS) == []
    with pytest.raises(ConfigError, match="Unknown option"):
        parse({**SERVERS, f"{name}x": "x"})


def test_no_option_of_a_producer_is_passed_over() -> None:
    assert not OF_THE_SOURCE & {f"kafka.{option.name}" for option in table()}


def test_options_pickle_and_serve_as_a_key() -> None:
    parsed = parse({**SERVERS, "topic": "t"})
    assert {pickle.loads(pickle.dumps(parsed)): 1}[parsed] == 1


def test_values_are_not_shown() -> None:
    shown = repr(SinkOptions((("sasl.jaas.config", "user alice password hunter2"),)))
    assert "sasl.jaas.config" in shown
    assert "hunter2" not in shown


def test_servers_are_needed() -> None:
    with pytest.raises(ConfigError, match="Option 'kafka.bootstrap.servers' must be specified"):
        parse({"topic": "t"})
    for given in ({}, {"path": "x"}):
        with pytest.raises(ConfigError, match="INSERT INTO cannot work|Unknown option 'path'"):
            parse(given)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("kafka.key.serializer", "cast or encode the key"),
        ("kafka.value.serializer", "cast or encode the value"),
        ("kafka.transactional.id", "deliveryGuarantee=exactly-once.*transactionalIdPrefix"),
        ("kafka.interceptor.classes", "interceptor"),
    ],
)
def test_options_that_have_no_meaning_here_are_refused_with_the_reason(key: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"Option '{key}' is not supported: .*{reason}"):
        parse({**SERVERS, key: "x"})


@pytest.mark.parametrize(
    ("key", "near"),
    [("topics", "topic"), ("bootstrap.servers", "kafka.bootstrap.servers"), ("metric.path", "metrics.path")],
)
def test_an_unknown_option_is_refused_with_the_nearest_name(key: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"Unknown option '{key}'; did you mean '{near}'"):
        parse({**SERVERS, key: "x"})


def test_an_option_like_nothing_gets_the_list() -> None:
    with pytest.raises(ConfigError, match="Unknown option 'zzzzz'. Known: kafka.<producer option>, topic"):
        parse({**SERVERS, "zzzzz": "x"})


def test_the_producer_judges_its_own_options() -> None:
    with pytest.raises(ConfigError, match="acks"):
        parse({**SERVERS, "kafka.akcs": "all"})
    with pytest.raises(ConfigError, match="linger.ms"):
        parse({**SERVERS, "kafka.linger.ms": "soon"})


def test_a_topic_that_cannot_be_is_refused() -> None:
    for name in FORBIDDEN_TOPICS:
        if name.strip() not in ("", "a"):  # Spark's options have no blanks at their ends
            with pytest.raises(ConfigError, match=r"Option 'topic' names no topic that can be"):
                parse({**SERVERS, "topic": name})
    with pytest.raises(ConfigError, match="Option 'topic' is empty"):
        parse({**SERVERS, "topic": " "})


def test_the_metrics_path_must_be_a_file_in_a_folder_that_exists(tmp_path: Path) -> None:
    good = str(tmp_path / "counters.json")
    assert parse({**SERVERS, "metrics.path": good}).metrics_path == good
    with pytest.raises(ConfigError, match="must name a file"):
        parse({**SERVERS, "metrics.path": str(tmp_path)})
    with pytest.raises(ConfigError, match="folder .*missing.* does not exist"):
        parse({**SERVERS, "metrics.path": str(tmp_path / "missing" / "counters.json")})


def test_hints_never_lead_to_what_the_sink_refuses() -> None:
    """Neither its own nor the producer's; what is not there yet is said to be so."""
    for key in ("interceptor.classes", "transactional.id", "kafka.transactional"):
        with pytest.raises(ConfigError, match=f"Unknown option '{key.removeprefix('kafka.')}'") as caught:
            parse({**SERVERS, key: "x"})
        assert "did you mean 'kafka." not in caught.value.message
    with pytest.raises(ConfigError, match="'kafka.interceptor.classes' is not supported: rows go from Arrow"):
        parse({**SERVERS, "kafka.interceptors": "x"})
    with pytest.raises(ConfigError, match=r"did you mean 'kafka.metric.reporters'\? \(not available .* no metric rep"):
        parse({**SERVERS, "metric.reporters": "x"})


def test_exactly_once_takes_a_prefix_and_the_longest_transaction_a_broker_allows() -> None:
    given = SERVERS | {"deliveryGuarantee": "exactly-once", "transactionalIdPrefix": "orders"}
    found = parse(given)
    assert found.exactly_once is not None and found.exactly_once.prefix == "orders"
    assert dict(found.producer)["transaction.timeout.ms"] == "900000"
    assert "transactional.id" not in dict(found.producer)
    assert dict(parse(given | {"kafka.transaction.timeout.ms": "60000"}).producer)["transaction.timeout.ms"] == "60000"
    with pytest.raises(ConfigError, match="to be at least 5000"):
        parse(given | {"kafka.transaction.timeout.ms": "100"})
    with pytest.raises(ConfigError, match="acks"):
        parse(given | {"kafka.acks": "1"})
    with pytest.raises(ConfigError, match="is for batch writes"):
        parse(given | {"txnAppId": "a", "txnVersion": "1"}, streaming=True)
    with pytest.raises(ConfigError, match="did you mean 'transactionalIdPrefix'"):
        parse(given | {"transactionIdPrefix": "x"})


@pytest.mark.parametrize(
    ("name", "wrong", "right", "words"),
    [
        ("acks", "1", "-1", "'kafka.acks' to be all, not '1'"),
        ("acks", "0", "all", "'kafka.acks' to be all, not '0'"),
        ("enable.idempotence", "False", "true", "'kafka.enable.idempotence' to be true, not 'False'"),
        ("retries", "0", "3", "'kafka.retries' to be above 0, not '0'"),
        ("max.in.flight.requests.per.connection", "6", "5", "'kafka.max.in.flight.requests.per.connection' to be at"),
        (
            "transaction.timeout.ms",
            "4999",
            "5000",
            "'kafka.transaction.timeout.ms' to be at least 5000, because a write has",
        ),
    ],
)
def test_a_producers_option_that_cannot_be_is_refused_in_its_own_words(
    name: str, wrong: str, right: str, words: str
) -> None:
    given = {"kafka.bootstrap.servers": "b:1", "deliveryGuarantee": "exactly-once", "transactionalIdPrefix": "p"}
    parse({**given, f"kafka.{name}": right})
    with pytest.raises(ConfigError, match=f"^deliveryGuarantee=exactly-once needs {words}"):
        parse({**given, f"kafka.{name}": wrong})
    with pytest.raises(ConfigError, match=name):
        parse({**given, f"kafka.{name}": "none"})
