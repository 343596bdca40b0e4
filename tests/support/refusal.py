"""What a broker would answer that refuses a request with an error code, made by kio from the request itself.

For the proxy: the broker behind it never sees the request, so the refusal is the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import BytesIO
from types import SimpleNamespace
from typing import Any

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from tests.support.rewrite import API_VERSIONS, FIND_COORDINATOR, METADATA, PRODUCE
from tests.unit._protocol.kio_peer import make, schema

INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 22, 24, 25, 26, 28
FETCH, LIST_OFFSETS, CREATE_TOPICS, DESCRIBE_CONFIGS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 1, 2, 19, 32, 65, 66
APIS = {
    PRODUCE: "produce",
    FETCH: "fetch",
    LIST_OFFSETS: "list_offsets",
    METADATA: "metadata",
    FIND_COORDINATOR: "find_coordinator",
    API_VERSIONS: "api_versions",
    CREATE_TOPICS: "create_topics",
    DESCRIBE_CONFIGS: "describe_configs",
    INIT_PRODUCER_ID: "init_producer_id",
    ADD_PARTITIONS_TO_TXN: "add_partitions_to_txn",
    ADD_OFFSETS_TO_TXN: "add_offsets_to_txn",
    END_TXN: "end_txn",
    TXN_OFFSET_COMMIT: "txn_offset_commit",
    DESCRIBE_TRANSACTIONS: "describe_transactions",
    LIST_TRANSACTIONS: "list_transactions",
}
AT_ONCE = timedelta(0)
NEVER = datetime.fromtimestamp(0, UTC)
UNSUPPORTED_VERSION = 35


def error_code(number: int) -> Any:
    """kio's member for a code; for one that nobody knows, something that kio writes all the same."""
    try:
        return ErrorCode(number)
    except ValueError:
        return SimpleNamespace(value=number)


def refusal(api_key: int, version: int, frame: bytes, code: int) -> bytes:
    """The answer's bytes after the correlation id.

    Args:
        frame: the request, header included, length excluded.
    """
    module = schema(APIS[api_key], version, "request")
    (kind,) = (value for value in vars(module).values() if getattr(value, "__type__", None) is EntityType.request)
    at = 10 + max(int.from_bytes(frame[8:10], "big", signed=True), 0) + kind.__flexible__
    request, _ = entity_reader(kind)(frame, at)
    answer = refusing(api_key, version, request, code)
    out = BytesIO()
    if answer.__flexible__ and api_key != API_VERSIONS:
        out.write(b"\0")
    entity_writer(type(answer))(out, answer)
    return out.getvalue()


def refusing(api_key: int, version: int, request: Any, code: int) -> Any:
    """kio's answer to kio's request; the error is in each part that was asked for, or at the top if there is none."""
    if api_key == API_VERSIONS and code == UNSUPPORTED_VERSION:
        version = 0  # the layout that KIP-511 asks for
    return BUILD[api_key](schema(APIS[api_key], version, "response"), request, error_code(code))


def _produce(module: Any, request: Any, code: Any) -> Any:
    def part(index: int) -> Any:
        return make(
            module,
            "PartitionProduceResponse",
            index=index,
            error_code=code,
            base_offset=-1,
            log_append_time=None,
            log_start_offset=-1,
            record_errors=(),
            error_message=None,
        )

    topics = tuple(
        make(
            module,
            "TopicProduceResponse",
            **{key: getattr(topic, key) for key in ("name", "topic_id") if hasattr(topic, key)},
            partition_responses=tuple(part(partition.index) for partition in topic.partition_data),
        )
        for topic in request.topic_data
    )
    return make(module, "ProduceResponse", responses=topics, throttle_time=AT_ONCE, node_endpoints=())


def _metadata(module: Any, request: Any, code: Any) -> Any:
    """The error is each topic's; there are no brokers where none was asked for, which is no answer either."""
    topics = tuple(
        make(
            module,
            "MetadataResponseTopic",
            error_code=code,
            name=topic.name,
            topic_id=None,
            is_internal=False,
            partitions=(),
        )
        for topic in request.topics or ()
    )
    return make(
        module,
        "MetadataResponse",
        throttle_time=AT_ONCE,
        brokers=(),
        cluster_id=None,
        controller_id=-1,
        topics=topics,
        error_code=code,
    )


def _find_coordinator(module: Any, request: Any, code: Any) -> Any:
    nobody = {"node_id": -1, "host": "", "port": -1, "error_code": code, "error_message": None}
    keys = getattr(request, "coordinator_keys", ())
    found = tuple(make(module, "Coordinator", key=key, **nobody) for key in keys)
    return make(module, "FindCoordinatorResponse", throttle_time=AT_ONCE, coordinators=found, **nobody)


