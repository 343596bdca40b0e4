"""What every error code means in every API that a producer sends: one row a code, one column an API.

The outcomes are those of the Java client.  A broker that keeps to the protocol sends few of these codes in any one
API; what a producer does with the others decides whether a newer broker, or a proxy, can make it lose records.
"""

from __future__ import annotations

from collections.abc import Mapping

UNKNOWN_CODE = 9999
"""Stands for every code that nobody knows; its row is that of UNKNOWN_SERVER_ERROR."""

LEGEND: Mapping[str, str] = {
    "done": "success, nothing is done",
    "retry": "the same request again after retry.backoff.ms",
    "fresh": "as retry, and metadata is asked for",
    "mend": "as retry, under the next producer epoch with sequences from 0 (KIP-360)",
    "split": "the batch goes out again at once as smaller ones; a single record fails",
    "soon": "as retry, but after 20 ms: what is awaited is only the end of the transaction before",
    "look": "the coordinator is looked up, then as retry",
    "again": "asked again after retry.backoff.ms; what is known stays, and so does who waits",
    "boot": "starts over with bootstrap.servers",
    "lower": "asked in a lower version on the same connection",
    "anew": "the connection is closed and made anew after reconnect.backoff.ms",
    "auth": "as anew, and everybody who waits for metadata gets the error",
    "fail": "the records, or calls, at hand fail with the code's error; later ones are tried",
    "abort": "the call raises the code's error, which requires an abort; the producer goes on after that",
    "init": "the call fails with the code's error, and init_transactions may be called again",
    "bump": "as abort, and the next transaction has a newer epoch",
    "gone": "as abort, but CommitFailedError: the consumer is not in its group any more",
    "fence": "the producer cannot go on: ProducerFencedError, whichever of the two codes it was",
    "raise": "the call raises the code's error, and the next call is made as if nothing had been",
    "false": "the call returns False: there is a topic of that name",
    "none": "the call returns None for that id",
    "fatal": "the producer cannot go on; every record and call fails with the code's error, marked as fatal",
}

