"""An AdminClient over scripted brokers in memory, with a clock that moves when it waits."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from forebay._assembly import Surroundings
from forebay._protocol.partitions import by_topic
from forebay._protocol.versions import ApiKey
from forebay._records.compression import CompressionType, compressor
from forebay._records.decoded import ControlType, EndTransactionMarker
from forebay.admin import AdminClient
from forebay.admin._assembly import assemble_admin
from forebay.admin._session import AdminSession, Deadline
from forebay.config import ProducerConfig
from forebay.model import TransactionDescription
from forebay.testing.clock import ManualClock
from forebay.testing.memory import MemorySelector
from forebay.testing.resolver import StaticResolver
from tests.fakes.broker import NAMES, Partition, Received, ScriptedBroker, ScriptedCluster, Topic, error_code
from tests.support.records_builder import BatchHead, RecordsBuilder
from tests.unit._protocol.kio_peer import make, schema

RANGES: dict[int, tuple[int, int]] = {
    ApiKey.FETCH: (4, 18),
    ApiKey.LIST_OFFSETS: (1, 11),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DESCRIBE_CONFIGS: (0, 4),
    ApiKey.INIT_PRODUCER_ID: (0, 6),
    ApiKey.END_TXN: (0, 5),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 2),
}
TOO_OLD = 1


@dataclass
class Log:
    """A partition as a broker serves it: batches with their first and last offsets, and aborted transactions."""

    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """Producer id, first offset, offset of the marker."""
    start: int = 0
    end: int = 0
    stable: int | None = None
    """The last stable offset, if it is not the end."""
    behind: deque[int] = field(default_factory=deque)
    """Ends that fetches in line meet, each instead of the true one: of a leader that has not caught up."""

    def write(
        self,
        *values: bytes,
        producer_id: int = -1,
        offsets: Sequence[int] = (),
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """A batch of records whose keys are their offsets; in a transaction if there is a producer id."""
        places = offsets or range(self.end, self.end + len(values))
        head = BatchHead(
            base_offset=places[0],
            producer_id=producer_id,
            producer_epoch=-1 if producer_id < 0 else 0,
            base_sequence=-1 if producer_id < 0 else 0,
            transactional=producer_id >= 0,
        )
        builder = RecordsBuilder(head, compressor(CompressionType.NONE, None), write_limit=1 << 20)
        for place, value in zip(places, values, strict=True):
            builder.append(place, 1000 + place, b"%d" % place, value, headers)
        self._add(places[0], places[-1], builder.build())

    def mark(self, producer_id: int, kind: ControlType, began: int = 0) -> None:
        """The marker that ends a transaction which began at an offset."""
        head = BatchHead(
            base_offset=self.end,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
        builder = RecordsBuilder(head, compressor(CompressionType.NONE, None))
        marker = EndTransactionMarker(kind, 0)
        builder.append_end_transaction(1000 + self.end, marker)
        if kind is ControlType.ABORT:
            self.aborted.append((producer_id, began, self.end))
        self._add(self.end, self.end, builder.build())

    def _add(self, first: int, last: int, data: bytes) -> None:
        self.batches.append((first, last, data))
        self.end = last + 1

    def visible(self, isolation: int) -> int:
        """The end for a reader."""
        return self.end if self.stable is None or isolation == 0 else self.stable


class AdminWorld:
    """One AdminClient; brokers are numbered from 1, the coordinator, the controller and all leaders are node 1.

    Args:
        level: of the feature transaction.version; None if the brokers have none.
    """

    def __init__(self, nodes: int = 1, *, level: int | None = 2, **config: Any) -> None:
        self.clock = ManualClock()
        self.selector = MemorySelector(self.clock)
        self.cluster = ScriptedCluster(self.selector, nodes)
        self.coordinator = 1
        self.codes: dict[int, deque[int]] = defaultdict(deque)
        """Error codes in line for the answers of an API."""
        self.configs: dict[str, dict[str, str | None]] = {}
        self.described: dict[str, TransactionDescription] = {}
        self.listed: dict[int, list[tuple[str, int, str]]] = {}
        self.known_states = {"Ongoing", "Empty"}
        self.log = Log()
        self.cluster.topics["t"] = Topic([Partition(leader=1)])
        self.throttles: deque[int] = deque()
        self.piece = 1 << 20
        """Most bytes of records in an answer, but for a first batch."""
        for broker in self.cluster.brokers.values():
            self._equip(broker, level)
        self.config = {
            "bootstrap_servers": [f"{node.host}:{node.port}" for node in self.cluster.bootstrap()],
            "retry_backoff_ms": 50,
            "retry_backoff_max_ms": 50,
            "reconnect_backoff_ms": 20,
            "reconnect_backoff_max_ms": 20,
            "request_timeout_ms": 2000,
            "max_block_ms": 5000,
            **config,
        }
        self.around = Surroundings(
            clock=self.clock, random=lambda: 0.5, selector=lambda: self.selector, resolver=StaticResolver
        )
        self.admin = AdminClient._with(self.around, **self.config)

    def session(self) -> AdminSession:
        """A session of its own, without an AdminClient around it."""
        return assemble_admin(ProducerConfig(**self.config), self.around)

    def deadline(self, ms: float = 5000) -> Deadline:
        return Deadline(self.clock.now() + ms, "call", ms)

    def broker(self, node_id: int = 1) -> ScriptedBroker:
        return self.cluster.brokers[node_id]

    def asked(self, api: int, node_id: int | None = None) -> list[Received]:
        """The requests that arrived, of one broker or of all."""
        brokers = self.cluster.brokers.values() if node_id is None else [self.broker(node_id)]
        return [request for broker in brokers for request in broker.of(api)]

    def _equip(self, broker: ScriptedBroker, level: int | None) -> None:
        broker.ranges.update(RANGES)
        broker.finalized = None if level is None else (1, {"transaction.version": level})
        handlers: dict[int, Callable[[Received], dict[str, Any]]] = {
            ApiKey.FIND_COORDINATOR: self._find,
            ApiKey.INIT_PRODUCER_ID: self._init,
            ApiKey.END_TXN: self._end,
            ApiKey.DESCRIBE_TRANSACTIONS: self._describe,
            ApiKey.LIST_TRANSACTIONS: self._list,
            ApiKey.CREATE_TOPICS: self._create,
            ApiKey.DELETE_TOPICS: self._delete,
            ApiKey.DESCRIBE_CONFIGS: self._configs,
            ApiKey.LIST_OFFSETS: self._offsets,
            ApiKey.FETCH: self._fetch,
        }
        for api, handler in handlers.items():
            broker.script[api] = lambda request, handler=handler: self._answer(request, handler)  # type: ignore[misc]

    def _answer(self, request: Received, handler: Callable[[Received], dict[str, Any]]) -> None:
        fields = handler(request)
        fields.setdefault("throttle_time", timedelta(0))
        # Kafka's name of the response is the one that is a response, whatever nested structures there are.
        name = type(request.body).__name__.replace("Request", "Response")
        request.answer(make(schema(NAMES[request.api_key], request.version, "response"), name, **fields))

    def _code(self, request: Received) -> Any:
        line = self.codes[request.api_key]
        return error_code(line.popleft() if line else 0)

    def _find(self, request: Received) -> dict[str, Any]:
        code = self._code(request)
        node = self.broker(self.coordinator).node
        found = {"node_id": node.id, "host": node.host, "port": node.port, "error_code": code, "error_message": None}
        if request.version < 4:
            return found
        module = schema("find_coordinator", request.version, "response")
        return {"coordinators": (make(module, "Coordinator", key=request.body.coordinator_keys[0], **found),)}

    def _init(self, request: Received) -> dict[str, Any]:
        code = self._code(request)
        failed = code.value != 0
        return {"error_code": code, "producer_id": -1 if failed else 7, "producer_epoch": -1 if failed else 3}

    def _end(self, request: Received) -> dict[str, Any]:
        return {"error_code": self._code(request), "producer_id": -1, "producer_epoch": -1}

    def _describe(self, request: Received) -> dict[str, Any]:
        module = schema("describe_transactions", 0, "response")
        states = []
        for transactional_id in request.body.transactional_ids:
            code = self._code(request)
            known = self.described.get(transactional_id)
            if known is None:
                known, code = TransactionDescription("", -1, -1, 0, -1, (), -1), error_code(105)
            topics = by_topic(known.partitions).items()
            started = None if known.start_time_ms < 0 else datetime.fromtimestamp(known.start_time_ms / 1000, UTC)
            states.append(
                make(
                    module,
                    "TransactionState",
                    error_code=code,
                    transactional_id=transactional_id,
                    transaction_state=known.state,
                    transaction_timeout=timedelta(milliseconds=known.timeout_ms),
                    transaction_start_time=started or datetime.fromtimestamp(0, UTC),
                    producer_id=known.producer_id,
                    producer_epoch=known.producer_epoch,
                    topics=tuple(
                        make(module, "TopicData", topic=name, partitions=tuple(all_)) for name, all_ in topics
                    ),
                )
            )
        return {"transaction_states": tuple(states)}

    def _list(self, request: Received) -> dict[str, Any]:
        module = schema("list_transactions", request.version, "response")
        found = tuple(
            make(module, "TransactionState", transactional_id=name, producer_id=producer_id, transaction_state=state)
            for name, producer_id, state in self.listed.get(request.broker.node.id, [])
        )
        unknown = tuple(state for state in request.body.state_filters if state not in self.known_states)
        return {"error_code": self._code(request), "unknown_state_filters": unknown, "transaction_states": found}

    def _create(self, request: Received) -> dict[str, Any]:
        code = self._code(request)
        (topic,) = request.body.topics
        result = make(
            schema("create_topics", request.version, "response"),
            "CreatableTopicResult",
            name=topic.name,
            topic_id=None,
            error_code=code,
            error_message="because" if code.value else None,
            topic_config_error_code=0,
            num_partitions=topic.num_partitions,
            replication_factor=topic.replication_factor,
            configs=(),
        )
        return {"topics": (result,)}

    def _delete(self, request: Received) -> dict[str, Any]:
        code = self._code(request)
        (topic,) = request.body.topics
        result = make(
            schema("delete_topics", request.version, "response"),
            "DeletableTopicResult",
            name=topic.name,
            topic_id=None,
            error_code=code,
            error_message="because" if code.value else None,
        )
        return {"responses": (result,)}

    def _configs(self, request: Received) -> dict[str, Any]:
        module = schema("describe_configs", request.version, "response")
        (asked,) = request.body.resources
        code = self._code(request)
        known = {} if code.value else self.configs.get(asked.resource_name, {})
        result = make(
            module,
            "DescribeConfigsResult",
            error_code=code,
            error_message="because" if code.value else None,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
            configs=tuple(
                make(
                    module,
                    "DescribeConfigsResourceResult",
                    name=key,
                    value=known[key],
                    read_only=False,
                    is_sensitive=False,
                    synonyms=(),
                    documentation=None,
                )
                for key in asked.configuration_keys
                if key in known
            ),
        )
        return {"results": (result,)}

    def _offsets(self, request: Received) -> dict[str, Any]:
        module = schema("list_offsets", request.version, "response")
        (topic,) = request.body.topics
        (asked,) = topic.partitions
        offset = self.log.start if asked.timestamp == -2 else self.log.visible(request.body.isolation_level)
        one = make(
            module,
            "ListOffsetsPartitionResponse",
            partition_index=asked.partition_index,
            error_code=self._code(request),
            timestamp=-1,
            offset=offset,
            leader_epoch=0,
        )
        return {"topics": (make(module, "ListOffsetsTopicResponse", name=topic.name, partitions=(one,)),)}

    def _fetch(self, request: Received) -> dict[str, Any]:
        module = schema("fetch", request.version, "response")
        (topic,) = request.body.topics
        (asked,) = topic.partitions
        throttle = self.throttles.popleft() if self.throttles else 0
        isolation = request.body.isolation_level
        visible = self.log.behind.popleft() if self.log.behind else self.log.visible(isolation)
        records, last = (b"", -1) if throttle else self._piece(asked.fetch_offset, visible)
        aborted = tuple(
            make(module, "AbortedTransaction", producer_id=producer_id, first_offset=first)
            for producer_id, first, marker in self.log.aborted
            if isolation == 1 and marker >= asked.fetch_offset and first <= last
        )
        one = make(
            module,
            "PartitionData",
            partition_index=asked.partition,
            error_code=error_code(TOO_OLD) if asked.fetch_offset < self.log.start else self._code(request),
            high_watermark=visible if isolation == 0 else self.log.end,
            last_stable_offset=min(visible, self.log.visible(1)),
            log_start_offset=self.log.start,
            aborted_transactions=aborted,
            preferred_read_replica=-1,
            records=records or None,
        )
        partitions = make(module, "FetchableTopicResponse", topic=topic.topic, partitions=(one,))
        return {
            "throttle_time": timedelta(milliseconds=throttle),
            "error_code": error_code(0),
            "session_id": 0,
            "responses": (partitions,),
        }

    def _piece(self, offset: int, visible: int) -> tuple[bytes, int]:
        found, last = b"", -1
        for first, end, data in self.log.batches:
            if end < offset or first >= visible or end < self.log.start:
                continue
            if found and len(found) + len(data) > self.piece:
                # Cut short in the middle of a batch, as brokers do.
                return found + data[:30], last
            found, last = found + data, end
        return found, last
