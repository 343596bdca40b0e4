"""Every error of this package, in one tree; names are Java's with "Error" in place of "Exception".

    KafkaError
    ├── CommitFailedError                     the consumer group has moved on
    ├── ConfigError (ValueError)              an option is unknown, out of range, or at odds with another
    ├── IllegalArgumentError (ValueError)     an argument of a call
    ├── IllegalStateError (RuntimeError)
    │   ├── ProducerClosedError
    │   └── ForkedProducerError
    ├── InterruptError
    ├── SerializationError
    │   └── UnserializableTypeError (TypeError)
    └── ApiError                              goes into the record's future and callback, not out of send()
        ├── AuthenticationError               Sasl..., Ssl..., UnsupportedSaslMechanism..., IllegalSaslState...
        ├── AuthorizationError                Topic..., Group..., Cluster...¹, TransactionalId...¹
        ├── RetriableError                    the producer retries these by itself
        │   ├── KafkaTimeoutError (builtins.TimeoutError)
        │   │   └── BufferExhaustedError (BufferError)
        │   ├── CorruptRecordError, NotEnoughReplicasError, ConcurrentTransactionsError, ...
        │   └── RefreshRetriableError         CoordinatorNotAvailable..., NotCoordinator...
        │       └── InvalidMetadataError      UnknownTopicOrPartition..., NotLeaderOrFollower..., LeaderNotAvailable...
        │           └── NetworkError
        │               └── DisconnectError
        ├── ProtocolError                     the peer's bytes make no sense
        ├── OutOfOrderSequenceError
        │   └── UnknownProducerIdError
        ├── ProducerFencedError¹, UnsupportedVersionError¹, InvalidProducerEpochError, TransactionAbortableError
        ├── TransactionAbortedError, PurgedError  the record was dropped on purpose
        └── RecordTooLargeError, InvalidRecordError, InvalidTopicError, and one for every other code
    ¹ fatal: the producer cannot go on

Each class has ``code``, ``name``, ``retriable``, ``fatal``, ``txn_requires_abort`` and ``invalid_metadata``; each
error pickles with its context.  The errors of a transaction's calls and records have the flags of what happened there:
``fatal`` (make a new producer), else ``txn_requires_abort`` (abort, and go on), and are not retriable.

``for_code`` gives the class for a broker's code, ``error_for`` an instance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.errors._base import (
    ApiError,
    AuthenticationError,
    AuthorizationError,
    InvalidMetadataError,
    KafkaError,
    RefreshRetriableError,
    RetriableError,
    printable,
)
from forebay.errors._broker import (
    BrokerNotAvailableError,
    ClusterAuthorizationError,
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    CorruptRecordError,
    DuplicateSequenceError,
    FencedLeaderEpochError,
    GroupAuthorizationError,
    IllegalSaslStateError,
    InconsistentTopicIdError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidRequestError,
    InvalidRequiredAcksError,
    InvalidTimestampError,
    InvalidTopicError,
    InvalidTxnStateError,
    InvalidTxnTimeoutError,
    KafkaStorageError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    ListenerNotFoundError,
    NetworkError,
    NotControllerError,
    NotCoordinatorError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OperationNotAttemptedError,
    OutOfOrderSequenceError,
    PolicyViolationError,
    ProducerFencedError,
    RebootstrapRequiredError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    ReplicaNotAvailableError,
    SaslAuthenticationError,
    SecurityDisabledError,
    ThrottlingQuotaExceededError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    TransactionalIdNotFoundError,
    TransactionCoordinatorFencedError,
    UnknownLeaderEpochError,
    UnknownProducerIdError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
    UnsupportedCompressionTypeError,
    UnsupportedForMessageFormatError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
)
from forebay.errors._client import (
    BufferExhaustedError,
    CommitFailedError,
    ConfigError,
    DisconnectError,
    ForkedProducerError,
    IllegalArgumentError,
    IllegalStateError,
    InterruptError,
    ProducerClosedError,
    ProtocolError,
    PurgedError,
    SerializationError,
    SslAuthenticationError,
    TransactionAbortedError,
    UnserializableTypeError,
)

_BY_CODE: dict[int, type[KafkaError]] = {
    kind.code: kind
    for kind in tuple(globals().values())
    if isinstance(kind, type) and issubclass(kind, KafkaError) and kind.code is not None
}


if not TYPE_CHECKING:  # a checker that saw this would take every misspelt name for a class

    def __getattr__(name: str) -> type[KafkaError]:
        """The classes of the table in ``_others``, made when the first of them is asked for; pickles ask here, too."""
        from forebay.errors._others import CLASSES

        if name == "TimeoutError":
            # Of an AttributeError an import statement would not show the text.
            raise ImportError(f"{__name__}.TimeoutError is KafkaTimeoutError, which is a TimeoutError of Python, too")
        if name not in CLASSES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return CLASSES[name]


def for_code(code: int) -> type[KafkaError] | None:
    """The class for a broker's error code: None for 0, UnknownServerError for a code nobody knows."""
    if code == 0:
        return None
    if code in _BY_CODE:
        return _BY_CODE[code]
    from forebay.errors._others import BY_CODE

    return BY_CODE.get(code, UnknownServerError)


