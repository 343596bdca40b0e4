"""Errors with a broker's code that a producer can meet, one class each; the first line of each is its default message.

The codes that only consumers, administrators or brokers meet are in the table of ``_others``.
"""

from __future__ import annotations

from forebay.errors._base import (
    ApiError,
    AuthenticationError,
    AuthorizationError,
    InvalidMetadataError,
    RefreshRetriableError,
    RetriableError,
)


class UnknownServerError(ApiError, code=-1, name="UNKNOWN_SERVER_ERROR"):
    """The broker failed in a way it has no code for; its log knows more."""


class CorruptRecordError(RetriableError, code=2, name="CORRUPT_MESSAGE"):
    """The batch failed the broker's checksum or has an invalid size, or a null key in a compacted topic."""


class UnknownTopicOrPartitionError(InvalidMetadataError, code=3, name="UNKNOWN_TOPIC_OR_PARTITION"):
    """The broker does not have this topic or partition."""


class LeaderNotAvailableError(InvalidMetadataError, code=5, name="LEADER_NOT_AVAILABLE"):
    """The partition has no leader at the moment: an election is under way."""


class NotLeaderOrFollowerError(InvalidMetadataError, code=6, name="NOT_LEADER_OR_FOLLOWER"):
    """The request went to a broker that does not lead the partition any more."""


class KafkaTimeoutError(RetriableError, TimeoutError, code=7, name="REQUEST_TIMED_OUT"):
    """The time limit passed before the request was done."""


class BrokerNotAvailableError(ApiError, code=8, name="BROKER_NOT_AVAILABLE"):
    """The broker is not available."""


class ReplicaNotAvailableError(InvalidMetadataError, code=9, name="REPLICA_NOT_AVAILABLE"):
    """A replica of the partition is not available."""


class RecordTooLargeError(ApiError, code=10, name="MESSAGE_TOO_LARGE"):
    """The record or its batch is larger than the broker or the client accepts."""


class NetworkError(InvalidMetadataError, code=13, name="NETWORK_EXCEPTION"):
    """The connection to the broker failed before it answered."""


class CoordinatorLoadInProgressError(RetriableError, code=14, name="COORDINATOR_LOAD_IN_PROGRESS"):
    """The coordinator is still loading and cannot answer yet."""


class CoordinatorNotAvailableError(RefreshRetriableError, code=15, name="COORDINATOR_NOT_AVAILABLE"):
    """There is no coordinator at the moment."""


class NotCoordinatorError(RefreshRetriableError, code=16, name="NOT_COORDINATOR"):
    """The request went to a broker that is not the coordinator."""


class InvalidTopicError(ApiError, code=17, name="INVALID_TOPIC_EXCEPTION"):
    """The topic's name is not valid, or the topic may not be written to."""


class RecordBatchTooLargeError(ApiError, code=18, name="RECORD_LIST_TOO_LARGE"):
    """The batch is larger than the broker's segment size."""


class NotEnoughReplicasError(RetriableError, code=19, name="NOT_ENOUGH_REPLICAS"):
    """Nothing was written: fewer replicas are in sync than min.insync.replicas asks for."""


class NotEnoughReplicasAfterAppendError(RetriableError, code=20, name="NOT_ENOUGH_REPLICAS_AFTER_APPEND"):
    """The batch was written, but to fewer in-sync replicas than min.insync.replicas asks for."""


class InvalidRequiredAcksError(ApiError, code=21, name="INVALID_REQUIRED_ACKS"):
    """The broker does not know this value of acks."""


class TopicAuthorizationError(AuthorizationError, code=29, name="TOPIC_AUTHORIZATION_FAILED"):
    """Not authorized to access the topic."""


class GroupAuthorizationError(AuthorizationError, code=30, name="GROUP_AUTHORIZATION_FAILED"):
    """Not authorized to access the consumer group."""


class ClusterAuthorizationError(AuthorizationError, code=31, name="CLUSTER_AUTHORIZATION_FAILED"):
    """Not authorized for this operation on the cluster."""

    fatal = True


class InvalidTimestampError(ApiError, code=32, name="INVALID_TIMESTAMP"):
    """The record's timestamp is further from the broker's time than the topic allows."""


class UnsupportedSaslMechanismError(AuthenticationError, code=33, name="UNSUPPORTED_SASL_MECHANISM"):
    """The broker does not support this SASL mechanism."""


class IllegalSaslStateError(AuthenticationError, code=34, name="ILLEGAL_SASL_STATE"):
    """The request is not allowed in this state of the SASL handshake."""


class UnsupportedVersionError(ApiError, code=35, name="UNSUPPORTED_VERSION"):
    """Broker and client share no version of this request."""

    fatal = True


class NotControllerError(RetriableError, code=41, name="NOT_CONTROLLER"):
    """The request went to a broker that is not the controller."""


class InvalidRequestError(ApiError, code=42, name="INVALID_REQUEST"):
    """The broker could not make sense of the request."""


