"""A coordinator of transactions and groups for ``ProducingCluster``: its answers by kio, its rules by hand.

``Coordinator`` speaks for every broker of a cluster; ``at`` is the one that it says it is (others answer
NOT_COORDINATOR).  ``fail`` and ``lose`` put faults in line for an API, ``held`` of the broker does as always.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tests.fakes.broker import INIT_PRODUCER_ID, MODERN, PRODUCE, Received, error_code
from tests.fakes.produce import Answer, ProducingCluster, Where, answer_produce, batches_of
from tests.fakes.world import World
from tests.unit._protocol.kio_peer import make, schema

FIND_COORDINATOR, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, OFFSET_COMMIT = 10, 24, 25, 26, 28
TRANSACTIONAL = (FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, OFFSET_COMMIT)
SHORT = {10: "find", 22: "init", 24: "add", 25: "offsets", 26: "end", 28: "commit", 0: "produce"}
RANGES = {**MODERN, 10: (0, 6), 22: (0, 5), 24: (0, 3), 25: (0, 4), 26: (0, 5), 28: (0, 5)}
NOT_COORDINATOR, OUT_OF_ORDER, INVALID_EPOCH, INVALID_STATE, FENCED = 16, 45, 47, 48, 90


@dataclass
class Owner:
    """What is known of one transactional id."""

    producer_id: int
    epoch: int = 0
    open: bool = False
    partitions: set[Where] = field(default_factory=set)
    groups: dict[str, dict[Where, int]] = field(default_factory=dict)
    started: dict[Where, int] = field(default_factory=dict)
    ended: tuple[int, bool] | None = None
    """Epoch and outcome of the last transaction, by which an EndTxn that is sent again is known."""


class Coordinator:
    """Transactions of version 1 or 2 over a cluster that is not connected to yet."""

    def __init__(self, cluster: ProducingCluster, version: int = 2, at: int = 0) -> None:
        self.cluster = cluster
        self.version = version
        self.at = at
        self.owners: dict[str, Owner] = {}
        self.offsets: defaultdict[str, dict[Where, int]] = defaultdict(dict)
        self.committed: defaultdict[Where, list[bytes | None]] = defaultdict(list)
        """What a reader of committed records sees."""
        self.aborted: defaultdict[Where, list[bytes | None]] = defaultdict(list)
        self.requests: list[Received] = []
        self.faults: defaultdict[int, deque[Any]] = defaultdict(deque)
        self.next_id, self.next_epoch = 13131, 1
        for broker in cluster.brokers.values():
            broker.ranges = dict(RANGES)
            self.finalize(version)
            for api in TRANSACTIONAL:
                broker.script[api] = self.answer
            broker.script[PRODUCE] = self.answer_produce

    def finalize(self, version: int, epoch: int = 1) -> None:
        """The cluster's transaction.version, as the next connection will learn it."""
        for broker in self.cluster.brokers.values():
            broker.finalized = (epoch, {"transaction.version": version})

    def limit(self, api: int, newest: int) -> None:
        """An older broker."""
        for broker in self.cluster.brokers.values():
            broker.ranges[api] = (0, newest)

    def fail(self, api: int, *codes: int | Mapping[Where, int]) -> None:
        """The next answers; a code for the whole, or (API 24, 28) codes by partition; 0 is none."""
        self.faults[api].extend(codes)

    def lose(self, api: int, *, processed: bool = False) -> None:
        """The next request ends in a cut connection."""
        self.faults[api].append(processed)

    def names(self) -> list[str]:
        """The requests so far in short, produce included, look-ups left out."""
        return [SHORT[request.api_key] for request in self.requests if request.api_key != FIND_COORDINATOR]

    def of(self, api: int) -> list[Received]:
        return [request for request in self.requests if request.api_key == api]

    # ---- answers

    def answer(self, request: Received) -> None:
        self.requests.append(request)
        fault = self.faults[request.api_key].popleft() if self.faults[request.api_key] else 0
        if isinstance(fault, bool):
            if fault:
                self.apply(request, 0)
            request.link.reset()
            return
        if request.api_key not in (FIND_COORDINATOR, OFFSET_COMMIT) and request.broker.node.id != self.at:
            fault = NOT_COORDINATOR
        request.answer(self.apply(request, fault), request.broker.delay_ms)

    def apply(self, request: Received, fault: Any) -> Any:
        kinds: dict[int, Callable[[Received, Any], Any]] = {
            FIND_COORDINATOR: self.find,
            INIT_PRODUCER_ID: self.init,
            ADD_PARTITIONS: self.add_partitions,
            ADD_OFFSETS: self.add_offsets,
            END_TXN: self.end,
            OFFSET_COMMIT: self.commit_offsets,
        }
        return kinds[request.api_key](request, fault)

    def find(self, request: Received, code: int) -> Any:
        module = schema("find_coordinator", request.version, "response")
        node = self.cluster.brokers[self.at].node
        where = {"node_id": node.id, "host": node.host, "port": node.port} if not code else _NOWHERE
        fields = {"error_code": error_code(code), "error_message": None, **where}
        if request.version >= 4:
            (key,) = request.body.coordinator_keys
            fields["coordinators"] = (make(module, "Coordinator", key=key, **fields),)
        return make(module, "FindCoordinatorResponse", throttle_time=timedelta(0), **fields)

    def init(self, request: Received, code: int) -> Any:
        body = request.body
        name = body.transactional_id
        if not code:
            owner = self.owners.get(name)
            if owner is None:
                owner = self.owners[name] = Owner(self.next_id, self.next_epoch)
                self.next_id += 1
            elif getattr(body, "producer_id", -1) >= 0 and body.producer_epoch != owner.epoch:
                code = FENCED
            else:
                if owner.open:
                    self.decide(owner, commit=False)
                self.raise_epoch(owner)
        owner = self.owners.get(name, Owner(-1, -1))
        return self.message(
            request,
            "InitProducerIdResponse",
            code,
            producer_id=-1 if code else owner.producer_id,
            producer_epoch=-1 if code else owner.epoch,
        )

    def add_partitions(self, request: Received, fault: Any) -> Any:
        body = request.body
        prefix = "v3_and_below_"
        asked = [(topic.name, part) for topic in getattr(body, prefix + "topics") for part in topic.partitions]
        owner = self.owners.get(getattr(body, prefix + "transactional_id"))
        code = self.judge(
            owner, getattr(body, prefix + "producer_id"), getattr(body, prefix + "producer_epoch"), request
        )
        codes = dict(fault) if isinstance(fault, Mapping) else dict.fromkeys(asked, fault or code)
        if not any(codes.values()) and owner is not None:
            owner.open = True
            for where in asked:
                self.join(owner, where)
        module = schema("add_partitions_to_txn", request.version, "response")
        topics: defaultdict[str, list[Any]] = defaultdict(list)
        for topic, part in asked:
            if (topic, part) in codes:
                result = make(
                    module,
                    "AddPartitionsToTxnPartitionResult",
                    partition_index=part,
                    partition_error_code=error_code(codes[topic, part]),
                )
                topics[topic].append(result)
        results = tuple(
            make(module, "AddPartitionsToTxnTopicResult", name=topic, results_by_partition=tuple(parts))
            for topic, parts in topics.items()
        )
        return make(
            module, "AddPartitionsToTxnResponse", throttle_time=timedelta(0), results_by_topic_v3_and_below=results
        )

    def add_offsets(self, request: Received, code: int) -> Any:
        body = request.body
        owner = self.owners.get(body.transactional_id)
        code = code or self.judge(owner, body.producer_id, body.producer_epoch, request)
        if not code and owner is not None:
            owner.open = True
            owner.groups.setdefault(body.group_id, {})
        return self.message(request, "AddOffsetsToTxnResponse", code)

    def commit_offsets(self, request: Received, fault: Any) -> Any:
        body = request.body
        owner = self.owners[body.transactional_id]
        offsets = {
            (topic.name, part.partition_index): part.committed_offset
            for topic in body.topics
            for part in topic.partitions
        }
        code = self.judge(owner, body.producer_id, body.producer_epoch, request)
        if not code and request.version < 5 and body.group_id not in owner.groups:
            code = INVALID_STATE
        codes = dict(fault) if isinstance(fault, Mapping) else dict.fromkeys(offsets, fault or code)
        for where, offset in offsets.items():
            if codes.get(where, 0) == 0:
                owner.open = True
                owner.groups.setdefault(body.group_id, {})[where] = offset
        module = schema("txn_offset_commit", request.version, "response")
        topics: defaultdict[str, list[Any]] = defaultdict(list)
        for topic, part in offsets:
            answer = error_code(codes.get((topic, part), 0))
            topics[topic].append(
                make(module, "TxnOffsetCommitResponsePartition", partition_index=part, error_code=answer)
            )
        results = tuple(
            make(module, "TxnOffsetCommitResponseTopic", name=topic, partitions=tuple(parts))
            for topic, parts in topics.items()
        )
        return make(module, "TxnOffsetCommitResponse", throttle_time=timedelta(0), topics=results)

    def end(self, request: Received, code: int) -> Any:
        body = request.body
        owner = self.owners.get(body.transactional_id, Owner(-1, -1))
        again = not owner.open and owner.ended == (body.producer_epoch, body.committed)
        if not code and not again:
            code = self.judge(owner, body.producer_id, body.producer_epoch, request)
            if not code and not owner.open and (body.committed or request.version < 5):
                code = INVALID_STATE
            if not code:
                owner.ended = (body.producer_epoch, body.committed)
                self.decide(owner, commit=body.committed)
                if request.version >= 5:
                    self.raise_epoch(owner)
        more = {}
        if request.version >= 5:
            more = {"producer_id": owner.producer_id, "producer_epoch": owner.epoch}
            if code:
                more = {"producer_id": -1, "producer_epoch": -1}
        return self.message(request, "EndTxnResponse", code, **more)

    def message(self, request: Received, kind: str, code: int, **fields: Any) -> Any:
        name = {22: "init_producer_id", 25: "add_offsets_to_txn", 26: "end_txn"}[request.api_key]
        module = schema(name, request.version, "response")
        return make(module, kind, throttle_time=timedelta(0), error_code=error_code(code), **fields)

    # ---- rules

    def judge(self, owner: Owner | None, producer_id: int, epoch: int, request: Received) -> int:
        """Whether who asks is the one that was initialized last."""
        if owner is None or owner.producer_id != producer_id:
            return 49
        if owner.epoch != epoch:
            return FENCED if request.version >= 2 else INVALID_EPOCH
        return 0

    def raise_epoch(self, owner: Owner) -> None:
        owner.epoch += 1
        if owner.epoch > 32767:
            owner.producer_id, owner.epoch, self.next_id = self.next_id, 0, self.next_id + 1

    def join(self, owner: Owner, where: Where) -> None:
        owner.open = True
        owner.ended = None
        owner.partitions.add(where)
        owner.started.setdefault(where, len(self.cluster.logs[where].batches))

    def decide(self, owner: Owner, *, commit: bool) -> None:
        for where, start in owner.started.items():
            seen = self.committed if commit else self.aborted
            for batch in self.cluster.logs[where].batches[start:]:
                if batch.producer_id == owner.producer_id:
                    seen[where].extend(record.value for record in batch.records)
        if commit:
            for group, offsets in owner.groups.items():
                self.offsets[group].update(offsets)
        owner.open = False
        owner.partitions, owner.groups, owner.started = set(), {}, {}

    def answer_produce(self, request: Received) -> None:
        """As the cluster's own, for records that are part of a transaction, and only for them."""
        self.requests.append(request)
        owner = self.owners.get(request.body.transactional_id)
        refused: dict[Where, Answer] = {}
        for where, batch in batches_of(request).items():
            assert batch.attributes & 16, "a batch without the transactional bit"
            if owner is None or (batch.producer_id, batch.producer_epoch) != (owner.producer_id, owner.epoch):
                refused[where] = Answer(INVALID_EPOCH)
            elif request.version >= 12:
                self.join(owner, where)
                # A log that does not know the producer takes no other sequence than 0 from it (Kafka 4.3).
                if batch.base_sequence != 0 and batch.producer_id not in self.cluster.logs[where].producers:
                    refused[where] = Answer(OUT_OF_ORDER)
            elif where not in owner.partitions:
                refused[where] = Answer(INVALID_STATE)
        if refused:
            answer_produce(request, refused)
        else:
            self.cluster.produce(request)


