"""What a broker's error means for a transaction: one table, API by API, in Java's sense.

A row that is missing falls back to the class: what is retriable is tried again, everything else is the API's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from forebay._protocol.versions import ApiKey
from forebay.errors import (
    ClusterAuthorizationError,
    ConcurrentTransactionsError,
    CoordinatorNotAvailableError,
    GroupAuthorizationError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    NotCoordinatorError,
    OperationNotAttemptedError,
    ProducerFencedError,
    RetriableError,
    TimeoutError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    UnknownProducerIdError,
    UnsupportedForMessageFormatError,
    for_code,
)
from forebay.errors._base import judged, reworded


class Action(Enum):
    """What follows from an error; a request's parts may have several, the last one here wins."""

    RETRY = 1
    RETRY_SOON = 2
    """After 20 ms at most if the transaction is empty: the coordinator is still finishing the previous one."""
    LOOK_UP = 3
    """The coordinator is another one; then the same request again."""
    ABORTABLE = 4
    COMMIT_FAILED = 5
    """Abortable, as CommitFailedError: the group has moved on."""
    ABORTABLE_BUMP = 6
    """Abortable, and the producer goes on under another epoch; fatal where the coordinator cannot give one."""
    REFUSED = 7
    """The producer is where it was before ``init_transactions``, which may be called again."""
    FATAL = 8
    FENCED = 9
    """Fatal, as ProducerFencedError."""


Row = Mapping[type[KafkaError], Action]

_COORDINATION: Row = {
    NotCoordinatorError: Action.LOOK_UP,
    CoordinatorNotAvailableError: Action.LOOK_UP,
    InvalidProducerEpochError: Action.FENCED,
    ProducerFencedError: Action.FENCED,
    TransactionalIdAuthorizationError: Action.FATAL,
    ClusterAuthorizationError: Action.FATAL,
    InvalidTxnStateError: Action.FATAL,
    TransactionAbortableError: Action.ABORTABLE,
}

_FORGOTTEN: Row = {
    UnknownProducerIdError: Action.ABORTABLE_BUMP,
    InvalidPidMappingError: Action.ABORTABLE_BUMP,
}


def _group_errors() -> Row:
    # They are in the table of errors that a producer does not meet by itself, which makes no names.
    names = {82: Action.ABORTABLE, 25: Action.COMMIT_FAILED, 22: Action.COMMIT_FAILED, 113: Action.COMMIT_FAILED}
    return {kind: action for code, action in names.items() if (kind := for_code(code)) is not None}


TABLE: Mapping[int, Row] = MappingProxyType(
    {
        ApiKey.FIND_COORDINATOR: {
            # This broker cannot tell; another one may.
            NotCoordinatorError: Action.RETRY,
            CoordinatorNotAvailableError: Action.RETRY,
            GroupAuthorizationError: Action.ABORTABLE,
            TransactionAbortableError: Action.ABORTABLE,
        },
        ApiKey.INIT_PRODUCER_ID: {
            **_COORDINATION,
            TransactionalIdAuthorizationError: Action.REFUSED,
            ClusterAuthorizationError: Action.REFUSED,
        },
        ApiKey.ADD_PARTITIONS_TO_TXN: {
            **_COORDINATION,
            **_FORGOTTEN,
            ConcurrentTransactionsError: Action.RETRY_SOON,
            ClusterAuthorizationError: Action.ABORTABLE,
            TopicAuthorizationError: Action.ABORTABLE,
            OperationNotAttemptedError: Action.ABORTABLE,
        },
        ApiKey.ADD_OFFSETS_TO_TXN: {
            **_COORDINATION,
            **_FORGOTTEN,
            GroupAuthorizationError: Action.ABORTABLE,
        },
        ApiKey.TXN_OFFSET_COMMIT: {
            **_COORDINATION,
            **_group_errors(),
            TimeoutError: Action.LOOK_UP,
            GroupAuthorizationError: Action.ABORTABLE,
            UnsupportedForMessageFormatError: Action.FATAL,
        },
        ApiKey.END_TXN: {**_COORDINATION, **_FORGOTTEN},
    }
)

DEFAULTS: Mapping[int, Action] = MappingProxyType({ApiKey.ADD_PARTITIONS_TO_TXN: Action.ABORTABLE})
"""For errors without a row that are not retriable; fatal where there is none here."""


def is_expected(api_key: int, error: KafkaError) -> bool:
    """Whether the table has a row for it."""
    return type(error) in TABLE[api_key]


def action_for(api_key: int, error: KafkaError) -> Action:
    """What ``error``, the answer to a request of this API, means."""
    found = TABLE[api_key].get(type(error))
    if found is not None:
        return found
    return Action.RETRY if error.retriable else DEFAULTS.get(api_key, Action.FATAL)


def for_call(error: KafkaError, prefix: str = "") -> KafkaError:
    """What a call of the transactional API raises because of ``error``, of a record or request: one of its own class.

    Not where that class says "call it again", as TimeoutError does: repeating a call does not bring a record back that
    has failed.  (The Java client wraps these, too.)
    """
    if isinstance(error, RetriableError):
        own: KafkaError = TransactionAbortableError(f"{prefix}{type(error).__name__}: {error.message}", **error.context)
        own = judged(own, fatal=error.fatal, requires_abort=not error.fatal)
        own.__cause__ = error
        return own
    return reworded(error, prefix + error.message) if prefix else error