PLAIN = """
code name                                  api   meta  topic part  init  plain idem
  -1 UNKNOWN_SERVER_ERROR                  anew  again again done  fatal fail  fail
   1 OFFSET_OUT_OF_RANGE                   anew  again again done  fatal fail  fail
   2 CORRUPT_MESSAGE                       anew  again again done  retry retry retry
   3 UNKNOWN_TOPIC_OR_PARTITION            anew  again again again retry fresh fresh
   4 INVALID_FETCH_SIZE                    anew  again again done  fatal fail  fail
   5 LEADER_NOT_AVAILABLE                  anew  again again again retry fresh fresh
   6 NOT_LEADER_OR_FOLLOWER                anew  again again again retry fresh fresh
   7 REQUEST_TIMED_OUT                     anew  again again done  retry retry retry
   8 BROKER_NOT_AVAILABLE                  anew  again again done  fatal fail  fail
   9 REPLICA_NOT_AVAILABLE                 anew  again again again retry fresh fresh
  10 MESSAGE_TOO_LARGE                     anew  again again done  fatal split split
  11 STALE_CONTROLLER_EPOCH                anew  again again done  fatal fail  fail
  12 OFFSET_METADATA_TOO_LARGE             anew  again again done  fatal fail  fail
  13 NETWORK_EXCEPTION                     anew  again again again retry fresh fresh
  14 COORDINATOR_LOAD_IN_PROGRESS          anew  again again done  retry retry retry
  15 COORDINATOR_NOT_AVAILABLE             anew  again again done  retry retry retry
  16 NOT_COORDINATOR                       anew  again again done  retry retry retry
  17 INVALID_TOPIC_EXCEPTION               anew  again fail  done  fatal fail  fail
  18 RECORD_LIST_TOO_LARGE                 anew  again again done  fatal fail  fail
  19 NOT_ENOUGH_REPLICAS                   anew  again again done  retry retry retry
  20 NOT_ENOUGH_REPLICAS_AFTER_APPEND      anew  again again done  retry retry retry
  21 INVALID_REQUIRED_ACKS                 anew  again again done  fatal fail  fail
  22 ILLEGAL_GENERATION                    anew  again again done  fatal fail  fail
  23 INCONSISTENT_GROUP_PROTOCOL           anew  again again done  fatal fail  fail
  24 INVALID_GROUP_ID                      anew  again again done  fatal fail  fail
  25 UNKNOWN_MEMBER_ID                     anew  again again done  fatal fail  fail
  26 INVALID_SESSION_TIMEOUT               anew  again again done  fatal fail  fail
  27 REBALANCE_IN_PROGRESS                 anew  again again done  fatal fail  fail
  28 INVALID_COMMIT_OFFSET_SIZE            anew  again again done  fatal fail  fail
  29 TOPIC_AUTHORIZATION_FAILED            anew  again fail  done  fatal fail  fail
  30 GROUP_AUTHORIZATION_FAILED            anew  again again done  fatal fail  fail
  31 CLUSTER_AUTHORIZATION_FAILED          anew  again again done  fail  fail  fatal
  32 INVALID_TIMESTAMP                     anew  again again done  fatal fail  fail
  33 UNSUPPORTED_SASL_MECHANISM            auth  again again done  fatal fail  fail
  34 ILLEGAL_SASL_STATE                    auth  again again done  fatal fail  fail
  35 UNSUPPORTED_VERSION                   lower again again done  fatal fail  fatal
  36 TOPIC_ALREADY_EXISTS                  anew  again again done  fatal fail  fail
  37 INVALID_PARTITIONS                    anew  again again done  fatal fail  fail
  38 INVALID_REPLICATION_FACTOR            anew  again again done  fatal fail  fail
  39 INVALID_REPLICA_ASSIGNMENT            anew  again again done  fatal fail  fail
  40 INVALID_CONFIG                        anew  again again done  fatal fail  fail
  41 NOT_CONTROLLER                        anew  again again done  retry retry retry
  42 INVALID_REQUEST                       anew  again again done  fatal fail  fail
  43 UNSUPPORTED_FOR_MESSAGE_FORMAT        anew  again again done  fatal fail  fail
  44 POLICY_VIOLATION                      anew  again again done  fatal fail  fail
  45 OUT_OF_ORDER_SEQUENCE_NUMBER          anew  again again done  fatal fail  mend
  46 DUPLICATE_SEQUENCE_NUMBER             anew  again again done  fatal done  done
  47 INVALID_PRODUCER_EPOCH                anew  again again done  fence fail  fail
  48 INVALID_TXN_STATE                     anew  again again done  fatal fail  fail
  49 INVALID_PRODUCER_ID_MAPPING           anew  again again done  fatal fail  fail
  50 INVALID_TRANSACTION_TIMEOUT           anew  again again done  fatal fail  fail
  51 CONCURRENT_TRANSACTIONS               anew  again again done  retry retry retry
  52 TRANSACTION_COORDINATOR_FENCED        anew  again again done  fatal fail  fail
  53 TRANSACTIONAL_ID_AUTHORIZATION_FAILED anew  again again done  fail  fail  fatal
  54 SECURITY_DISABLED                     anew  again again done  fatal fail  fail
  55 OPERATION_NOT_ATTEMPTED               anew  again again done  fatal fail  fail
  56 KAFKA_STORAGE_ERROR                   anew  again again again retry fresh fresh
  57 LOG_DIR_NOT_FOUND                     anew  again again done  fatal fail  fail
  58 SASL_AUTHENTICATION_FAILED            auth  again again done  fatal fail  fail
  59 UNKNOWN_PRODUCER_ID                   anew  again again done  fatal fail  mend
  60 REASSIGNMENT_IN_PROGRESS              anew  again again done  fatal fail  fail
  61 DELEGATION_TOKEN_AUTH_DISABLED        anew  again again done  fatal fail  fail
  62 DELEGATION_TOKEN_NOT_FOUND            anew  again again done  fatal fail  fail
  63 DELEGATION_TOKEN_OWNER_MISMATCH       anew  again again done  fatal fail  fail
  64 DELEGATION_TOKEN_REQUEST_NOT_ALLOWED  anew  again again done  fatal fail  fail
  65 DELEGATION_TOKEN_AUTHORIZATION_FAILED anew  again again done  fatal fail  fail
  66 DELEGATION_TOKEN_EXPIRED              anew  again again done  fatal fail  fail
  67 INVALID_PRINCIPAL_TYPE                anew  again again done  fatal fail  fail
  68 NON_EMPTY_GROUP                       anew  again again done  fatal fail  fail
  69 GROUP_ID_NOT_FOUND                    anew  again again done  fatal fail  fail
  70 FETCH_SESSION_ID_NOT_FOUND            anew  again again done  retry retry retry
  71 INVALID_FETCH_SESSION_EPOCH           anew  again again done  retry retry retry
  72 LISTENER_NOT_FOUND                    anew  again again again retry fresh fresh
  73 TOPIC_DELETION_DISABLED               anew  again again done  fatal fail  fail
  74 FENCED_LEADER_EPOCH                   anew  again again again retry fresh fresh
  75 UNKNOWN_LEADER_EPOCH                  anew  again again done  retry retry retry
  76 UNSUPPORTED_COMPRESSION_TYPE          anew  again again done  fatal fail  fail
  77 STALE_BROKER_EPOCH                    anew  again again done  fatal fail  fail
  78 OFFSET_NOT_AVAILABLE                  anew  again again done  retry retry retry
  79 MEMBER_ID_REQUIRED                    anew  again again done  fatal fail  fail
  80 PREFERRED_LEADER_NOT_AVAILABLE        anew  again again again retry fresh fresh
  81 GROUP_MAX_SIZE_REACHED                anew  again again done  fatal fail  fail
  82 FENCED_INSTANCE_ID                    anew  again again done  fatal fail  fail
  83 ELIGIBLE_LEADERS_NOT_AVAILABLE        anew  again again again retry fresh fresh
  84 ELECTION_NOT_NEEDED                   anew  again again again retry fresh fresh
  85 NO_REASSIGNMENT_IN_PROGRESS           anew  again again done  fatal fail  fail
  86 GROUP_SUBSCRIBED_TO_TOPIC             anew  again again done  fatal fail  fail
  87 INVALID_RECORD                        anew  again again done  fatal fail  fail
  88 UNSTABLE_OFFSET_COMMIT                anew  again again done  retry retry retry
  89 THROTTLING_QUOTA_EXCEEDED             anew  again again done  retry retry retry
  90 PRODUCER_FENCED                       anew  again again done  fence fail  fence
  91 RESOURCE_NOT_FOUND                    anew  again again done  fatal fail  fail
  92 DUPLICATE_RESOURCE                    anew  again again done  fatal fail  fail
  93 UNACCEPTABLE_CREDENTIAL               anew  again again done  fatal fail  fail
  94 INCONSISTENT_VOTER_SET                anew  again again done  fatal fail  fail
  95 INVALID_UPDATE_VERSION                anew  again again done  fatal fail  fail
  96 FEATURE_UPDATE_FAILED                 anew  again again done  fatal fail  fail
  97 PRINCIPAL_DESERIALIZATION_FAILURE     anew  again again done  fatal fail  fail
  98 SNAPSHOT_NOT_FOUND                    anew  again again done  fatal fail  fail
  99 POSITION_OUT_OF_RANGE                 anew  again again done  fatal fail  fail
 100 UNKNOWN_TOPIC_ID                      anew  again again again retry fresh fresh
 101 DUPLICATE_BROKER_REGISTRATION         anew  again again done  fatal fail  fail
 102 BROKER_ID_NOT_REGISTERED              anew  again again done  fatal fail  fail
 103 INCONSISTENT_TOPIC_ID                 anew  again again again retry fresh fresh
 104 INCONSISTENT_CLUSTER_ID               anew  again again done  fatal fail  fail
 105 TRANSACTIONAL_ID_NOT_FOUND            anew  again again done  fatal fail  fail
 106 FETCH_SESSION_TOPIC_ID_ERROR          anew  again again done  retry retry retry
 107 INELIGIBLE_REPLICA                    anew  again again done  fatal fail  fail
 108 NEW_LEADER_ELECTED                    anew  again again done  fatal fail  fail
 109 OFFSET_MOVED_TO_TIERED_STORAGE        anew  again again done  fatal fail  fail
 110 FENCED_MEMBER_EPOCH                   anew  again again done  fatal fail  fail
 111 UNRELEASED_INSTANCE_ID                anew  again again done  fatal fail  fail
 112 UNSUPPORTED_ASSIGNOR                  anew  again again done  fatal fail  fail
 113 STALE_MEMBER_EPOCH                    anew  again again done  fatal fail  fail
 114 MISMATCHED_ENDPOINT_TYPE              anew  again again done  fatal fail  fail
 115 UNSUPPORTED_ENDPOINT_TYPE             anew  again again done  fatal fail  fail
 116 UNKNOWN_CONTROLLER_ID                 anew  again again done  fatal fail  fail
 117 UNKNOWN_SUBSCRIPTION_ID               anew  again again done  fatal fail  fail
 118 TELEMETRY_TOO_LARGE                   anew  again again done  fatal fail  fail
 119 INVALID_REGISTRATION                  anew  again again done  fatal fail  fail
 120 TRANSACTION_ABORTABLE                 anew  again again done  fail  fail  fail
 121 INVALID_RECORD_STATE                  anew  again again done  fatal fail  fail
 122 SHARE_SESSION_NOT_FOUND               anew  again again done  retry retry retry
 123 INVALID_SHARE_SESSION_EPOCH           anew  again again done  retry retry retry
 124 FENCED_STATE_EPOCH                    anew  again again done  fatal fail  fail
 125 INVALID_VOTER_KEY                     anew  again again done  fatal fail  fail
 126 DUPLICATE_VOTER                       anew  again again done  fatal fail  fail
 127 VOTER_NOT_FOUND                       anew  again again done  fatal fail  fail
 128 INVALID_REGULAR_EXPRESSION            anew  again again done  fatal fail  fail
 129 REBOOTSTRAP_REQUIRED                  anew  boot  again done  fatal fail  fail
 130 STREAMS_INVALID_TOPOLOGY              anew  again again done  fatal fail  fail
 131 STREAMS_INVALID_TOPOLOGY_EPOCH        anew  again again done  fatal fail  fail
 132 STREAMS_TOPOLOGY_FENCED               anew  again again done  fatal fail  fail
 133 SHARE_SESSION_LIMIT_REACHED           anew  again again done  retry retry retry
9999 (unknown)                             anew  again again done  fatal fail  fail
"""
"""ApiVersions; Metadata: top level, a topic's, a partition's; InitProducerId; Produce without and with idempotence."""

