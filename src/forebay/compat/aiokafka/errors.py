"""The errors of aiokafka that a producer can raise, under aiokafka's names.

What consumers alone raise is not here: a program's consumer stays aiokafka's, and raises aiokafka's own errors, which
these classes would never match.  Some names are here only so that ``except`` clauses of a producer go on working.
"""

from __future__ import annotations

from typing import Any

from forebay import errors as native

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
    "UnknownError",
    "CorruptRecordException",
    "UnknownTopicOrPartitionError",
    "LeaderNotAvailableError",
    "NotLeaderForPartitionError",
    "RequestTimedOutError",
    "BrokerNotAvailableError",
    "ReplicaNotAvailableError",
    "MessageSizeTooLargeError",
    "OffsetMetadataTooLargeError",
    "CoordinatorLoadInProgressError",
    "CoordinatorNotAvailableError",
    "NotCoordinatorError",
    "InvalidTopicError",
    "RecordListTooLargeError",
    "NotEnoughReplicasError",
    "NotEnoughReplicasAfterAppendError",
    "InvalidRequiredAcksError",
    "IllegalGenerationError",
    "UnknownMemberIdError",
    "InvalidCommitOffsetSizeError",
    "TopicAuthorizationFailedError",
    "GroupAuthorizationFailedError",
    "ClusterAuthorizationFailedError",
    "InvalidTimestampError",
    "UnsupportedSaslMechanismError",
    "IllegalSaslStateError",
    "UnsupportedVersionError",
    "InvalidRequestError",
    "UnsupportedForMessageFormatError",
    "PolicyViolationError",
    "OutOfOrderSequenceNumber",
    "DuplicateSequenceNumber",
    "InvalidProducerEpoch",
    "InvalidTxnState",
    "InvalidProducerIdMapping",
    "InvalidTransactionTimeout",
    "ConcurrentTransactions",
    "TransactionCoordinatorFenced",
    "TransactionalIdAuthorizationFailed",
    "SecurityDisabled",
    "OperationNotAttempted",
    "KafkaStorageError",
    "SaslAuthenticationFailed",
    "UnknownProducerId",
    "ListenerNotFound",
    "GroupCoordinatorNotAvailableError",
    "GroupLoadInProgressError",
    "InvalidMessageError",
    "NotCoordinatorForGroupError",
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

    def __init_subclass__(cls, *, errno: int, **options: Any) -> None:
        super().__init_subclass__(**options)
        kind = native.for_code(errno)
        assert kind is not None
        cls.errno, cls.message, cls.description = errno, kind.name, kind.default_message()
        cls.retriable, cls.invalid_metadata = kind.retriable, kind.invalid_metadata

    def __str__(self) -> str:
        return f"[Error {self.errno}] {super().__str__()}"


class UnknownError(BrokerResponseError, errno=-1):
    """The broker failed in a way it has no code for; its log knows more."""


class CorruptRecordException(BrokerResponseError, errno=2):
    """The batch failed the broker's checksum or has an invalid size, or a null key in a compacted topic."""


class UnknownTopicOrPartitionError(BrokerResponseError, errno=3):
    """The broker does not have this topic or partition."""


class LeaderNotAvailableError(BrokerResponseError, errno=5):
    """The partition has no leader at the moment: an election is under way."""


class NotLeaderForPartitionError(BrokerResponseError, errno=6):
    """The request went to a broker that does not lead the partition any more."""


class RequestTimedOutError(BrokerResponseError, errno=7):
    """The time limit passed before the request was done."""


class BrokerNotAvailableError(BrokerResponseError, errno=8):
    """The broker is not available."""


class ReplicaNotAvailableError(BrokerResponseError, errno=9):
    """A replica of the partition is not available."""


class MessageSizeTooLargeError(BrokerResponseError, errno=10):
    """The record or its batch is larger than the broker or the client accepts."""


class OffsetMetadataTooLargeError(BrokerResponseError, errno=12):
    """The commit's metadata is too large."""


class GroupLoadInProgressError(BrokerResponseError, errno=14):
    """The coordinator is still loading and cannot answer yet."""


class GroupCoordinatorNotAvailableError(BrokerResponseError, errno=15):
    """There is no coordinator at the moment."""


class NotCoordinatorForGroupError(BrokerResponseError, errno=16):
    """The request went to a broker that is not the coordinator."""


