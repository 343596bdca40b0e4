"""Codes, names and flags of librdkafka's errors, beside the original's own."""

from __future__ import annotations

import pickle

import confluent_kafka
import pytest

from forebay import errors
from forebay.compat._librdkafka_errors import KafkaError, as_kafka_error, raise_first


def test_every_code_has_the_originals_number_and_name() -> None:
    theirs = confluent_kafka.KafkaError
    wanted = {name: code for name, code in vars(theirs).items() if isinstance(code, int) and name.isupper()}
    assert len(wanted) > 150
    assert {name: getattr(KafkaError, name) for name in wanted} == wanted
    for name, code in wanted.items():
        assert KafkaError(code).name() == name and KafkaError(code).str()


@pytest.mark.parametrize(
    ("error", "of_message", "name"),
    [
        (errors.KafkaTimeoutError("late"), True, "_MSG_TIMED_OUT"),
        (errors.KafkaTimeoutError("late"), False, "_TIMED_OUT"),
        (errors.BufferExhaustedError("full"), True, "_QUEUE_FULL"),
        (errors.PurgedError("gone", phase="queued"), True, "_PURGE_QUEUE"),
        (errors.PurgedError("gone", phase="in flight"), True, "_PURGE_INFLIGHT"),
        (errors.TransactionAbortedError(), True, "_PURGE_QUEUE"),
        (errors.RecordTooLargeError("large"), True, "MSG_SIZE_TOO_LARGE"),
        (errors.DisconnectError("lost"), True, "_TRANSPORT"),
        (errors.SslAuthenticationError("bad"), False, "_SSL"),
        (errors.SaslAuthenticationError("bad"), False, "_AUTHENTICATION"),
        (errors.IllegalStateError("no"), False, "_STATE"),
        (errors.ConfigError("no"), False, "_INVALID_ARG"),
        (errors.ProducerFencedError(), False, "_FENCED"),
        (errors.TopicAuthorizationError(), True, "TOPIC_AUTHORIZATION_FAILED"),
        (errors.NotEnoughReplicasError(), True, "NOT_ENOUGH_REPLICAS"),
        (errors.KafkaError("else"), True, "_FAIL"),
    ],
)
def test_what_stands_for_an_error(error: errors.KafkaError, of_message: bool, name: str) -> None:
    made = as_kafka_error(error, of_message=of_message)
    assert made.name() == name and error.message in made.str() and made.native is error
    # A message that has its outcome is not tried again.
    assert (made.fatal(), made.retriable()) == (error.fatal, error.retriable and not of_message)


def test_a_topic_that_does_not_exist() -> None:
    late = errors.KafkaTimeoutError("not present")
    late.__cause__ = errors.UnknownTopicOrPartitionError()
    assert as_kafka_error(late, of_message=True).name() == "_UNKNOWN_TOPIC"


def test_it_compares_with_codes_and_pickles() -> None:
    error = KafkaError(-192, None, retriable=True)
    assert error == -192 and error == KafkaError(-192) and error != KafkaError(3) and hash(error) == hash(-192)
    assert error < KafkaError(3) and error.str() == "Local: Message timed out"
    again = pickle.loads(pickle.dumps(error))
    assert again == error and again.retriable()
    assert str(error) == 'KafkaError{code=_MSG_TIMED_OUT,val=-192,str="Local: Message timed out"}'
    assert str(KafkaError(-150, "x", True)) == 'KafkaError{FATAL,code=_FATAL,val=-150,str="x"}'
    assert KafkaError(3) <= KafkaError(3) and KafkaError(4) > 3
    with pytest.raises(TypeError):
        assert KafkaError(3) < "x"


def test_of_what_callbacks_raise_the_first_is_raised_and_some_others_are_noted() -> None:
    raise_first([])
    heard: list[BaseException] = [ValueError(number) for number in range(9)]
    with pytest.raises(ValueError, match="0") as caught:
        raise_first(heard)
    assert caught.value.__notes__ == [f"Another callback raised ValueError({n})" for n in range(1, 6)] + [
        "So did 3 more"
    ]
    assert heard == []
