"""Errors as users of librdkafka know them: codes, their names, and the error of this package that each stands for."""

from __future__ import annotations

import weakref
from functools import total_ordering
from typing import TYPE_CHECKING, Any

from forebay import errors
from forebay.compat._error_names import NAMES
from forebay.errors._base import own_copy
from forebay.errors._others import BY_CODE

_LOCAL = {
    "_BAD_MSG": (-199, "Bad message format"),
    "_BAD_COMPRESSION": (-198, "Invalid compressed data"),
    "_DESTROY": (-197, "Broker handle destroyed"),
    "_FAIL": (-196, "Communication failure with broker"),
    "_TRANSPORT": (-195, "Broker transport failure"),
    "_CRIT_SYS_RESOURCE": (-194, "Critical system resource failure"),
    "_RESOLVE": (-193, "Host resolution failure"),
    "_MSG_TIMED_OUT": (-192, "Message timed out"),
    "_PARTITION_EOF": (-191, "No more messages"),
    "_UNKNOWN_PARTITION": (-190, "Unknown partition"),
    "_FS": (-189, "File or filesystem error"),
    "_UNKNOWN_TOPIC": (-188, "Unknown topic"),
    "_ALL_BROKERS_DOWN": (-187, "All broker connections are down"),
    "_INVALID_ARG": (-186, "Invalid argument or configuration"),
    "_TIMED_OUT": (-185, "Timed out"),
    "_QUEUE_FULL": (-184, "Queue full"),
    "_ISR_INSUFF": (-183, "Not enough in-sync replicas"),
    "_NODE_UPDATE": (-182, "The address of a broker changed"),
    "_SSL": (-181, "SSL error"),
    "_WAIT_COORD": (-180, "Waiting for the coordinator"),
    "_UNKNOWN_GROUP": (-179, "Unknown group"),
    "_IN_PROGRESS": (-178, "Operation in progress"),
    "_PREV_IN_PROGRESS": (-177, "Previous operation in progress"),
    "_EXISTING_SUBSCRIPTION": (-176, "Subscribed already"),
    "_ASSIGN_PARTITIONS": (-175, "Partitions are assigned"),
    "_REVOKE_PARTITIONS": (-174, "Partitions are revoked"),
    "_CONFLICT": (-173, "Conflicting use"),
    "_STATE": (-172, "Erroneous state"),
    "_UNKNOWN_PROTOCOL": (-171, "Unknown protocol"),
    "_NOT_IMPLEMENTED": (-170, "Not implemented"),
    "_AUTHENTICATION": (-169, "Authentication failure"),
    "_NO_OFFSET": (-168, "No offset stored"),
    "_OUTDATED": (-167, "Outdated"),
    "_TIMED_OUT_QUEUE": (-166, "Timed out in the queue"),
    "_UNSUPPORTED_FEATURE": (-165, "Required feature not supported by broker"),
    "_WAIT_CACHE": (-164, "Waiting for a cache"),
    "_INTR": (-163, "Operation interrupted"),
    "_KEY_SERIALIZATION": (-162, "Key serialization error"),
    "_VALUE_SERIALIZATION": (-161, "Value serialization error"),
    "_KEY_DESERIALIZATION": (-160, "Key deserialization error"),
    "_VALUE_DESERIALIZATION": (-159, "Value deserialization error"),
    "_PARTIAL": (-158, "Incomplete response"),
    "_READ_ONLY": (-157, "Read-only object"),
    "_NOENT": (-156, "No such entry"),
    "_UNDERFLOW": (-155, "Too few bytes to read"),
    "_INVALID_TYPE": (-154, "Invalid type"),
    "_RETRY": (-153, "Retry operation"),
    "_PURGE_QUEUE": (-152, "Purged in queue"),
    "_PURGE_INFLIGHT": (-151, "Purged in flight"),
    "_FATAL": (-150, "Fatal error"),
    "_INCONSISTENT": (-149, "Inconsistent state"),
    "_GAPLESS_GUARANTEE": (-148, "Gap-less ordering would not be guaranteed"),
    "_MAX_POLL_EXCEEDED": (-147, "max.poll.interval.ms exceeded"),
    "_UNKNOWN_BROKER": (-146, "Unknown broker"),
    "_NOT_CONFIGURED": (-145, "Functionality not configured"),
    "_FENCED": (-144, "This instance has been fenced by a newer instance"),
    "_APPLICATION": (-143, "Application generated error"),
    "_ASSIGNMENT_LOST": (-142, "The group has taken partitions away"),
    "_NOOP": (-141, "Nothing was done"),
    "_AUTO_OFFSET_RESET": (-140, "No offset to reset to"),
    "_LOG_TRUNCATION": (-139, "The log was truncated"),
    "_INVALID_DIFFERENT_RECORD": (-138, "Failed because of another record of its batch"),
    "_DESTROY_BROKER": (-137, "Broker handle destroyed, and the client is not"),
}
MOST_NOTES = 5
"""Errors of further callbacks that are noted on the first."""
_NAMES = {code: name for name, (code, _) in _LOCAL.items()}
_TEXTS = {code: f"Local: {text}" for code, text in _LOCAL.values()}


