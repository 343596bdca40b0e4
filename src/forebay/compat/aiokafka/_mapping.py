"""The errors of this package as those that aiokafka's users catch."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from forebay import errors as native
from forebay.compat.aiokafka import errors

_BY_CLASS: tuple[tuple[type[native.KafkaError], type[Exception]], ...] = (
    (native.ProducerClosedError, errors.ProducerClosed),
    (native.IllegalStateError, errors.IllegalOperation),
    (native.IllegalArgumentError, ValueError),
    (native.UnserializableTypeError, TypeError),
    (native.ProducerFencedError, errors.ProducerFenced),
    (native.InvalidProducerEpochError, errors.ProducerFenced),
    (native.CommitFailedError, errors.CommitFailedError),
    (native.ProtocolError, errors.KafkaProtocolError),
    (native.SslAuthenticationError, errors.AuthenticationFailedError),
    (native.SaslAuthenticationError, errors.AuthenticationFailedError),
    (native.NetworkError, errors.KafkaConnectionError),
)
"""The first that fits; what is not here goes by its code."""


def raised(error: native.KafkaError) -> Exception:
    """What a call raises in place of ``error``."""
    if isinstance(error, native.KafkaTimeoutError):
        return _made(errors.KafkaTimeoutError, error)
    for kind, other in _BY_CLASS:
        if isinstance(error, kind):
            return _made(other, error)
    return _made(errors.BY_CODE.get(-2 if error.code is None else error.code, errors.KafkaError), error)


def of_record(error: native.KafkaError) -> Exception:
    """What the future of a record raises in place of ``error``.

    A record that ran out of time has the last error that a broker gave for it, as in aiokafka.
    """
    if isinstance(error, native.KafkaTimeoutError):
        cause = error.__cause__
        if isinstance(cause, native.ApiError) and not isinstance(cause, native.KafkaTimeoutError):
            return _worded(raised(cause), error)
        return _made(errors.RequestTimedOutError, error)
    return raised(error)


def unknown_topic(error: native.KafkaError) -> Exception:
    """What is raised where a topic's metadata did not come in time."""
    if isinstance(error, native.KafkaTimeoutError):
        return _made(errors.UnknownTopicOrPartitionError, error)
    return raised(error)


@contextmanager
def mapped(other: Callable[[native.KafkaError], Exception]) -> Generator[None, None, None]:
    """Errors of this package leave the block as ``other`` makes them."""
    try:
        yield
    except native.KafkaError as error:
        raise other(error) from error


def _made(kind: type[Exception], error: native.KafkaError) -> Exception:
    return _worded(kind(str(error)), error)


def _worded(made: Exception, error: native.KafkaError) -> Exception:
    made.args = (str(error),)
    if isinstance(made, errors.KafkaError):
        made.native = error
    made.__cause__ = error
    return made
