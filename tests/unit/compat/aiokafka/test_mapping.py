"""Which error of aiokafka stands for which of this package."""

from __future__ import annotations

import pytest

from forebay import errors as native
from forebay.compat.aiokafka import errors
from forebay.compat.aiokafka._mapping import of_record, raised, unknown_topic


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (native.ProducerClosedError(), errors.ProducerClosed),
        (native.IllegalStateError("text"), errors.IllegalOperation),
        (native.ForkedProducerError(), errors.IllegalOperation),
        (native.IllegalArgumentError("text"), ValueError),
        (native.UnserializableTypeError("text"), TypeError),
        (native.ProducerFencedError(), errors.ProducerFenced),
        (native.InvalidProducerEpochError(), errors.ProducerFenced),
        (native.BufferExhaustedError("text"), errors.KafkaTimeoutError),
        (native.DisconnectError("text"), errors.KafkaConnectionError),
        (native.SaslAuthenticationError("text"), errors.AuthenticationFailedError),
        (native.RecordTooLargeError("text"), errors.MessageSizeTooLargeError),
        (native.TopicAuthorizationError("text"), errors.TopicAuthorizationFailedError),
        (native.TransactionAbortedError("text"), errors.KafkaError),
        (native.error_for(81), errors.KafkaError),
    ],
)
def test_calls(error: native.KafkaError, kind: type[Exception]) -> None:
    made = raised(error)
    assert type(made) is kind and made.args == (str(error),) and made.__cause__ is error
    assert not isinstance(made, errors.KafkaError) or made.native is error


def test_every_code_of_a_broker_has_its_class() -> None:
    for kind in errors.BrokerResponseError.__subclasses__():
        error = native.error_for(kind.errno)
        assert error is not None
        fits = raised(error)
        others = (errors.ProducerFenced, errors.AuthenticationFailedError, errors.KafkaTimeoutError)
        assert type(fits) is kind or isinstance(fits, others), kind


def test_a_record_that_ran_out_of_time_has_the_last_error_of_a_broker() -> None:
    expired = native.KafkaTimeoutError("Expiring 1 record(s)", phase="in flight")
    assert type(of_record(expired)) is errors.RequestTimedOutError
    expired.__cause__ = native.NotLeaderOrFollowerError()
    made = of_record(expired)
    assert type(made) is errors.NotLeaderForPartitionError and "Expiring 1 record(s)" in str(made)
    assert made.native is expired
    assert type(of_record(native.PurgedError())) is errors.KafkaError


def test_a_topic_that_does_not_come() -> None:
    assert type(unknown_topic(native.KafkaTimeoutError("text"))) is errors.UnknownTopicOrPartitionError
    assert type(unknown_topic(native.ProducerClosedError())) is errors.ProducerClosed