def _name(code: int) -> str:
    if code in _NAMES:
        return _NAMES[code]
    if code in NAMES and NAMES[code].librdkafka:
        return NAMES[code].librdkafka
    kind = errors.for_code(code)
    return "NO_ERROR" if kind is None else kind.name if kind.code == code else f"ERR_{code}?"


def _text(code: int) -> str:
    if code and code not in _TEXTS and code not in errors._BY_CODE and code not in BY_CODE:
        return f"Err-{code}?"
    kind = errors.for_code(code)
    return _TEXTS.get(code) or ("Success" if kind is None else f"Broker: {kind.default_message()}")


if TYPE_CHECKING:

    class _Codes(type):
        def __getattr__(cls, name: str) -> int: ...

else:
    _Codes = type


@total_ordering
class KafkaError(metaclass=_Codes):
    """What went wrong, by librdkafka's codes; no exception itself (see ``KafkaException``).  The codes are constants.

    ``native`` is the error of this package that it stands for, or None.  Compares with other errors and with codes.
    """

    def __init__(
        self,
        error: int,
        reason: str | None = None,
        fatal: bool = False,
        retriable: bool = False,
        txn_requires_abort: bool = False,
    ) -> None:
        self._code = error
        self._reason = reason if reason is not None else _text(error)
        self._fatal = fatal
        self._retriable = retriable
        self._txn_requires_abort = txn_requires_abort
        self.native: BaseException | None = None

    def code(self) -> int:
        """Negative: found by the client; else the broker's."""
        return self._code

    def name(self) -> str:
        """The constant's name, such as ``_MSG_TIMED_OUT``."""
        return _name(self._code)

    def str(self) -> str:
        """The meaning of the code, and what this client says of it."""
        return self._reason

    def fatal(self) -> bool:
        """The producer cannot go on; make a new one."""
        return self._fatal

    def retriable(self) -> bool:
        """The same call may succeed later."""
        return self._retriable

    def txn_requires_abort(self) -> bool:
        """The transaction can only be aborted."""
        return self._txn_requires_abort

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self._code == other
        return self._code == other._code if isinstance(other, KafkaError) else NotImplemented

    def __lt__(self, other: Any) -> bool:
        if not isinstance(other, (int, KafkaError)):
            return NotImplemented
        return self._code < (other if isinstance(other, int) else other._code)

    def __hash__(self) -> int:
        return hash(self._code)

    def __str__(self) -> Any:
        return (
            f'KafkaError{{{"FATAL," if self._fatal else ""}code={self.name()},val={self._code},str="{self._reason}"}}'
        )

    __repr__ = __str__

    def __reduce__(self) -> Any:
        flags = (self._fatal, self._retriable, self._txn_requires_abort)
        return KafkaError, (self._code, self._reason, *flags)


class KafkaException(Exception):
    """Raised by calls; ``args[0]`` is the KafkaError."""


for _constant, (_code, _) in {"NO_ERROR": (0, ""), "UNKNOWN_SERVER_ERROR": (-1, ""), **_LOCAL}.items():
    setattr(KafkaError, _constant, _code)
for _number in (*errors._BY_CODE, *BY_CODE):
    if _number is not None:
        setattr(KafkaError, _name(_number), _number)

_BY_KIND: tuple[tuple[type[BaseException], str], ...] = (
    (errors.BufferExhaustedError, "_QUEUE_FULL"),
    (errors.TransactionAbortedError, "_PURGE_QUEUE"),
    (errors.ProducerFencedError, "_FENCED"),
    (errors.InvalidProducerEpochError, "_FENCED"),
    (errors.SslAuthenticationError, "_SSL"),
    (errors.AuthenticationError, "_AUTHENTICATION"),
    (errors.NetworkError, "_TRANSPORT"),
    (errors.ConfigError, "_INVALID_ARG"),
    (errors.IllegalArgumentError, "_INVALID_ARG"),
    (errors.IllegalStateError, "_STATE"),
    (errors.InterruptError, "_INTR"),
    (errors.ProtocolError, "_BAD_MSG"),
    (errors.UnsupportedVersionError, "_UNSUPPORTED_FEATURE"),
)


