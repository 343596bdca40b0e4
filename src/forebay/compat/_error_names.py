"""What other clients call a broker's error codes: one table, of which each drop-in class has a view.

What a code means, whether it passes, and what it says is ``forebay.errors``'s alone.
"""

from __future__ import annotations

from typing import NamedTuple


class Names(NamedTuple):
    """The names of one code.

    aiokafka: its class; empty where it has none that a producer can meet.
    kafka_python: its class; empty where it is named as that of ``forebay.errors``.
    librdkafka: its constant; empty where it is Kafka's.
    """

    aiokafka: str = ""
    kafka_python: str = ""
    librdkafka: str = ""


NAMES = {
    -1: Names(aiokafka="UnknownError", kafka_python="UnknownError", librdkafka="UNKNOWN"),
    2: Names(aiokafka="CorruptRecordException", librdkafka="INVALID_MSG"),
    3: Names(aiokafka="UnknownTopicOrPartitionError", librdkafka="UNKNOWN_TOPIC_OR_PART"),
    4: Names(kafka_python="InvalidFetchRequestError", librdkafka="INVALID_MSG_SIZE"),
    5: Names(aiokafka="LeaderNotAvailableError"),
    6: Names(
        aiokafka="NotLeaderForPartitionError",
        kafka_python="NotLeaderForPartitionError",
        librdkafka="NOT_LEADER_FOR_PARTITION",
    ),
    7: Names(aiokafka="RequestTimedOutError", kafka_python="RequestTimedOutError"),
    8: Names(aiokafka="BrokerNotAvailableError"),
    9: Names(aiokafka="ReplicaNotAvailableError"),
    10: Names(
        aiokafka="MessageSizeTooLargeError", kafka_python="MessageSizeTooLargeError", librdkafka="MSG_SIZE_TOO_LARGE"
    ),
    11: Names(kafka_python="StaleControllerEpochError", librdkafka="STALE_CTRL_EPOCH"),
    12: Names(aiokafka="OffsetMetadataTooLargeError"),
    13: Names(kafka_python="NetworkExceptionError"),
    14: Names(aiokafka="GroupLoadInProgressError"),
    15: Names(aiokafka="GroupCoordinatorNotAvailableError"),
    16: Names(aiokafka="NotCoordinatorForGroupError"),
    17: Names(aiokafka="InvalidTopicError", librdkafka="TOPIC_EXCEPTION"),
    18: Names(aiokafka="RecordListTooLargeError", kafka_python="RecordListTooLargeError"),
    19: Names(aiokafka="NotEnoughReplicasError"),
    20: Names(aiokafka="NotEnoughReplicasAfterAppendError"),
    21: Names(aiokafka="InvalidRequiredAcksError"),
    22: Names(aiokafka="IllegalGenerationError"),
    25: Names(aiokafka="UnknownMemberIdError"),
    28: Names(aiokafka="InvalidCommitOffsetSizeError"),
    29: Names(aiokafka="TopicAuthorizationFailedError", kafka_python="TopicAuthorizationFailedError"),
    30: Names(aiokafka="GroupAuthorizationFailedError", kafka_python="GroupAuthorizationFailedError"),
    31: Names(aiokafka="ClusterAuthorizationFailedError", kafka_python="ClusterAuthorizationFailedError"),
    32: Names(aiokafka="InvalidTimestampError"),
    33: Names(aiokafka="UnsupportedSaslMechanismError"),
    34: Names(aiokafka="IllegalSaslStateError"),
    35: Names(aiokafka="UnsupportedVersionError"),
    36: Names(kafka_python="TopicAlreadyExistsError"),
    39: Names(kafka_python="InvalidReplicationAssignmentError"),
    42: Names(aiokafka="InvalidRequestError"),
    43: Names(aiokafka="UnsupportedForMessageFormatError"),
    44: Names(aiokafka="PolicyViolationError"),
    45: Names(aiokafka="OutOfOrderSequenceNumber", kafka_python="OutOfOrderSequenceNumberError"),
    46: Names(aiokafka="DuplicateSequenceNumber", kafka_python="DuplicateSequenceNumberError"),
    47: Names(aiokafka="InvalidProducerEpoch"),
    48: Names(aiokafka="InvalidTxnState"),
    49: Names(aiokafka="InvalidProducerIdMapping", kafka_python="InvalidProducerIdMappingError"),
    50: Names(aiokafka="InvalidTransactionTimeout", kafka_python="InvalidTransactionTimeoutError"),
    51: Names(aiokafka="ConcurrentTransactions"),
    52: Names(aiokafka="TransactionCoordinatorFenced"),
    53: Names(aiokafka="TransactionalIdAuthorizationFailed", kafka_python="TransactionalIdAuthorizationFailedError"),
    54: Names(aiokafka="SecurityDisabled"),
    55: Names(aiokafka="OperationNotAttempted"),
    56: Names(aiokafka="KafkaStorageError"),
    58: Names(aiokafka="SaslAuthenticationFailed", kafka_python="SaslAuthenticationFailedError"),
    59: Names(aiokafka="UnknownProducerId"),
    61: Names(kafka_python="DelegationTokenAuthDisabledError"),
    64: Names(kafka_python="DelegationTokenRequestNotAllowedError"),
    65: Names(kafka_python="DelegationTokenAuthorizationFailedError"),
    68: Names(kafka_python="NonEmptyGroupError"),
    72: Names(aiokafka="ListenerNotFound"),
    97: Names(kafka_python="PrincipalDeserializationFailureError"),
}
"""By code; one that is not here has no name of its own anywhere."""