_NOWHERE = {"node_id": -1, "host": "", "port": -1}


class TransactionalWorld(World):
    """A World whose producer has the transactional.id "foobar"; the producer is initialized unless ``ready`` is False.

    Args:
        version: of transactions, 1 or 2.
    """

    def __init__(self, version: int = 2, *, ready: bool = True, nodes: int = 1, **config: Any) -> None:
        given = {"transactional_id": "foobar", "transaction_timeout_ms": 1121, "max_block_ms": 60_000, **config}
        super().__init__(nodes=nodes, idempotent=True, known=False, **given)
        self.coordinator = Coordinator(self.cluster, version)
        session = self.parts.session
        assert session is not None
        self.session = session
        requests = self.sender.requests
        assert requests is not None
        self.requests = requests
        self.learn("test")
        if ready:
            self.finish(session.initialize())

    def finish(self, result: Any, limit_ms: float = 60_000) -> None:
        """Turns until the call has its outcome; raises its error, as the producer's own method would."""
        self.until(lambda: bool(result.done), limit_ms=limit_ms)
        result.acknowledged = True
        if result.error is not None:
            raise result.error

    @property
    def state(self) -> str:
        """Where the session stands, by name."""
        return self.session.dialog.state.value

    def begin(self) -> None:
        self.session.begin()

    def commit(self) -> None:
        self.finish(self.session.commit())

    def abort(self) -> None:
        self.finish(self.session.abort())

    def committed(self, partition: int = 0) -> list[bytes | None]:
        return self.coordinator.committed["test", partition]
