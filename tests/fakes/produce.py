"""Brokers that take produce requests: decoded by kio, judged by the strict reader, kept in logs of their own.

``ProducingCluster`` adds Produce and InitProducerId to a scripted cluster.  Faults are put in line for a partition
(``fail``) or for whole requests (``lose``, ``drop``); a request may also be held and answered by hand.
"""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from forebay._records.decoded import Batch
from forebay._records.reader import read_batches
from forebay.testing.memory import Link, MemorySelector
from tests.fakes.broker import INIT_PRODUCER_ID, PRODUCE, Partition, Received, ScriptedCluster, Topic, error_code
from tests.fakes.log import PartitionLog, Verdict
from tests.support.produced import check_produced
from tests.unit._protocol.kio_peer import make, schema

NOT_LEADER, UNKNOWN_TOPIC, MESSAGE_TOO_LARGE, UNKNOWN_TOPIC_ID = 6, 3, 10, 100
FIRST_BY_ID = 13
Where = tuple[str, int]


@dataclass(frozen=True)
class Answer:
    """One partition's part of a produce response."""

    code: int = 0
    base_offset: int = -1
    log_append_time: int = -1
    log_start_offset: int = -1
    record_errors: tuple[tuple[int, str | None], ...] = ()
    message: str | None = None
    leader: tuple[int, int] | None = None
    """The new leader's id and epoch (KIP-951)."""
    written: bool = False
    """For a fault in line: the records are written all the same, only the answer says otherwise."""


def batches_of(request: Received) -> dict[Where, Batch]:
    """The v2 batches of a produce request, each as a broker would check it."""
    found: dict[Where, Batch] = {}
    for topic in request.body.topic_data:
        name = named(request, topic)
        for part in topic.partition_data:
            (batch,) = read_batches(part.records)
            if request.version >= 3:
                check_produced(batch)
            found[name, part.index] = batch
    return found


def named(request: Received, topic: Any) -> str:
    """The name of a request's topic; of one that the cluster has no more, or never had, the id that it came by."""
    if request.version < FIRST_BY_ID:
        return str(topic.name)
    topics = request.broker.cluster.topics
    return next((name for name, known in topics.items() if known.topic_id == topic.topic_id), str(topic.topic_id))


def answer_produce(
    request: Received,
    answers: Mapping[Where, Answer],
    *,
    throttle_ms: int = 0,
    endpoints: Iterable[tuple[int, str, int]] = (),
    delay_ms: float = 0,
) -> None:
    """Sends a produce response with these parts, in the order of ``answers``."""
    module = schema("produce", request.version, "response")
    ids = {}
    if request.version >= FIRST_BY_ID:
        ids = {named(request, topic): topic.topic_id for topic in request.body.topic_data}
    topics: dict[str, list[Any]] = {}
    for (topic, partition), answer in answers.items():
        topics.setdefault(topic, []).append(_partition(module, partition, answer))
    message = make(
        module,
        "ProduceResponse",
        responses=tuple(
            make(module, "TopicProduceResponse", name=name, topic_id=ids.get(name), partition_responses=tuple(parts))
            for name, parts in topics.items()
        ),
        throttle_time=timedelta(milliseconds=throttle_ms),
        node_endpoints=tuple(
            make(module, "NodeEndpoint", node_id=node, host=host, port=port, rack=None)
            for node, host, port in endpoints
        )
        if hasattr(module, "NodeEndpoint")
        else (),
    )
    request.answer(message, delay_ms)


def _partition(module: Any, partition: int, answer: Answer) -> Any:
    append_time = None
    if answer.log_append_time >= 0:
        append_time = datetime.fromtimestamp(answer.log_append_time / 1000, UTC)
    fields: dict[str, Any] = {
        "index": partition,
        "error_code": error_code(answer.code),
        "base_offset": answer.base_offset,
        "log_append_time": append_time,
        "log_start_offset": answer.log_start_offset,
        "error_message": answer.message,
        "record_errors": (),
    }
    if answer.record_errors:
        fields["record_errors"] = tuple(
            make(module, "BatchIndexAndErrorMessage", batch_index=index, batch_index_error_message=text)
            for index, text in answer.record_errors
        )
    if answer.leader is not None:
        fields["current_leader"] = make(
            module, "LeaderIdAndEpoch", leader_id=answer.leader[0], leader_epoch=answer.leader[1]
        )
    return make(module, "PartitionProduceResponse", **fields)


