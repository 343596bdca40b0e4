"""Codes that a producer does not meet by itself (consumer groups, administration, brokers among themselves).

They are complete all the same, so that any code a broker can send has a class and a text.  A table instead of
declared classes: nobody catches these by name here; ``forebay.errors.for_code`` finds them.
"""

from __future__ import annotations

from forebay.errors._base import (
    PUBLIC_MODULE,
    ApiError,
    AuthorizationError,
    InvalidMetadataError,
    KafkaError,
    RetriableError,
)

_Row = tuple[int, str, str, str]
"""Code, Kafka's constant, the class's name without "Error", meaning."""

_TABLE: dict[type[KafkaError], tuple[_Row, ...]] = {
    ApiError: (
        (1, "OFFSET_OUT_OF_RANGE", "OffsetOutOfRange", "The offset is outside the partition's log."),
        (4, "INVALID_FETCH_SIZE", "InvalidFetchSize", "The fetch size is not valid."),
        (11, "STALE_CONTROLLER_EPOCH", "ControllerMoved", "The controller has moved to another broker."),
        (12, "OFFSET_METADATA_TOO_LARGE", "OffsetMetadataTooLarge", "The commit's metadata is too large."),
        (22, "ILLEGAL_GENERATION", "IllegalGeneration", "The group's generation is not the current one."),
        (23, "INCONSISTENT_GROUP_PROTOCOL", "InconsistentGroupProtocol", "The members share no protocol."),
        (24, "INVALID_GROUP_ID", "InvalidGroupId", "The group id is not valid."),
        (25, "UNKNOWN_MEMBER_ID", "UnknownMemberId", "The coordinator does not know this member."),
        (26, "INVALID_SESSION_TIMEOUT", "InvalidSessionTimeout", "The session timeout is outside the broker's limits."),
        (27, "REBALANCE_IN_PROGRESS", "RebalanceInProgress", "The group is rebalancing; rejoin."),
        (28, "INVALID_COMMIT_OFFSET_SIZE", "InvalidCommitOffsetSize", "The offset commit is too large."),
        (36, "TOPIC_ALREADY_EXISTS", "TopicExists", "A topic of this name exists already."),
        (37, "INVALID_PARTITIONS", "InvalidPartitions", "The number of partitions is not valid."),
        (38, "INVALID_REPLICATION_FACTOR", "InvalidReplicationFactor", "The replication factor is not valid here."),
        (39, "INVALID_REPLICA_ASSIGNMENT", "InvalidReplicaAssignment", "The assignment of replicas is not valid."),
        (40, "INVALID_CONFIG", "InvalidConfiguration", "A configuration entry is not valid."),
        (57, "LOG_DIR_NOT_FOUND", "LogDirNotFound", "The log directory does not exist on the broker."),
        (60, "REASSIGNMENT_IN_PROGRESS", "ReassignmentInProgress", "The partition is being reassigned."),
        (61, "DELEGATION_TOKEN_AUTH_DISABLED", "DelegationTokenDisabled", "Delegation tokens are switched off."),
        (62, "DELEGATION_TOKEN_NOT_FOUND", "DelegationTokenNotFound", "The delegation token is not known."),
        (63, "DELEGATION_TOKEN_OWNER_MISMATCH", "DelegationTokenOwnerMismatch", "The token belongs to someone else."),
        (
            64,
            "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
            "UnsupportedByAuthentication",
            "Needs another kind of authentication.",
        ),
        (66, "DELEGATION_TOKEN_EXPIRED", "DelegationTokenExpired", "The delegation token has expired."),
        (67, "INVALID_PRINCIPAL_TYPE", "InvalidPrincipalType", "This type of principal is not supported."),
        (68, "NON_EMPTY_GROUP", "GroupNotEmpty", "The group has members."),
        (69, "GROUP_ID_NOT_FOUND", "GroupIdNotFound", "There is no group of this id."),
        (73, "TOPIC_DELETION_DISABLED", "TopicDeletionDisabled", "Deleting topics is switched off."),
        (77, "STALE_BROKER_EPOCH", "StaleBrokerEpoch", "The broker's epoch has changed."),
        (79, "MEMBER_ID_REQUIRED", "MemberIdRequired", "The group asks its members for an id."),
        (81, "GROUP_MAX_SIZE_REACHED", "GroupMaxSizeReached", "The group is full."),
        (82, "FENCED_INSTANCE_ID", "FencedInstanceId", "Another member has taken over this group.instance.id."),
        (85, "NO_REASSIGNMENT_IN_PROGRESS", "NoReassignmentInProgress", "The partition is not being reassigned."),
        (86, "GROUP_SUBSCRIBED_TO_TOPIC", "GroupSubscribedToTopic", "The group is subscribed to the topic."),
        (91, "RESOURCE_NOT_FOUND", "ResourceNotFound", "The resource does not exist."),
        (92, "DUPLICATE_RESOURCE", "DuplicateResource", "The resource exists already."),
        (93, "UNACCEPTABLE_CREDENTIAL", "UnacceptableCredential", "The credential is not acceptable."),
        (94, "INCONSISTENT_VOTER_SET", "InconsistentVoterSet", "The voters named are not those of the quorum."),
        (95, "INVALID_UPDATE_VERSION", "InvalidUpdateVersion", "The version of the update is not valid."),
        (96, "FEATURE_UPDATE_FAILED", "FeatureUpdateFailed", "The features could not be updated."),
        (
            97,
            "PRINCIPAL_DESERIALIZATION_FAILURE",
            "PrincipalDeserialization",
            "A forwarded principal could not be read.",
        ),
        (98, "SNAPSHOT_NOT_FOUND", "SnapshotNotFound", "The snapshot does not exist."),
        (99, "POSITION_OUT_OF_RANGE", "PositionOutOfRange", "The position is outside the snapshot."),
        (
            101,
            "DUPLICATE_BROKER_REGISTRATION",
            "DuplicateBrokerRegistration",
            "A broker of this id is registered already.",
        ),
        (102, "BROKER_ID_NOT_REGISTERED", "BrokerIdNotRegistered", "No broker of this id is registered."),
        (104, "INCONSISTENT_CLUSTER_ID", "InconsistentClusterId", "The cluster id is another one."),
        (
            107,
            "INELIGIBLE_REPLICA",
            "IneligibleReplica",
            "The new set of in-sync replicas has one that may not be in it.",
        ),
        (108, "NEW_LEADER_ELECTED", "NewLeaderElected", "The change of in-sync replicas has elected a new leader."),
        (
            109,
            "OFFSET_MOVED_TO_TIERED_STORAGE",
            "OffsetMovedToTieredStorage",
            "The offset has moved to tiered storage.",
        ),
        (110, "FENCED_MEMBER_EPOCH", "FencedMemberEpoch", "The member's epoch is fenced."),
        (111, "UNRELEASED_INSTANCE_ID", "UnreleasedInstanceId", "The instance id is still in use."),
        (112, "UNSUPPORTED_ASSIGNOR", "UnsupportedAssignor", "The group does not support this assignor."),
        (113, "STALE_MEMBER_EPOCH", "StaleMemberEpoch", "The member's epoch is stale."),
        (114, "MISMATCHED_ENDPOINT_TYPE", "MismatchedEndpointType", "The request went to the wrong kind of endpoint."),
        (115, "UNSUPPORTED_ENDPOINT_TYPE", "UnsupportedEndpointType", "This kind of endpoint is not supported."),
        (116, "UNKNOWN_CONTROLLER_ID", "UnknownControllerId", "The controller id is not known."),
        (117, "UNKNOWN_SUBSCRIPTION_ID", "UnknownSubscriptionId", "The telemetry subscription is out of date."),
        (118, "TELEMETRY_TOO_LARGE", "TelemetryTooLarge", "The telemetry push is larger than the broker accepts."),
        (119, "INVALID_REGISTRATION", "InvalidRegistration", "The broker's registration is not valid."),
        (121, "INVALID_RECORD_STATE", "InvalidRecordState", "The record is not in a state that can be acknowledged."),
        (124, "FENCED_STATE_EPOCH", "FencedStateEpoch", "The state epoch of the share group is fenced."),
        (125, "INVALID_VOTER_KEY", "InvalidVoterKey", "The voter's key is not the receiver's."),
        (126, "DUPLICATE_VOTER", "DuplicateVoter", "The voter is in the quorum already."),
        (127, "VOTER_NOT_FOUND", "VoterNotFound", "The voter is not in the quorum."),
        (128, "INVALID_REGULAR_EXPRESSION", "InvalidRegularExpression", "The regular expression is not valid."),
        (130, "STREAMS_INVALID_TOPOLOGY", "StreamsInvalidTopology", "The streams topology is not valid."),
        (131, "STREAMS_INVALID_TOPOLOGY_EPOCH", "StreamsInvalidTopologyEpoch", "The topology's epoch is not valid."),
        (132, "STREAMS_TOPOLOGY_FENCED", "StreamsTopologyFenced", "The streams topology is older than the group's."),
    ),
    AuthorizationError: (
        (65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", "DelegationTokenAuthorization", "Not authorized for the token."),
    ),
    RetriableError: (
        (70, "FETCH_SESSION_ID_NOT_FOUND", "FetchSessionIdNotFound", "The fetch session is not known."),
        (71, "INVALID_FETCH_SESSION_EPOCH", "InvalidFetchSessionEpoch", "The epoch of the fetch session is not valid."),
        (78, "OFFSET_NOT_AVAILABLE", "OffsetNotAvailable", "The new leader's high watermark has not caught up yet."),
        (106, "FETCH_SESSION_TOPIC_ID_ERROR", "FetchSessionTopicId", "The fetch session mixes topic names and ids."),
        (122, "SHARE_SESSION_NOT_FOUND", "ShareSessionNotFound", "The share session is not known."),
        (
            123,
            "INVALID_SHARE_SESSION_EPOCH",
            "InvalidShareSessionEpoch",
            "The epoch of the share session is not valid.",
        ),
        (
            133,
            "SHARE_SESSION_LIMIT_REACHED",
            "ShareSessionLimitReached",
            "The broker has no room for another share session.",
        ),
    ),
    InvalidMetadataError: (
        (80, "PREFERRED_LEADER_NOT_AVAILABLE", "PreferredLeaderNotAvailable", "The preferred leader is not available."),
        (83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "EligibleLeadersNotAvailable", "No eligible leader is available."),
        (84, "ELECTION_NOT_NEEDED", "ElectionNotNeeded", "The partition needs no election."),
    ),
}


def _make_classes() -> dict[str, type[KafkaError]]:
    """One class for each row, by its name."""
    classes: dict[str, type[KafkaError]] = {}
    for base, rows in _TABLE.items():
        for code, constant, stem, meaning in rows:
            body = {"__doc__": meaning, "__module__": PUBLIC_MODULE}
            classes[f"{stem}Error"] = type(f"{stem}Error", (base,), body, code=code, name=constant)
    return classes


CLASSES = _make_classes()
BY_CODE = {kind.code: kind for kind in CLASSES.values()}