def _add_partitions_to_txn(module: Any, request: Any, code: Any) -> Any:
    topics = tuple(
        make(
            module,
            "AddPartitionsToTxnTopicResult",
            name=topic.name,
            results_by_partition=tuple(
                make(module, "AddPartitionsToTxnPartitionResult", partition_index=index, partition_error_code=code)
                for index in topic.partitions
            ),
        )
        for topic in request.v3_and_below_topics
    )
    return make(module, "AddPartitionsToTxnResponse", throttle_time=AT_ONCE, results_by_topic_v3_and_below=topics)


def _by_topic(kind: str, topic_kind: str, partition_kind: str) -> Callable[[Any, Any, Any], Any]:
    """An answer with one error code for each partition asked for."""

    def build(module: Any, request: Any, code: Any) -> Any:
        topics = tuple(
            make(
                module,
                topic_kind,
                name=topic.name,
                partitions=tuple(
                    make(module, partition_kind, partition_index=part.partition_index, error_code=code)
                    for part in topic.partitions
                ),
            )
            for topic in request.topics
        )
        return make(module, kind, throttle_time=AT_ONCE, topics=topics)

    return build


def _fetch(module: Any, request: Any, code: Any) -> Any:
    topics = tuple(
        make(
            module,
            "FetchableTopicResponse",
            topic=topic.topic,
            partitions=tuple(
                make(
                    module,
                    "PartitionData",
                    partition_index=part.partition,
                    error_code=code,
                    high_watermark=-1,
                    aborted_transactions=(),
                    records=b"",
                )
                for part in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return make(module, "FetchResponse", throttle_time=AT_ONCE, error_code=error_code(0), responses=topics)


def _create_topics(module: Any, request: Any, code: Any) -> Any:
    topics = tuple(
        make(
            module,
            "CreatableTopicResult",
            name=topic.name,
            topic_id=None,
            error_code=code,
            error_message=None,
            configs=(),
        )
        for topic in request.topics
    )
    return make(module, "CreateTopicsResponse", throttle_time=AT_ONCE, topics=topics)


def _describe_configs(module: Any, request: Any, code: Any) -> Any:
    results = tuple(
        make(
            module,
            "DescribeConfigsResult",
            error_code=code,
            error_message=None,
            resource_type=one.resource_type,
            resource_name=one.resource_name,
            configs=(),
        )
        for one in request.resources
    )
    return make(module, "DescribeConfigsResponse", throttle_time=AT_ONCE, results=results)


def _describe_transactions(module: Any, request: Any, code: Any) -> Any:
    states = tuple(
        make(
            module,
            "TransactionState",
            error_code=code,
            transactional_id=name,
            transaction_state="",
            transaction_timeout=AT_ONCE,
            transaction_start_time=NEVER,
            producer_id=-1,
            producer_epoch=-1,
            topics=(),
        )
        for name in request.transactional_ids
    )
    return make(module, "DescribeTransactionsResponse", throttle_time=AT_ONCE, transaction_states=states)


def _alone(kind: str, **fields: Any) -> Callable[[Any, Any, Any], Any]:
    """An answer with one error code, at its top."""

    def build(module: Any, request: Any, code: Any) -> Any:
        return make(module, kind, throttle_time=AT_ONCE, error_code=code, **fields)

    return build


NO_ID = {"producer_id": -1, "producer_epoch": -1}
BUILD: dict[int, Callable[[Any, Any, Any], Any]] = {
    PRODUCE: _produce,
    FETCH: _fetch,
    LIST_OFFSETS: _by_topic("ListOffsetsResponse", "ListOffsetsTopicResponse", "ListOffsetsPartitionResponse"),
    METADATA: _metadata,
    FIND_COORDINATOR: _find_coordinator,
    API_VERSIONS: _alone("ApiVersionsResponse", api_keys=()),
    CREATE_TOPICS: _create_topics,
    INIT_PRODUCER_ID: _alone("InitProducerIdResponse", **NO_ID),
    ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    ADD_OFFSETS_TO_TXN: _alone("AddOffsetsToTxnResponse"),
    END_TXN: _alone("EndTxnResponse", **NO_ID),
    TXN_OFFSET_COMMIT: _by_topic(
        "TxnOffsetCommitResponse", "TxnOffsetCommitResponseTopic", "TxnOffsetCommitResponsePartition"
    ),
    DESCRIBE_CONFIGS: _describe_configs,
    DESCRIBE_TRANSACTIONS: _describe_transactions,
    LIST_TRANSACTIONS: _alone("ListTransactionsResponse", unknown_state_filters=(), transaction_states=()),
}