class ProducingCluster(ScriptedCluster):
    """A scripted cluster whose brokers keep what they are sent.

    ``next_id`` and ``next_epoch`` are what the next InitProducerId gets.
    """

    def __init__(self, selector: MemorySelector, nodes: int = 1, first_id: int = 0) -> None:
        self.logs: defaultdict[Where, PartitionLog] = defaultdict(PartitionLog)
        self.faults: defaultdict[Where, deque[Answer]] = defaultdict(deque)
        self.created = 0
        self.next_id = 343434
        self.next_epoch = 0
        self.throttles: deque[int] = deque()
        self.lost: deque[bool] = deque()
        self.cut: list[Link] = []
        self.max_batch_size = 1 << 30  # what message.max.bytes is
        super().__init__(selector, nodes, first_id)

    def add(self, node_id: int, host: str = "127.0.0.1") -> Any:
        broker = super().add(node_id, host)
        broker.script[PRODUCE] = self.produce
        broker.script[INIT_PRODUCER_ID] = self.init_producer_id
        return broker

    def create(self, topic: str, partitions: int, leaders: Iterable[int] = (0,)) -> None:
        """A topic whose partitions are led by ``leaders`` in turn, at epoch 100."""
        cycle = tuple(leaders)
        self.created += 1
        self.topics[topic] = Topic(
            [Partition(cycle[index % len(cycle)], 100) for index in range(partitions)],
            topic_id=uuid.UUID(int=self.created),
        )

    def recreate(self, topic: str) -> None:
        """The topic is deleted and made again, on the same brokers: other logs, another id, epochs from 0 on."""
        old = self.topics[topic]
        for index in range(len(old.partitions)):
            self.logs.pop((topic, index), None)
        self.create(topic, len(old.partitions), [part.leader for part in old.partitions])
        for part in self.topics[topic].partitions:
            part.epoch = 0

    def move(self, topic: str, partition: int, leader: int, *, newer_epoch: bool = True) -> None:
        """Another broker leads the partition from now on."""
        part = self.topics[topic].partitions[partition]
        part.leader = leader
        part.epoch += newer_epoch

    def fail(self, topic: str, partition: int, *answers: Answer | int) -> None:
        """The next batches for the partition are refused, one for each answer; 0 lets one through."""
        for answer in answers:
            self.faults[topic, partition].append(answer if isinstance(answer, Answer) else Answer(answer))

    def lose(self, *, processed: bool) -> None:
        """The next produce request ends in a cut connection, before or after its records are written."""
        self.lost.append(processed)

    def requests(self, node_id: int = 0) -> list[Received]:
        """The produce requests that a broker got."""
        return self.brokers[node_id].of(PRODUCE)

    def restart(self, node_id: int) -> None:
        """A broker starts again: its connections break, and of each producer it knows the last batch alone."""
        self.brokers[node_id].drop()
        for (topic, partition), log in self.logs.items():
            if self.topics[topic].partitions[partition].leader == node_id:
                log.restart()

    def produce(self, request: Received) -> None:
        """Takes or refuses each batch, and answers unless acks is 0."""
        if request.link in self.cut:
            return  # what was sent behind it is never read
        if self.lost:
            if self.lost.popleft():
                self.take(request)
            self.cut.append(request.link)
            request.link.reset()
            return
        answers = self.take(request)
        if request.body.acks != 0:
            throttle = self.throttles.popleft() if self.throttles else 0
            answer_produce(request, answers, throttle_ms=throttle, delay_ms=request.broker.delay_ms)

    def take(self, request: Received) -> dict[Where, Answer]:
        """Writes what can be written; what a broker would answer for it."""
        answers: dict[Where, Answer] = {}
        for where, batch in batches_of(request).items():
            topic, partition = where
            known = self.topics.get(topic)
            if self.faults[where]:
                fault = self.faults[where].popleft()
                if fault.code != 0:
                    leads = known is not None and known.partitions[partition].leader == request.broker.node.id
                    if fault.written and leads:
                        self.logs[where].append(batch)
                    answers[where] = fault
                    continue
            if known is None and request.version >= FIRST_BY_ID:
                answers[where] = Answer(UNKNOWN_TOPIC_ID)
            elif known is None or partition >= len(known.partitions):
                answers[where] = Answer(UNKNOWN_TOPIC)
            elif known.partitions[partition].leader != request.broker.node.id:
                answers[where] = Answer(NOT_LEADER)
            elif batch.size > self.max_batch_size:
                answers[where] = Answer(MESSAGE_TOO_LARGE)
            else:
                log = self.logs[where]
                verdict: Verdict = log.append(batch)
                answers[where] = Answer(verdict.code, verdict.base_offset, log_start_offset=log.start)
        return answers

    def init_producer_id(self, request: Received, code: int = 0) -> None:
        """Gives out the next producer id, or the error."""
        module = schema("init_producer_id", request.version, "response")
        given = -1
        if code == 0:
            given, self.next_id = self.next_id, self.next_id + 1
        request.answer(
            make(
                module,
                "InitProducerIdResponse",
                throttle_time=timedelta(0),
                error_code=error_code(code),
                producer_id=given,
                producer_epoch=-1 if code else self.next_epoch,
            ),
            request.broker.delay_ms,
        )