class InvalidTopicError(BrokerResponseError, errno=17):
    """The topic's name is not valid, or the topic may not be written to."""


class RecordListTooLargeError(BrokerResponseError, errno=18):
    """The batch is larger than the broker's segment size."""


class NotEnoughReplicasError(BrokerResponseError, errno=19):
    """Nothing was written: fewer replicas are in sync than min.insync.replicas asks for."""


class NotEnoughReplicasAfterAppendError(BrokerResponseError, errno=20):
    """The batch was written, but to fewer in-sync replicas than min.insync.replicas asks for."""


class InvalidRequiredAcksError(BrokerResponseError, errno=21):
    """The broker does not know this value of acks."""


class IllegalGenerationError(BrokerResponseError, errno=22):
    """The group's generation is not the current one."""


class UnknownMemberIdError(BrokerResponseError, errno=25):
    """The coordinator does not know this member."""


class InvalidCommitOffsetSizeError(BrokerResponseError, errno=28):
    """The offset commit is too large."""


class TopicAuthorizationFailedError(BrokerResponseError, errno=29):
    """Not authorized to access the topic."""


class GroupAuthorizationFailedError(BrokerResponseError, errno=30):
    """Not authorized to access the consumer group."""


class ClusterAuthorizationFailedError(BrokerResponseError, errno=31):
    """Not authorized for this operation on the cluster."""


class InvalidTimestampError(BrokerResponseError, errno=32):
    """The record's timestamp is further from the broker's time than the topic allows."""


class UnsupportedSaslMechanismError(BrokerResponseError, errno=33):
    """The broker does not support this SASL mechanism."""


class IllegalSaslStateError(BrokerResponseError, errno=34):
    """The request is not allowed in this state of the SASL handshake."""


class UnsupportedVersionError(BrokerResponseError, errno=35):
    """Broker and client share no version of this request."""


class InvalidRequestError(BrokerResponseError, errno=42):
    """The broker could not make sense of the request."""


class UnsupportedForMessageFormatError(BrokerResponseError, errno=43):
    """The topic's message format does not support this request."""


class PolicyViolationError(BrokerResponseError, errno=44):
    """The request violates a policy of the cluster."""


class OutOfOrderSequenceNumber(BrokerResponseError, errno=45):
    """The broker is missing a batch of this producer before this one."""


class DuplicateSequenceNumber(BrokerResponseError, errno=46):
    """The broker has this batch already; it was acknowledged before."""


class InvalidProducerEpoch(BrokerResponseError, errno=47):
    """The producer's epoch is older than the one the broker knows."""


class InvalidTxnState(BrokerResponseError, errno=48):
    """The transaction is not in a state that allows this request."""


class InvalidProducerIdMapping(BrokerResponseError, errno=49):
    """The producer id does not belong to this transactional id, or was forgotten."""


class InvalidTransactionTimeout(BrokerResponseError, errno=50):
    """transaction.timeout.ms is larger than the broker's transaction.max.timeout.ms."""


class ConcurrentTransactions(BrokerResponseError, errno=51):
    """The transaction's previous end is not finished yet."""


class TransactionCoordinatorFenced(BrokerResponseError, errno=52):
    """The coordinator that sent the marker is not the current one."""


class TransactionalIdAuthorizationFailed(BrokerResponseError, errno=53):
    """Not authorized to use this transactional.id."""


class SecurityDisabled(BrokerResponseError, errno=54):
    """Security features are switched off at the broker."""


class OperationNotAttempted(BrokerResponseError, errno=55):
    """The broker did not try: another part of the same request failed."""


class KafkaStorageError(BrokerResponseError, errno=56):
    """The broker could not read or write the partition's disk."""


class SaslAuthenticationFailed(BrokerResponseError, errno=58):
    """SASL authentication failed: the credentials were not accepted."""


class UnknownProducerId(BrokerResponseError, errno=59):
    """The broker has forgotten this producer's records in the partition."""


class ListenerNotFound(BrokerResponseError, errno=72):
    """The partition's leader has no listener of the kind we came in by."""


CoordinatorNotAvailableError = GroupCoordinatorNotAvailableError
CoordinatorLoadInProgressError = GroupLoadInProgressError
InvalidMessageError = CorruptRecordException
NotCoordinatorError = NotCoordinatorForGroupError