def as_kafka_error(error: BaseException, *, of_message: bool = False) -> KafkaError:
    """The KafkaError that stands for an error of this package.

    Args:
        of_message: it is a message's; a timeout is then ``_MSG_TIMED_OUT``, that of a call ``_TIMED_OUT``.  It is never
            retriable: what may be tried again was, and the message has its outcome.
    """
    code = _code_of(error, of_message)
    flags = [bool(getattr(error, name, False)) for name in ("fatal", "retriable", "txn_requires_abort")]
    if of_message:
        flags[1] = False
    made = KafkaError(code, f"{_text(code)}: {error}", *flags)
    made.native = error
    return made


def _code_of(error: BaseException, of_message: bool) -> int:
    if isinstance(error, errors.RecordTooLargeError):
        return 10
    if isinstance(error, errors.PurgedError):
        return _LOCAL["_PURGE_INFLIGHT" if error.context.get("phase") == "in flight" else "_PURGE_QUEUE"][0]
    for kind, name in _BY_KIND:
        if isinstance(error, kind):
            return _LOCAL[name][0]
    if isinstance(error, errors.KafkaTimeoutError):
        if of_message and isinstance(error.__cause__, errors.UnknownTopicOrPartitionError):
            return _LOCAL["_UNKNOWN_TOPIC"][0]
        return _LOCAL["_MSG_TIMED_OUT" if of_message else "_TIMED_OUT"][0]
    code = getattr(error, "code", None)
    return code if isinstance(code, int) else _LOCAL["_FAIL"][0]


def own_error(failure: BaseException | KafkaError) -> KafkaError:
    """The KafkaError of a message's failure, another one at each call, as ``own_copy`` of the native error."""
    if isinstance(failure, KafkaError):
        made = KafkaError(*failure.__reduce__()[1])
        made.native = None if failure.native is None else own_copy(failure.native)
        return made
    return as_kafka_error(own_copy(failure), of_message=True)


class BrokerErrors:
    """What ``error_cb`` is told: each lost connection, that none is left, a fatal error.  The client's thread adds.

    An error that nobody has taken is not told a second time.

    Args:
        states: the connections of the native client.
        events: its ``put_error`` takes a KafkaError.  Not kept: the client's thread would keep the producer by what
            waits there.
    """

    def __init__(self, states: Any, events: Any) -> None:
        self._states = states
        self._events = weakref.ref(events)
        self._untaken: set[tuple[int, str]] = set()
        self._all_down = False
        self._is_fatal = False

    def is_first_fatal(self, error: KafkaError) -> bool:
        """Whether it ends the producer, and nothing has before.  By the threads that serve."""
        first = not self._is_fatal and (error.fatal() or error.name() == "_FENCED")
        self._is_fatal = self._is_fatal or first
        return first

    def lost(self, state: Any, error: BaseException) -> None:
        """For ``ConnectionStates.on_loss``."""
        made = as_kafka_error(error)
        self._tell(made)
        others = [other for other in list(self._states.nodes.values()) if other is not state]
        if state.established or any(other.established for other in others):
            self._all_down = False
        if not self._all_down and all(self._states.failed(other.node.id) for other in others):
            self._all_down = True
            count = len(others) + 1
            self._tell(KafkaError(KafkaError._ALL_BROKERS_DOWN, f"{count}/{count} brokers are down"))

    def _tell(self, error: KafkaError) -> None:
        key = (error.code(), error.str())
        events = self._events()
        if events is not None and key not in self._untaken:
            self._untaken.add(key)
            events.put_error(error)

    def taken(self, error: KafkaError) -> None:
        """It may be told again."""
        self._untaken.discard((error.code(), error.str()))


def refusal(code: int, reason: str) -> KafkaException:
    """An exception that the compat class itself raises."""
    return KafkaException(KafkaError(code, reason))


def raised(error: BaseException) -> KafkaException:
    """The exception of a call that failed with an error of this package."""
    return KafkaException(as_kafka_error(error))


def raise_first(heard: list[BaseException]) -> None:
    """Raises the first of what callbacks raised, if there is any; the others are noted on it."""
    if not heard:
        return
    first, *others = heard
    for other in others[:MOST_NOTES]:
        first.add_note(f"Another callback raised {other!r}")
    if len(others) > MOST_NOTES:
        first.add_note(f"So did {len(others) - MOST_NOTES} more")
    try:
        raise first
    finally:
        heard.clear()  # the tracebacks have frames that have the list
        del first, others