TRANSACTIONAL = """
code name                                  txn   find  initT addP  addO  commit end
  -1 UNKNOWN_SERVER_ERROR                  bump  fatal fatal abort fatal fatal fatal
   1 OFFSET_OUT_OF_RANGE                   bump  fatal fatal abort fatal fatal fatal
   2 CORRUPT_MESSAGE                       retry retry retry retry retry retry retry
   3 UNKNOWN_TOPIC_OR_PARTITION            fresh retry retry retry retry retry retry
   4 INVALID_FETCH_SIZE                    bump  fatal fatal abort fatal fatal fatal
   5 LEADER_NOT_AVAILABLE                  fresh retry retry retry retry retry retry
   6 NOT_LEADER_OR_FOLLOWER                fresh retry retry retry retry retry retry
   7 REQUEST_TIMED_OUT                     retry retry retry retry retry look  retry
   8 BROKER_NOT_AVAILABLE                  bump  fatal fatal abort fatal fatal fatal
   9 REPLICA_NOT_AVAILABLE                 fresh retry retry retry retry retry retry
  10 MESSAGE_TOO_LARGE                     split fatal fatal abort fatal fatal fatal
  11 STALE_CONTROLLER_EPOCH                bump  fatal fatal abort fatal fatal fatal
  12 OFFSET_METADATA_TOO_LARGE             bump  fatal fatal abort fatal fatal fatal
  13 NETWORK_EXCEPTION                     fresh retry retry retry retry retry retry
  14 COORDINATOR_LOAD_IN_PROGRESS          retry retry retry retry retry retry retry
  15 COORDINATOR_NOT_AVAILABLE             retry retry look  look  look  look  look
  16 NOT_COORDINATOR                       retry retry look  look  look  look  look
  17 INVALID_TOPIC_EXCEPTION               bump  fatal fatal abort fatal fatal fatal
  18 RECORD_LIST_TOO_LARGE                 bump  fatal fatal abort fatal fatal fatal
  19 NOT_ENOUGH_REPLICAS                   retry retry retry retry retry retry retry
  20 NOT_ENOUGH_REPLICAS_AFTER_APPEND      retry retry retry retry retry retry retry
  21 INVALID_REQUIRED_ACKS                 bump  fatal fatal abort fatal fatal fatal
  22 ILLEGAL_GENERATION                    bump  fatal fatal abort fatal gone  fatal
  23 INCONSISTENT_GROUP_PROTOCOL           bump  fatal fatal abort fatal fatal fatal
  24 INVALID_GROUP_ID                      bump  fatal fatal abort fatal fatal fatal
  25 UNKNOWN_MEMBER_ID                     bump  fatal fatal abort fatal gone  fatal
  26 INVALID_SESSION_TIMEOUT               bump  fatal fatal abort fatal fatal fatal
  27 REBALANCE_IN_PROGRESS                 bump  fatal fatal abort fatal fatal fatal
  28 INVALID_COMMIT_OFFSET_SIZE            bump  fatal fatal abort fatal fatal fatal
  29 TOPIC_AUTHORIZATION_FAILED            bump  fatal fatal abort fatal fatal fatal
  30 GROUP_AUTHORIZATION_FAILED            bump  abort fatal abort abort abort fatal
  31 CLUSTER_AUTHORIZATION_FAILED          fatal fatal init  abort fatal fatal fatal
  32 INVALID_TIMESTAMP                     bump  fatal fatal abort fatal fatal fatal
  33 UNSUPPORTED_SASL_MECHANISM            bump  fatal fatal abort fatal fatal fatal
  34 ILLEGAL_SASL_STATE                    bump  fatal fatal abort fatal fatal fatal
  35 UNSUPPORTED_VERSION                   fatal fatal fatal abort fatal fatal fatal
  36 TOPIC_ALREADY_EXISTS                  bump  fatal fatal abort fatal fatal fatal
  37 INVALID_PARTITIONS                    bump  fatal fatal abort fatal fatal fatal
  38 INVALID_REPLICATION_FACTOR            bump  fatal fatal abort fatal fatal fatal
  39 INVALID_REPLICA_ASSIGNMENT            bump  fatal fatal abort fatal fatal fatal
  40 INVALID_CONFIG                        bump  fatal fatal abort fatal fatal fatal
  41 NOT_CONTROLLER                        retry retry retry retry retry retry retry
  42 INVALID_REQUEST                       bump  fatal fatal abort fatal fatal fatal
  43 UNSUPPORTED_FOR_MESSAGE_FORMAT        bump  fatal fatal abort fatal fatal fatal
  44 POLICY_VIOLATION                      bump  fatal fatal abort fatal fatal fatal
  45 OUT_OF_ORDER_SEQUENCE_NUMBER          bump  fatal fatal abort fatal fatal fatal
  46 DUPLICATE_SEQUENCE_NUMBER             done  fatal fatal abort fatal fatal fatal
  47 INVALID_PRODUCER_EPOCH                bump  fatal fence fence fence fence fence
  48 INVALID_TXN_STATE                     bump  fatal fatal fatal fatal fatal fatal
  49 INVALID_PRODUCER_ID_MAPPING           bump  fatal fatal bump  bump  fatal bump
  50 INVALID_TRANSACTION_TIMEOUT           bump  fatal fatal abort fatal fatal fatal
  51 CONCURRENT_TRANSACTIONS               soon  retry retry soon  retry retry retry
  52 TRANSACTION_COORDINATOR_FENCED        bump  fatal fatal abort fatal fatal fatal
  53 TRANSACTIONAL_ID_AUTHORIZATION_FAILED fatal fatal init  fatal fatal fatal fatal
  54 SECURITY_DISABLED                     bump  fatal fatal abort fatal fatal fatal
  55 OPERATION_NOT_ATTEMPTED               bump  fatal fatal abort fatal fatal fatal
  56 KAFKA_STORAGE_ERROR                   fresh retry retry retry retry retry retry
  57 LOG_DIR_NOT_FOUND                     bump  fatal fatal abort fatal fatal fatal
  58 SASL_AUTHENTICATION_FAILED            bump  fatal fatal abort fatal fatal fatal
  59 UNKNOWN_PRODUCER_ID                   bump  fatal fatal bump  bump  fatal bump
  60 REASSIGNMENT_IN_PROGRESS              bump  fatal fatal abort fatal fatal fatal
  61 DELEGATION_TOKEN_AUTH_DISABLED        bump  fatal fatal abort fatal fatal fatal
  62 DELEGATION_TOKEN_NOT_FOUND            bump  fatal fatal abort fatal fatal fatal
  63 DELEGATION_TOKEN_OWNER_MISMATCH       bump  fatal fatal abort fatal fatal fatal
  64 DELEGATION_TOKEN_REQUEST_NOT_ALLOWED  bump  fatal fatal abort fatal fatal fatal
  65 DELEGATION_TOKEN_AUTHORIZATION_FAILED bump  fatal fatal abort fatal fatal fatal
  66 DELEGATION_TOKEN_EXPIRED              bump  fatal fatal abort fatal fatal fatal
  67 INVALID_PRINCIPAL_TYPE                bump  fatal fatal abort fatal fatal fatal
  68 NON_EMPTY_GROUP                       bump  fatal fatal abort fatal fatal fatal
  69 GROUP_ID_NOT_FOUND                    bump  fatal fatal abort fatal fatal fatal
  70 FETCH_SESSION_ID_NOT_FOUND            retry retry retry retry retry retry retry
  71 INVALID_FETCH_SESSION_EPOCH           retry retry retry retry retry retry retry
  72 LISTENER_NOT_FOUND                    fresh retry retry retry retry retry retry
  73 TOPIC_DELETION_DISABLED               bump  fatal fatal abort fatal fatal fatal
  74 FENCED_LEADER_EPOCH                   fresh retry retry retry retry retry retry
  75 UNKNOWN_LEADER_EPOCH                  retry retry retry retry retry retry retry
  76 UNSUPPORTED_COMPRESSION_TYPE          bump  fatal fatal abort fatal fatal fatal
  77 STALE_BROKER_EPOCH                    bump  fatal fatal abort fatal fatal fatal
  78 OFFSET_NOT_AVAILABLE                  retry retry retry retry retry retry retry
  79 MEMBER_ID_REQUIRED                    bump  fatal fatal abort fatal fatal fatal
  80 PREFERRED_LEADER_NOT_AVAILABLE        fresh retry retry retry retry retry retry
  81 GROUP_MAX_SIZE_REACHED                bump  fatal fatal abort fatal fatal fatal
  82 FENCED_INSTANCE_ID                    bump  fatal fatal abort fatal abort fatal
  83 ELIGIBLE_LEADERS_NOT_AVAILABLE        fresh retry retry retry retry retry retry
  84 ELECTION_NOT_NEEDED                   fresh retry retry retry retry retry retry
  85 NO_REASSIGNMENT_IN_PROGRESS           bump  fatal fatal abort fatal fatal fatal
  86 GROUP_SUBSCRIBED_TO_TOPIC             bump  fatal fatal abort fatal fatal fatal
  87 INVALID_RECORD                        bump  fatal fatal abort fatal fatal fatal
  88 UNSTABLE_OFFSET_COMMIT                retry retry retry retry retry retry retry
  89 THROTTLING_QUOTA_EXCEEDED             retry retry retry retry retry retry retry
  90 PRODUCER_FENCED                       fence fence fence fence fence fence fence
  91 RESOURCE_NOT_FOUND                    bump  fatal fatal abort fatal fatal fatal
  92 DUPLICATE_RESOURCE                    bump  fatal fatal abort fatal fatal fatal
  93 UNACCEPTABLE_CREDENTIAL               bump  fatal fatal abort fatal fatal fatal
  94 INCONSISTENT_VOTER_SET                bump  fatal fatal abort fatal fatal fatal
  95 INVALID_UPDATE_VERSION                bump  fatal fatal abort fatal fatal fatal
  96 FEATURE_UPDATE_FAILED                 bump  fatal fatal abort fatal fatal fatal
  97 PRINCIPAL_DESERIALIZATION_FAILURE     bump  fatal fatal abort fatal fatal fatal
  98 SNAPSHOT_NOT_FOUND                    bump  fatal fatal abort fatal fatal fatal
  99 POSITION_OUT_OF_RANGE                 bump  fatal fatal abort fatal fatal fatal
 100 UNKNOWN_TOPIC_ID                      fresh retry retry retry retry retry retry
 101 DUPLICATE_BROKER_REGISTRATION         bump  fatal fatal abort fatal fatal fatal
 102 BROKER_ID_NOT_REGISTERED              bump  fatal fatal abort fatal fatal fatal
 103 INCONSISTENT_TOPIC_ID                 fresh retry retry retry retry retry retry
 104 INCONSISTENT_CLUSTER_ID               bump  fatal fatal abort fatal fatal fatal
 105 TRANSACTIONAL_ID_NOT_FOUND            bump  fatal fatal abort fatal fatal fatal
 106 FETCH_SESSION_TOPIC_ID_ERROR          retry retry retry retry retry retry retry
 107 INELIGIBLE_REPLICA                    bump  fatal fatal abort fatal fatal fatal
 108 NEW_LEADER_ELECTED                    bump  fatal fatal abort fatal fatal fatal
 109 OFFSET_MOVED_TO_TIERED_STORAGE        bump  fatal fatal abort fatal fatal fatal
 110 FENCED_MEMBER_EPOCH                   bump  fatal fatal abort fatal fatal fatal
 111 UNRELEASED_INSTANCE_ID                bump  fatal fatal abort fatal fatal fatal
 112 UNSUPPORTED_ASSIGNOR                  bump  fatal fatal abort fatal fatal fatal
 113 STALE_MEMBER_EPOCH                    bump  fatal fatal abort fatal gone  fatal
 114 MISMATCHED_ENDPOINT_TYPE              bump  fatal fatal abort fatal fatal fatal
 115 UNSUPPORTED_ENDPOINT_TYPE             bump  fatal fatal abort fatal fatal fatal
 116 UNKNOWN_CONTROLLER_ID                 bump  fatal fatal abort fatal fatal fatal
 117 UNKNOWN_SUBSCRIPTION_ID               bump  fatal fatal abort fatal fatal fatal
 118 TELEMETRY_TOO_LARGE                   bump  fatal fatal abort fatal fatal fatal
 119 INVALID_REGISTRATION                  bump  fatal fatal abort fatal fatal fatal
 120 TRANSACTION_ABORTABLE                 bump  abort abort abort abort abort abort
 121 INVALID_RECORD_STATE                  bump  fatal fatal abort fatal fatal fatal
 122 SHARE_SESSION_NOT_FOUND               retry retry retry retry retry retry retry
 123 INVALID_SHARE_SESSION_EPOCH           retry retry retry retry retry retry retry
 124 FENCED_STATE_EPOCH                    bump  fatal fatal abort fatal fatal fatal
 125 INVALID_VOTER_KEY                     bump  fatal fatal abort fatal fatal fatal
 126 DUPLICATE_VOTER                       bump  fatal fatal abort fatal fatal fatal
 127 VOTER_NOT_FOUND                       bump  fatal fatal abort fatal fatal fatal
 128 INVALID_REGULAR_EXPRESSION            bump  fatal fatal abort fatal fatal fatal
 129 REBOOTSTRAP_REQUIRED                  bump  fatal fatal abort fatal fatal fatal
 130 STREAMS_INVALID_TOPOLOGY              bump  fatal fatal abort fatal fatal fatal
 131 STREAMS_INVALID_TOPOLOGY_EPOCH        bump  fatal fatal abort fatal fatal fatal
 132 STREAMS_TOPOLOGY_FENCED               bump  fatal fatal abort fatal fatal fatal
 133 SHARE_SESSION_LIMIT_REACHED           retry retry retry retry retry retry retry
9999 (unknown)                             bump  fatal fatal abort fatal fatal fatal
"""
"""Produce, FindCoordinator, InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn."""