def error_for(code: int, message: str | None = None, /, **context: object) -> KafkaError | None:
    """An error for a broker's code and, where it sent one, its message; None for code 0."""
    kind = for_code(code)
    if kind is None:
        return None
    if code != kind.code:
        context = {"broker_code": code, **context}
    return kind(printable(message or ""), **context)


__all__ = [
    "ApiError",
    "AuthenticationError",
    "AuthorizationError",
    "BrokerNotAvailableError",
    "BufferExhaustedError",
    "ClusterAuthorizationError",
    "CommitFailedError",
    "ConcurrentTransactionsError",
    "ConfigError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "CorruptRecordError",
    "DisconnectError",
    "DuplicateSequenceError",
    "FencedLeaderEpochError",
    "ForkedProducerError",
    "GroupAuthorizationError",
    "IllegalArgumentError",
    "IllegalSaslStateError",
    "IllegalStateError",
    "InconsistentTopicIdError",
    "InterruptError",
    "InvalidMetadataError",
    "InvalidPidMappingError",
    "InvalidProducerEpochError",
    "InvalidRecordError",
    "InvalidRequestError",
    "InvalidRequiredAcksError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "InvalidTxnStateError",
    "InvalidTxnTimeoutError",
    "KafkaError",
    "KafkaStorageError",
    "KafkaTimeoutError",
    "LeaderNotAvailableError",
    "ListenerNotFoundError",
    "NetworkError",
    "NotControllerError",
    "NotCoordinatorError",
    "NotEnoughReplicasAfterAppendError",
    "NotEnoughReplicasError",
    "NotLeaderOrFollowerError",
    "OperationNotAttemptedError",
    "OutOfOrderSequenceError",
    "PolicyViolationError",
    "ProducerClosedError",
    "ProducerFencedError",
    "ProtocolError",
    "PurgedError",
    "RebootstrapRequiredError",
    "RecordBatchTooLargeError",
    "RecordTooLargeError",
    "RefreshRetriableError",
    "ReplicaNotAvailableError",
    "RetriableError",
    "SaslAuthenticationError",
    "SecurityDisabledError",
    "SerializationError",
    "SslAuthenticationError",
    "ThrottlingQuotaExceededError",
    "TopicAuthorizationError",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "TransactionCoordinatorFencedError",
    "TransactionalIdAuthorizationError",
    "TransactionalIdNotFoundError",
    "UnknownLeaderEpochError",
    "UnknownProducerIdError",
    "UnknownServerError",
    "UnknownTopicIdError",
    "UnknownTopicOrPartitionError",
    "UnserializableTypeError",
    "UnstableOffsetCommitError",
    "UnsupportedCompressionTypeError",
    "UnsupportedForMessageFormatError",
    "UnsupportedSaslMechanismError",
    "UnsupportedVersionError",
    "error_for",
    "for_code",
]


def __dir__() -> list[str]:
    return sorted(__all__)
