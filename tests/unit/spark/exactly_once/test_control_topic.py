"""What is asked of an AdminClient and a producer, and what their errors do; a real Kafka is in ``tests/spark``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from forebay.errors import (
    InvalidPidMappingError,
    InvalidTxnStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
)
from forebay.model import TailRecord, TransactionIdentity, TransactionListing
from forebay.spark.exactly_once import control_topic, protocol
from forebay.spark.exactly_once.control_topic import KafkaControlTopic, connect
from forebay.spark.exactly_once.protocol import State
from forebay.spark.exactly_once.settings import Settings

SETTINGS = Settings("p", "commits")
DRIVER = TransactionIdentity("p-driver", 1, 5, 2)


class Recorder:
    """Notes each call; answers with what ``answers`` has, which may be an error."""

    def __init__(self, **answers: Any) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.answers = answers
        self.producer_id, self.producer_epoch = 1, 6

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.calls.append((name, *arguments, *options.items()))
            answer = self.answers.get(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]


def topic_of(admin: Recorder, *producers: Recorder) -> KafkaControlTopic:
    left = list(producers)
    given: Any = admin
    return KafkaControlTopic(given, lambda: left.pop(0), SETTINGS)  # type: ignore[arg-type,return-value]


def sending() -> Recorder:
    return Recorder(send=SimpleNamespace(result=lambda: None))


def test_the_driver_takes_its_id_and_reads_the_last_committed_record() -> None:
    record = TailRecord(3, -1, b"p", protocol.encode(State(None, (("q", 5),))))
    admin = Recorder(init_producer_id=DRIVER, read_tail=[record], topic_configs={"cleanup.policy": "compact"})
    topic = topic_of(admin)
    assert topic.claim() == DRIVER
    assert topic.read() == topic.read() == State(None, (("q", 5),))
    assert admin.calls[0] == ("init_producer_id", "p-driver", ("transaction_timeout_ms", 60_000))
    assert admin.names().count("create_topic") == 1
    assert ("topic_configs", "commits", ("cleanup.policy", "retention.ms", "retention.bytes")) in admin.calls
    assert admin.names().count("topic_configs") == 1
    assert ("isolation", "read_committed") in admin.calls[-1]


def test_a_topic_without_records_is_a_fresh_start() -> None:
    assert topic_of(Recorder(read_tail=[], create_topic=True)).read() == State()


def test_a_topic_that_is_made_for_a_prefix_that_was_used_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    for epoch, warnings in ((0, 0), (3, 1)):
        admin = Recorder(init_producer_id=DRIVER._replace(producer_epoch=epoch), read_tail=[], create_topic=True)
        topic = topic_of(admin)
        topic.claim()
        topic.read()
        assert len(caplog.messages) == warnings
    assert "The control topic commits was made, although transactionalIdPrefix=p has been used" in caplog.messages[0]


def test_a_record_is_written_in_a_transaction_of_the_identity_and_the_producer_is_kept() -> None:
    producer = sending()
    topic = topic_of(Recorder(), producer)
    assert topic.write(DRIVER, State()) == DRIVER._replace(producer_epoch=6)
    assert producer.names() == ["init_transactions", "begin_transaction", "send", "flush", "commit_transaction"]
    assert producer.calls[0] == ("init_transactions", ("identity", DRIVER))
    assert producer.calls[2] == ("send", "commits", protocol.encode(State()), b"p", ("partition", 0))
    topic.write(DRIVER, State())
    assert producer.calls[5] == ("set_transactional_id", "p-driver")


def test_a_producer_that_failed_is_not_used_again() -> None:
    failing, fresh = (
        Recorder(send=SimpleNamespace(result=lambda: None), commit_transaction=KafkaTimeoutError("t")),
        sending(),
    )
    topic = topic_of(Recorder(), failing, fresh)
    with pytest.raises(KafkaTimeoutError):
        topic.write(DRIVER, State())
    assert failing.calls[-1] == ("close", 0)
    topic.write(DRIVER, State())
    assert fresh.names()[0] == "init_transactions"


@pytest.mark.parametrize("error", [InvalidTxnStateError, ProducerFencedError, InvalidPidMappingError])
def test_an_end_that_can_never_be_is_false(error: type[KafkaError]) -> None:
    identity = TransactionIdentity("p-1-0-0", 7, 3, 2)
    admin = Recorder()
    assert topic_of(admin).end(identity, True)
    assert admin.calls == [("end_transaction", identity, ("commit", True))]
    assert not topic_of(Recorder(end_transaction=error("e"))).end(identity, True)


def test_any_other_error_of_an_end_is_raised() -> None:
    with pytest.raises(KafkaTimeoutError):
        topic_of(Recorder(end_transaction=KafkaTimeoutError("t"))).end(DRIVER, False)


def test_open_transactions_are_listed_described_and_fenced() -> None:
    admin = Recorder(list_transactions=[TransactionListing("p-1-0-0", 7, "Ongoing")], describe_transactions={"x": None})
    topic = topic_of(admin)
    assert topic.ongoing("p-") == ["p-1-0-0"]
    assert topic.describe(["x"]) == topic.describe(["x"], settled=True) == {"x": None}
    topic.fence("p-1-0-0")
    assert admin.calls[0] == ("list_transactions", ("states", ["Ongoing"]), ("prefix", "p-"))
    assert admin.calls[1:3] == [("describe_transactions", ["x"], ("settled", settled)) for settled in (False, True)]
    assert admin.calls[3] == ("init_producer_id", "p-1-0-0", ("transaction_timeout_ms", 60_000))


def test_connections_are_kept_for_the_next_write_and_closed_for_another_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_topic, "_kept", {})
    servers = (("bootstrap.servers", "127.0.0.1:1"),)
    first = connect(servers, SETTINGS)
    assert connect(servers, SETTINGS._replace(app="a", version=1)) is first
    assert connect(servers, Settings("other", "commits")) is not first
    again = connect(servers, SETTINGS)
    assert again is not first
    with pytest.raises(KafkaError, match="closed"):
        first.claim()
    again.close()