def _read(grid: str) -> dict[str, dict[int, str]]:
    head, *rows = (line.split() for line in grid.strip().splitlines())
    columns: dict[str, dict[int, str]] = {column: {} for column in head[2:]}
    for row in rows:
        for column, outcome in zip(head[2:], row[2:], strict=True):
            columns[column][int(row[0])] = outcome
    return columns


def _of_control(**others: Mapping[int, str]) -> dict[str, dict[int, str]]:
    """An AdminClient repeats what passes by itself and raises the rest, less what its answers say otherwise."""
    passing = _read(PLAIN)["plain"]
    usual = {code: "retry" if word in ("retry", "fresh") else "raise" for code, word in passing.items()}
    return {column: {**usual, **cells} for column, cells in others.items()}


CONTROL = _of_control(
    findC={},
    initC={},
    # INVALID_PRODUCER_EPOCH is the older name of the same thing.
    endC={47: "fence", 90: "fence"},
    describe={105: "none"},
    list={},
    create={36: "false"},
    offsets={},
    fetch={},
)
"""Of ``forebay.AdminClient``: FindCoordinator, InitProducerId, EndTxn, DescribeTransactions, ListTransactions,
CreateTopics, ListOffsets, Fetch."""

MATRIX: Mapping[str, Mapping[int, str]] = {
    **_read(PLAIN),
    **_read(TRANSACTIONAL),
    "findG": _read(TRANSACTIONAL)["find"],
    **CONTROL,
}
"""The outcome (a word of ``LEGEND``) by column and code; a group's coordinator is looked up like a transaction's."""