class UnsupportedForMessageFormatError(ApiError, code=43, name="UNSUPPORTED_FOR_MESSAGE_FORMAT"):
    """The topic's message format does not support this request."""


class PolicyViolationError(ApiError, code=44, name="POLICY_VIOLATION"):
    """The request violates a policy of the cluster."""


class OutOfOrderSequenceError(ApiError, code=45, name="OUT_OF_ORDER_SEQUENCE_NUMBER"):
    """The broker is missing a batch of this producer before this one."""


class DuplicateSequenceError(ApiError, code=46, name="DUPLICATE_SEQUENCE_NUMBER"):
    """The broker has this batch already; it was acknowledged before."""


class InvalidProducerEpochError(ApiError, code=47, name="INVALID_PRODUCER_EPOCH"):
    """The producer's epoch is older than the one the broker knows."""


class InvalidTxnStateError(ApiError, code=48, name="INVALID_TXN_STATE"):
    """The transaction is not in a state that allows this request."""


class InvalidPidMappingError(ApiError, code=49, name="INVALID_PRODUCER_ID_MAPPING"):
    """The producer id does not belong to this transactional id, or was forgotten."""


class InvalidTxnTimeoutError(ApiError, code=50, name="INVALID_TRANSACTION_TIMEOUT"):
    """transaction.timeout.ms is larger than the broker's transaction.max.timeout.ms."""


class ConcurrentTransactionsError(RetriableError, code=51, name="CONCURRENT_TRANSACTIONS"):
    """The transaction's previous end is not finished yet."""


class TransactionCoordinatorFencedError(ApiError, code=52, name="TRANSACTION_COORDINATOR_FENCED"):
    """The coordinator that sent the marker is not the current one."""


class TransactionalIdAuthorizationError(AuthorizationError, code=53, name="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
    """Not authorized to use this transactional.id."""

    fatal = True


class SecurityDisabledError(ApiError, code=54, name="SECURITY_DISABLED"):
    """Security features are switched off at the broker."""


class OperationNotAttemptedError(ApiError, code=55, name="OPERATION_NOT_ATTEMPTED"):
    """The broker did not try: another part of the same request failed."""


class KafkaStorageError(InvalidMetadataError, code=56, name="KAFKA_STORAGE_ERROR"):
    """The broker could not read or write the partition's disk."""


class SaslAuthenticationError(AuthenticationError, code=58, name="SASL_AUTHENTICATION_FAILED"):
    """SASL authentication failed: the credentials were not accepted."""


class UnknownProducerIdError(OutOfOrderSequenceError, code=59, name="UNKNOWN_PRODUCER_ID"):
    """The broker has forgotten this producer's records in the partition."""


class ListenerNotFoundError(InvalidMetadataError, code=72, name="LISTENER_NOT_FOUND"):
    """The partition's leader has no listener of the kind we came in by."""


class FencedLeaderEpochError(InvalidMetadataError, code=74, name="FENCED_LEADER_EPOCH"):
    """The leader epoch in the request is older than the broker's."""


class UnknownLeaderEpochError(RetriableError, code=75, name="UNKNOWN_LEADER_EPOCH"):
    """The leader epoch in the request is newer than the broker's."""


class UnsupportedCompressionTypeError(ApiError, code=76, name="UNSUPPORTED_COMPRESSION_TYPE"):
    """The broker or this version of the request does not support the compression."""


class InvalidRecordError(ApiError, code=87, name="INVALID_RECORD"):
    """The broker refused the record itself."""


class UnstableOffsetCommitError(RetriableError, code=88, name="UNSTABLE_OFFSET_COMMIT"):
    """There are offsets of a transaction that is not finished."""


class ThrottlingQuotaExceededError(RetriableError, code=89, name="THROTTLING_QUOTA_EXCEEDED"):
    """A quota was exceeded."""


class ProducerFencedError(ApiError, code=90, name="PRODUCER_FENCED"):
    """A newer producer with the same transactional.id has taken over."""

    fatal = True


class UnknownTopicIdError(InvalidMetadataError, code=100, name="UNKNOWN_TOPIC_ID"):
    """The broker does not have a topic of this id."""


class InconsistentTopicIdError(InvalidMetadataError, code=103, name="INCONSISTENT_TOPIC_ID"):
    """The topic's id in the request is not the one in the broker's log."""


class TransactionalIdNotFoundError(ApiError, code=105, name="TRANSACTIONAL_ID_NOT_FOUND"):
    """The transactional.id is not known."""


class TransactionAbortableError(ApiError, code=120, name="TRANSACTION_ABORTABLE"):
    """The broker asks for this transaction to be aborted; the producer may go on afterwards."""

    txn_requires_abort = True


class RebootstrapRequiredError(ApiError, code=129, name="REBOOTSTRAP_REQUIRED"):
    """The broker asks the client to start again from bootstrap.servers."""
