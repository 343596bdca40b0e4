"""The effect of a broker's error on a transaction: one table, API by API, as in the Java client.

An error without a row is judged by its class: a retriable one is tried again, all others have the API's default.
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
    KafkaTimeoutError,
    NotCoordinatorError,
    OperationNotAttemptedError,
    ProducerFencedError,
    RetriableError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    UnknownProducerIdError,
    UnsupportedForMessageFormatError,
    for_code,
)
from forebay.errors._base import judged, reworded


class Action(Enum):
    """The effect of an error.  The parts of a request may have several; the last one of this list wins."""

    RETRY = 1
    RETRY_SOON = 2
    """Try again, after 20 ms at most if the transaction is empty: the coordinator still finishes the previous one."""
    LOOK_UP = 3
    """Look the coordinator up again, then send the same request."""
    ABORTABLE = 4
    COMMIT_FAILED = 5
    """Abortable, as CommitFailedError: the group has moved on."""
    ABORTABLE_BUMP = 6
    """Abortable, and the producer goes on with another epoch; fatal if the coordinator gives none."""
    REFUSED = 7
    """The state is as before ``init_transactions``, which may be called again."""
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
            KafkaTimeoutError: Action.LOOK_UP,
            GroupAuthorizationError: Action.ABORTABLE,
            UnsupportedForMessageFormatError: Action.FATAL,
        },
        ApiKey.END_TXN: {**_COORDINATION, **_FORGOTTEN},
    }
)

DEFAULTS: Mapping[int, Action] = MappingProxyType({ApiKey.ADD_PARTITIONS_TO_TXN: Action.ABORTABLE})
"""For errors without a row that are not retriable; fatal for an API without an entry."""


def is_expected(api_key: int, error: KafkaError) -> bool:
    """Whether the table has a row for it."""
    return type(error) in TABLE[api_key]


def action_for(api_key: int, error: KafkaError) -> Action:
    """The effect of ``error``, the answer to a request of this API."""
    found = TABLE[api_key].get(type(error))
    if found is not None:
        return found
    return Action.RETRY if error.retriable else DEFAULTS.get(api_key, Action.FATAL)


def for_call(error: KafkaError, prefix: str = "") -> KafkaError:
    """The error that a call of the transactional API raises because of a record's or request's ``error``.

    It has the same class, unless that class is retriable, as KafkaTimeoutError is: repeating the call does not bring
    back a record that failed.  (The Java client wraps these too.)
    """
    if isinstance(error, RetriableError):
        own: KafkaError = TransactionAbortableError(f"{prefix}{type(error).__name__}: {error.message}", **error.context)
        own = judged(own, fatal=error.fatal, requires_abort=not error.fatal)
        own.__cause__ = error
        return own
    return reworded(error, prefix + error.message) if prefix else error
