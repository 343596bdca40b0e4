"""The errors of aiokafka that a producer can raise, under aiokafka's names.

What consumers alone raise is not here: a program's consumer stays aiokafka's, and raises aiokafka's own errors, which
these classes would never match.  A class for a broker's code is made out of ``forebay.errors``, under the name that
``_error_names`` has.  Some names are here only so that ``except`` clauses of a producer go on working.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay import errors as native
from forebay.compat._error_names import NAMES

__all__ = [
    "KafkaError",
    "IllegalOperation",
    "NoBrokersAvailable",
    "NodeNotReadyError",
    "KafkaProtocolError",
    "UnrecognizedBrokerVersion",
    "IncompatibleBrokerVersion",
    "CommitFailedError",
    "AuthenticationMethodNotSupported",
    "AuthenticationFailedError",
    "KafkaUnavailableError",
    "KafkaTimeoutError",
    "KafkaConnectionError",
    "UnsupportedCodecError",
    "ProducerClosed",
    "ProducerFenced",
    "BrokerResponseError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "NotCoordinatorError",
    "InvalidMessageError",
]


def __dir__() -> list[str]:
    return sorted(__all__)


class KafkaError(RuntimeError):
    """Root of aiokafka's errors.

    ``native`` is the error of this package that it stands for, with its context, or None.
    """

    native: BaseException | None = None
    retriable: bool = False
    """The same call may succeed later."""
    invalid_metadata: bool = False
    """What the client knows of the cluster is out of date."""

    def __str__(self) -> str:
        name = type(self).__name__
        return f"{name}: {super().__str__()}" if self.args else name


class IllegalOperation(Exception):
    """The producer is not in a state that allows this call.  As in aiokafka it is no KafkaError."""


class NoBrokersAvailable(KafkaError):
    """Not raised here: see KafkaConnectionError."""

    retriable = True
    invalid_metadata = True


class NodeNotReadyError(KafkaError):
    """Not raised here: the producer waits for its brokers."""

    retriable = True


class KafkaProtocolError(KafkaError):
    """The peer's bytes make no sense; it may not be Kafka at all."""

    retriable = True


class UnrecognizedBrokerVersion(KafkaError):
    """Not raised here: see UnsupportedVersionError."""


class IncompatibleBrokerVersion(KafkaError):
    """Not raised here: see UnsupportedVersionError."""


class CommitFailedError(KafkaError):
    """The consumer group has moved on; the transaction can only be aborted."""


class AuthenticationMethodNotSupported(KafkaError):
    """Not raised here: see UnsupportedSaslMechanismError."""


class AuthenticationFailedError(KafkaError):
    """The broker did not accept who we are, or its certificate was not accepted."""


class KafkaUnavailableError(KafkaError):
    """Not raised here: see KafkaConnectionError."""


class KafkaTimeoutError(KafkaError):
    """There was no room in the buffer in time, or a call was not answered in time."""


class KafkaConnectionError(KafkaError):
    """No broker can be reached, or the connection to one was lost."""

    retriable = True
    invalid_metadata = True


class UnsupportedCodecError(KafkaError):
    """Not raised here: a codec that cannot be had is refused by the constructor."""


class ProducerClosed(KafkaError):
    """The producer was stopped before or while this call ran."""


class ProducerFenced(KafkaError):
    """A newer producer has the same transactional_id, or the transaction timed out; make a new one."""


class BrokerResponseError(KafkaError):
    """What a broker answered.  ``errno`` is its code, ``message`` Kafka's name for it, ``description`` its meaning."""

    errno: int
    message: str
    description: str = ""
    retriable: bool = False
    invalid_metadata: bool = False

    def __str__(self) -> str:
        return f"[Error {self.errno}] {super().__str__()}"


def _made(code: int, name: str) -> type[BrokerResponseError]:
    kind = native.for_code(code)
    assert kind is not None
    body = {"__module__": __name__, "__doc__": kind.default_message(), "errno": code}
    body |= {"message": kind.name, "description": kind.default_message()}
    body |= {"retriable": kind.retriable, "invalid_metadata": kind.invalid_metadata}
    return type(name, (BrokerResponseError,), body)


BY_CODE = {code: _made(code, names.aiokafka) for code, names in NAMES.items() if names.aiokafka}
globals().update({kind.__name__: kind for kind in BY_CODE.values()})
__all__ += [kind.__name__ for kind in BY_CODE.values()]

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[BrokerResponseError]: ...


CoordinatorNotAvailableError = BY_CODE[15]
CoordinatorLoadInProgressError = BY_CODE[14]
InvalidMessageError = BY_CODE[2]
NotCoordinatorError = BY_CODE[16]