NAMES: Mapping[int, str] = {int(line.split()[0]): line.split()[1] for line in PLAIN.strip().splitlines()[1:]}
"""Kafka's constants by code, ``(unknown)`` for ``UNKNOWN_CODE``."""

CODES = tuple(NAMES)

# fmt: off
RETURNED: Mapping[str, tuple[int, ...]] = {
    "api": (35, 42),
    "meta": (129,),
    "topic": (3, 5, 17, 29, 100),
    "part": (5, 9, 72),
    "init": (-1, 7, 14, 15, 16, 31, 35, 42, 47, 49, 50, 51, 53, 90),
    "idem": (
        -1, 2, 3, 6, 7, 10, 17, 18, 19, 20, 21, 29, 31, 32, 35, 42, 43, 44, 45, 46, 47, 53, 56, 59, 74, 76, 87, 90,
    ),
    "txn": (
        -1, 2, 3, 6, 7, 10, 17, 18, 19, 20, 29, 31, 32, 35, 42, 43, 45, 47, 48, 49, 51, 53, 56, 59, 74, 76, 87, 90, 120,
    ),
    "find": (-1, 14, 15, 16, 24, 30, 42, 53, 120),
    "initT": (-1, 7, 14, 15, 16, 31, 35, 42, 47, 49, 50, 51, 53, 90, 120),
    "addP": (-1, 3, 7, 14, 15, 16, 29, 42, 47, 48, 49, 51, 53, 55, 90, 120),
    "addO": (-1, 7, 14, 15, 16, 24, 30, 42, 47, 48, 49, 51, 53, 90, 120),
    "commit": (-1, 3, 7, 12, 14, 15, 16, 22, 24, 25, 28, 29, 30, 47, 49, 53, 82, 90, 113, 120),
    "end": (-1, 7, 14, 15, 16, 35, 42, 47, 48, 49, 51, 53, 59, 90, 120),
}
# fmt: on
"""The codes that Kafka's brokers do send in an API, some of them only to older or newer requests."""


def differences(column: str, found: Mapping[int, str], expected: Mapping[int, str] | None = None) -> list[str]:
    """One line for each code whose outcome is another one than that of ``column``, or of ``expected``."""
    expected = expected or MATRIX[column]
    return [
        f"{column} {code} {NAMES[code]}: expected {expected[code]} ({LEGEND[expected[code]]}), got {outcome}"
        for code, outcome in found.items()
        if outcome != expected[code]
    ]
