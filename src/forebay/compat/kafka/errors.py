"""kafka-python's errors by its names and in its tree, and the error of this package that each stands for.

A class for a broker's code is made out of ``forebay.errors``, under the name that ``_error_names`` has if kafka-python
has another one.  Only where it has another base is there a row here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay import errors as own
from forebay.compat._error_names import NAMES, Names
from forebay.errors._others import BY_CODE


class KafkaError(Exception):
    """Root of kafka-python's errors.

    ``native`` is the error of this package that it stands for: its context, and what it means for a transaction.  It
    is None where a program made the error itself.
    """

    retriable: bool = False
    """The same call may succeed later."""
    invalid_metadata: bool = False
    """What the client knew of the cluster was out of date."""
    native: own.KafkaError | None = None

    def __str__(self) -> str:
        name = type(self).__name__
        return f"{name}: {super().__str__()}" if self.args else name


class RetriableError(KafkaError):
    """A passing condition."""

    retriable = True


class InvalidMetadataError(RetriableError):
    """Passing, once metadata is fetched again."""

    invalid_metadata = True


class BrokerResponseError(KafkaError):
    """A broker's error code, or what is refused here because a broker would refuse it."""

    errno: int | None = None
    message: str | None = None
    """Kafka's constant for the code."""
    description: str | None = None

    def __str__(self) -> str:
        return f"[Error {self.errno}] {super().__str__()}"


class AuthorizationError(BrokerResponseError):
    """The broker knows who we are and does not allow this."""


class NoError(BrokerResponseError):
    """Code 0, which is no error."""

    errno: int | None = 0
    message: str | None = "NO_ERROR"


class KafkaTimeoutError(RetriableError):
    """Something was not done in time: metadata, memory, a record's delivery, a call."""


class NoBrokersAvailable(KafkaTimeoutError):
    """No broker was reached while the producer was made; kafka-python before 3.0 has this name for it."""


class KafkaConnectionError(InvalidMetadataError):
    """A connection was lost or not made; TLS failures too."""


class KafkaConfigurationError(KafkaError, ValueError):
    """An option is unknown, refused, or has a value that cannot be."""


class IllegalArgumentError(KafkaError, ValueError):
    """An argument of a call cannot be."""


class IllegalStateError(KafkaError):
    """The producer is not in a state that allows this call."""


class TransactionAbortedError(KafkaError):
    """The record's transaction was aborted before the record was sent."""


class KafkaProtocolError(KafkaError):
    """The peer sent bytes that make no sense."""


class CommitFailedError(KafkaError):
    """The consumer group has moved on."""


class Cancelled(RetriableError):
    """The record was dropped by ``purge`` of the native producer."""


_NEVER_RAISED: dict[str, tuple[type[KafkaError], ...]] = {
    "CorrelationIdError": (RetriableError, KafkaProtocolError),
    "InvalidReceiveError": (KafkaProtocolError,),
    "LogTruncationError": (KafkaError,),
    "MetadataEmptyBrokerList": (RetriableError,),
    "NoOffsetForPartitionError": (KafkaError,),
    "NodeNotReadyError": (RetriableError,),
    "QuotaViolationError": (KafkaError,),
    "StaleMetadata": (InvalidMetadataError,),
    "TooManyInFlightRequests": (RetriableError,),
    "UnknownBrokerIdError": (KafkaError,),
    "UnrecognizedBrokerVersion": (KafkaError,),
    "UnsupportedCodecError": (KafkaError,),
}
"""Errors of kafka-python's consumers or of its inside: a program may name them, and no call here raises them."""

_OTHER_BASES: dict[int, tuple[type[KafkaError], ...]] = {
    2: (BrokerResponseError,),
    75: (InvalidMetadataError, BrokerResponseError),
}


def _bases(kind: type[own.KafkaError]) -> tuple[type[KafkaError], ...]:
    if issubclass(kind, own.InvalidMetadataError):
        return InvalidMetadataError, BrokerResponseError
    if issubclass(kind, own.RetriableError):
        return RetriableError, BrokerResponseError
    return (AuthorizationError,) if issubclass(kind, own.AuthorizationError) else (BrokerResponseError,)


def _made(code: int, kind: type[own.KafkaError]) -> type[BrokerResponseError]:
    body = {"__module__": __name__, "__doc__": kind.default_message(), "errno": code}
    body |= {"message": kind.name, "description": kind.default_message()}
    return type(NAMES.get(code, Names()).kafka_python or kind.__name__, _OTHER_BASES.get(code, _bases(kind)), body)


_NATIVE: dict[int, type[own.KafkaError]] = {**own._BY_CODE}
_NATIVE.update({code: kind for code, kind in BY_CODE.items() if code is not None})
_BY_CODE = {code: _made(code, kind) for code, kind in _NATIVE.items()}
globals().update({kind.__name__: kind for kind in _BY_CODE.values()})
globals().update({name: type(name, bases, {"__module__": __name__}) for name, bases in _NEVER_RAISED.items()})
CorruptRecordException = _BY_CODE[2]
IncompatibleBrokerVersion = _BY_CODE[35]

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[BrokerResponseError]: ...


def for_code(code: int) -> type[BrokerResponseError]:
    """The class for a broker's error code; ``UnknownError`` for a code that nobody knows."""
    return NoError if code == 0 else _BY_CODE.get(code, _BY_CODE[-1])


_BY_KIND: dict[type[BaseException], type[Exception]] = {
    **{kind: _BY_CODE[code] for code, kind in _NATIVE.items()},
    own.KafkaError: KafkaError,
    own.AuthorizationError: AuthorizationError,
    own.KafkaTimeoutError: KafkaTimeoutError,
    own.NetworkError: KafkaConnectionError,
    own.SslAuthenticationError: KafkaConnectionError,
    own.ConfigError: KafkaConfigurationError,
    own.IllegalArgumentError: IllegalArgumentError,
    own.IllegalStateError: IllegalStateError,
    own.TransactionAbortedError: TransactionAbortedError,
    own.PurgedError: Cancelled,
    own.ProtocolError: KafkaProtocolError,
    own.CommitFailedError: CommitFailedError,
    own.UnserializableTypeError: TypeError,
}
"""The nearest base counts.  A key or value of a wrong type is a plain TypeError, as in kafka-python."""


def translated(error: own.KafkaError) -> Exception:
    """kafka-python's error for one of this package; the same sentence, and the error itself as ``native``."""
    kind = next(_BY_KIND[base] for base in type(error).__mro__ if base in _BY_KIND)
    if kind is KafkaTimeoutError and "partition" in error.context:
        kind = _BY_CODE[7]  # a broker's answer; what ran out of time here names no partition there
    made = kind(str(error))
    if isinstance(made, KafkaError):
        made.native = error
        if error.fatal or error.txn_requires_abort:
            made.retriable = False
    made.__cause__ = error.__cause__
    return made
