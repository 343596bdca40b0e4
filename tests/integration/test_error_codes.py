"""Every error code a broker can answer Produce and InitProducerId with, and what becomes of the record."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from forebay import KafkaProducer, errors
from forebay.errors import KafkaTimeoutError
from forebay.testing import DISCONNECT, EmbeddedBroker
from tests.error_matrix import CODES, MATRIX, UNKNOWN_CODE
from tests.integration.workload import WAIT_S
from tests.support.fixtures import TopicFactory
from tests.support.pace import until, within_ms
from tests.support.readback import read_all

PRODUCE, INIT_PRODUCER_ID = 0, 22
NODE, HELD_MS = 1, 3000
QUICK = {"retry.backoff.ms": 5, "retry.backoff.max.ms": 5, "reconnect.backoff.ms": 5, "linger.ms": 0}
#: Codes after which nothing more can be sent.
FATAL = tuple(code for code, outcome in MATRIX["idem"].items() if outcome in ("fatal", "fence"))
#: The embedded broker's answers are 16-bit as well, but it knows no more codes than these.
KNOWN = tuple(code for code in CODES if code != UNKNOWN_CODE)


@pytest.fixture(scope="module")
def mock() -> Iterator[EmbeddedBroker]:
    """One broker for the module: each test uses up the errors it pushes."""
    with EmbeddedBroker() as broker:
        yield broker


def producer(broker: EmbeddedBroker, **options: Any) -> KafkaProducer:
    return KafkaProducer({"bootstrap.servers": broker.bootstrap_servers, **QUICK, **options})


def outcome(broker: EmbeddedBroker, name: str, *codes: int, **options: Any) -> tuple[str, int]:
    """How one record ends after these answers to Produce, and how many requests it took."""
    broker.push_request_errors(PRODUCE, *codes)
    broker.start_request_log()
    with producer(broker, **options) as ours:
        error = ours.send(name, b"v").exception(WAIT_S)
    if options.get("acks") == 0:  # acknowledged once it is written, which may be before the broker has read it
        until(lambda: broker.requests([PRODUCE]), "the request")
    requests = len(broker.requests([PRODUCE]))
    broker.clear_request_errors(PRODUCE)
    return type(error).__name__ if error else "acknowledged", requests


def expected(column: str, code: int) -> tuple[str, int]:
    word = MATRIX[column][code]
    if word == "done":
        return ("acknowledged", 1)
    if word in ("retry", "fresh", "mend"):
        return ("acknowledged", 2)
    kind = errors.for_code(code)
    assert kind is not None
    return (kind.__name__, 1)


@pytest.mark.parametrize(("column", "idempotence"), [("idem", True), ("plain", False)])
def test_what_becomes_of_a_record(mock: EmbeddedBroker, topic: TopicFactory, column: str, idempotence: bool) -> None:
    name = topic(mock)
    found = {code: outcome(mock, name, code, **{"enable.idempotence": idempotence}) for code in KNOWN}
    assert found == {code: expected(column, code) for code in KNOWN}
    acknowledged = sum(word in ("retry", "fresh", "mend") for word in MATRIX[column].values())
    assert len(read_all(mock.bootstrap_servers, name)) == acknowledged


@pytest.mark.parametrize("idempotence", [True, False], ids=["idempotent", "plain"])
def test_an_unknown_code_is_an_unknown_error(mock: EmbeddedBroker, topic: TopicFactory, idempotence: bool) -> None:
    mock.push_request_errors(PRODUCE, 4567)
    with producer(mock, **{"enable.idempotence": idempotence}) as ours:
        error = ours.send(topic(mock), b"v").exception(WAIT_S)
    assert isinstance(error, errors.UnknownServerError)
    assert "4567" in str(error)


@pytest.mark.parametrize("idempotence", [True, False], ids=["idempotent", "plain"])
def test_a_lost_connection_is_another_try(mock: EmbeddedBroker, topic: TopicFactory, idempotence: bool) -> None:
    found = outcome(mock, topic(mock), DISCONNECT, 7, DISCONNECT, **{"enable.idempotence": idempotence})
    assert found == ("acknowledged", 4)


def test_an_error_says_where_and_after_how_many_tries(mock: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(mock)
    mock.push_request_errors(PRODUCE, 7, 6, 10)
    heard: list[Any] = []
    with producer(mock) as ours:
        future = ours.send(name, b"v", on_delivery=heard.append)
        error = future.exception(WAIT_S)
        total = float(ours.metrics().value("record-retry-total")), float(ours.metrics().value("record-error-total"))
    assert isinstance(error, errors.RecordTooLargeError)
    assert {key: error.context[key] for key in ("phase", "node", "attempts")} == {
        "phase": "in flight",
        "node": 1,
        "attempts": 3,
    }
    assert f"{name}-0" in str(error)
    assert total == (2, 1)
    ((metadata, same),) = [(report.metadata, report.error) for report in heard]
    assert type(same) is type(error) and str(same) == str(error) and same.context == error.context
    assert metadata == (name, 0, -1, -1, -1, -1)


def test_each_batch_has_an_error_of_its_own(mock: EmbeddedBroker, topic: TopicFactory) -> None:
    """One lost connection fails both; what is said of the one must not stand in the other's."""
    name = topic(mock, 2)
    options = {"retries": 0, "enable.idempotence": False, "linger.ms": within_ms(300)}
    with producer(mock, **options) as ours:
        ours.send(name, b"v").result(WAIT_S)
        mock.push_request_errors(PRODUCE, DISCONNECT)
        futures = [ours.send(name, b"older", partition=0)]
        # The linger of the older one is over first, and takes the younger along.
        begun = time.monotonic()
        until(lambda: time.monotonic() - begun > 0.1, "a tenth of a second")
        futures.append(ours.send(name, b"younger", partition=1))
        ours.flush(WAIT_S)
        older, younger = (future.exception(0) for future in futures)
    assert isinstance(older, errors.DisconnectError) and isinstance(younger, errors.DisconnectError)
    assert older is not younger
    assert older.message == younger.message
    assert int(str(older.context["age_ms"])) >= int(str(younger.context["age_ms"])) + 90


