"""kafka-python's errors beside the original's own, and what stands for each error of this package."""

from __future__ import annotations

import pickle
from typing import Any

import kafka.errors as theirs
import pytest

from forebay import errors as own
from forebay.compat.kafka import errors
from forebay.compat.kafka.errors import KafkaError, for_code, translated


def classes(module: Any) -> dict[str, Any]:
    return {
        name: kind
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, module.KafkaError)
    }


def test_every_class_of_the_original_is_there() -> None:
    here, there = classes(errors), classes(theirs)
    assert len(there) > 140 and there.keys() <= here.keys()
    for name, kind in there.items():
        assert here[name].__name__ == kind.__name__ or name == "IncompatibleBrokerVersion"
        for base in ("RetriableError", "InvalidMetadataError", "BrokerResponseError", "AuthorizationError"):
            assert issubclass(here[name], here[base]) == issubclass(kind, there[base]), (name, base)
        assert (here[name].retriable, here[name].invalid_metadata) == (kind.retriable, kind.invalid_metadata)
        if issubclass(kind, theirs.BrokerResponseError):
            assert here[name].errno == kind.errno


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (own.KafkaTimeoutError("late", phase="in flight"), "KafkaTimeoutError"),
        (own.KafkaTimeoutError("", partition="t-0", phase="in flight"), "RequestTimedOutError"),
        (own.BufferExhaustedError("full"), "KafkaTimeoutError"),
        (own.DisconnectError("lost"), "KafkaConnectionError"),
        (own.SslAuthenticationError("bad"), "KafkaConnectionError"),
        (own.SaslAuthenticationError("bad"), "SaslAuthenticationFailedError"),
        (own.RecordTooLargeError("large"), "MessageSizeTooLargeError"),
        (own.NotLeaderOrFollowerError("moved"), "NotLeaderForPartitionError"),
        (own.TopicAuthorizationError("no"), "TopicAuthorizationFailedError"),
        (own.UnknownTopicOrPartitionError("no"), "UnknownTopicOrPartitionError"),
        (own.ProducerFencedError("new"), "ProducerFencedError"),
        (own.TransactionAbortedError(), "TransactionAbortedError"),
        (own.PurgedError("gone"), "Cancelled"),
        (own.ProducerClosedError(), "IllegalStateError"),
        (own.ForkedProducerError(), "IllegalStateError"),
        (own.IllegalArgumentError("no"), "IllegalArgumentError"),
        (own.ConfigError("no"), "KafkaConfigurationError"),
        (own.ProtocolError("no"), "KafkaProtocolError"),
        (own.InterruptError("now"), "KafkaError"),
        (own.UnserializableTypeError("str"), "TypeError"),
    ],
)
def test_what_stands_for_an_error(error: own.KafkaError, name: str) -> None:
    found = translated(error)
    assert type(found).__name__ == name and str(error) in str(found)
    assert not isinstance(found, KafkaError) or found.native is error


def test_every_code_has_its_class() -> None:
    for code in range(1, 134):
        error = own.error_for(code)
        assert error is not None
        if code not in (7, 13):  # two for which the client has words of its own
            assert type(translated(error)) is for_code(code) and for_code(code).errno == code
    assert for_code(0) is errors.NoError and for_code(9999).errno == -1


def test_a_cause_and_an_end_stay() -> None:
    cause = own.NetworkError("lost")
    error = own.KafkaTimeoutError("late")
    error.__cause__ = cause
    assert translated(error).__cause__ is cause
    ended = own.NetworkError("lost")
    ended.fatal = True
    found = translated(ended)
    assert isinstance(found, errors.RetriableError) and not found.retriable


def test_texts() -> None:
    assert str(translated(own.RecordTooLargeError("large"))) == "[Error 10] MessageSizeTooLargeError: large"
    assert str(KafkaError()) == "KafkaError" and str(KafkaError("x")) == "KafkaError: x"


def test_errors_pickle() -> None:
    found = pickle.loads(pickle.dumps(translated(own.RecordTooLargeError("large", node=1))))
    assert isinstance(found, KafkaError) and type(found) is for_code(10)
    assert found.native is not None and found.native.context == {"node": 1}


def test_the_usual_excepts() -> None:
    with pytest.raises(errors.KafkaTimeoutError):
        raise translated(own.KafkaTimeoutError("late"))
    with pytest.raises(ValueError, match="nope"):
        raise translated(own.ConfigError("nope"))
    assert issubclass(errors.NoBrokersAvailable, errors.KafkaTimeoutError)