def test_retries_are_counted(mock: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(mock)
    assert outcome(mock, name, 19, 19, retries=2) == ("acknowledged", 3)
    assert outcome(mock, name, 19, 19, 19, retries=2) == ("NotEnoughReplicasError", 3)


def test_a_refused_record_leaves_no_gap(mock: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(mock)
    with producer(mock) as ours:
        offsets = []
        for code in (0, 87, 0, 18, 0):
            mock.push_request_errors(PRODUCE, code)
            future = ours.send(name, b"%d" % code)
            offsets.append(future.result(WAIT_S).offset if future.exception(WAIT_S) is None else None)
    assert offsets == [0, None, 1, None, 2]


@pytest.mark.parametrize("code", FATAL)
def test_after_a_fatal_error_the_producer_refuses_all_records(
    mock: EmbeddedBroker, topic: TopicFactory, code: int
) -> None:
    name = topic(mock)
    mock.push_request_errors(PRODUCE, code)
    with producer(mock) as ours:
        first = ours.send(name, b"1").exception(WAIT_S)
        second = ours.send(name, b"2").exception(WAIT_S)
    assert type(first) is type(second) is errors.for_code(code)
    assert read_all(mock.bootstrap_servers, name) == []


def test_acks_0_hears_of_no_error(mock: EmbeddedBroker, topic: TopicFactory) -> None:
    assert outcome(mock, topic(mock), 10, acks=0) == ("acknowledged", 1)


# -- InitProducerId -------------------------------------------------------------------------------------------


def init_outcome(broker: EmbeddedBroker, name: str, code: int) -> tuple[str, str]:
    """How a record ends when the first InitProducerId is answered so, and how the next record does."""
    # The sender asks for an id before there is a record. A refusal that fails what waits is held back,
    # so that the record waits by then: with nothing waiting, the next id is asked for and nobody hears of it.
    held_ms = HELD_MS if MATRIX["init"][code] == "fail" else 0
    broker.push_node_errors(NODE, INIT_PRODUCER_ID, (code, held_ms))
    ends = []
    with producer(broker) as ours:
        for value in (b"1", b"2"):
            error = ours.send(name, value).exception(WAIT_S)
            ends.append(type(error).__name__ if error else "acknowledged")
    assert broker.node_errors_left(NODE, INIT_PRODUCER_ID) == 0
    return ends[0], ends[1]


def init_expected(code: int) -> tuple[str, str]:
    word = MATRIX["init"][code]
    kind = errors.ProducerFencedError if word == "fence" else errors.for_code(code)
    assert kind is not None
    if word == "retry":
        return ("acknowledged", "acknowledged")
    return (kind.__name__, "acknowledged" if word == "fail" else kind.__name__)


def test_what_becomes_of_a_record_without_a_producer_id(topic: TopicFactory) -> None:
    # A node with a list of its own no longer looks at the cluster's, which the other tests push to.
    with EmbeddedBroker() as mock:
        name = topic(mock)
        found = {code: init_outcome(mock, name, code) for code in KNOWN}
    assert found == {code: init_expected(code) for code in KNOWN}


def test_a_lost_connection_is_another_request_for_a_producer_id(mock: EmbeddedBroker, topic: TopicFactory) -> None:
    mock.push_request_errors(INIT_PRODUCER_ID, DISCONNECT, 14, DISCONNECT)
    with producer(mock) as ours:
        assert ours.send(topic(mock), b"v").result(WAIT_S).offset == 0


def test_without_a_producer_id_records_expire(mock: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(mock)
    mock.push_request_errors(INIT_PRODUCER_ID, *[14] * 1000)
    with producer(mock, **{"request.timeout.ms": 300, "delivery.timeout.ms": 300}) as ours:
        error = ours.send(name, b"v").exception(WAIT_S)
        mock.clear_request_errors(INIT_PRODUCER_ID)
        assert isinstance(error, KafkaTimeoutError)
        assert error.message.startswith(f"Expiring 1 record(s) for {name}-0:")
        assert ours.send(name, b"v").result(WAIT_S).offset == 0
