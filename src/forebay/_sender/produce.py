"""Produce requests from drained batches, and what a broker's answer means for each of them.

``ProduceCall`` is one request.  It holds the batches' memory until the connection no longer needs it.  ``outcomes``
applies the answers.
"""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._protocol.produce import encode_produce
from cython.cimports.forebay._protocol.versions import FIRST_PRODUCE_BY_ID, NEWEST_PRODUCE
from cython.cimports.forebay._records.layout import BATCH_OVERHEAD, CODEC_ZSTD

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.pool import Buffer
from forebay._protocol.produce import PartitionRecords
from forebay._protocol.produce_response import PartitionResponse
from forebay.errors import (
    ClusterAuthorizationError,
    DuplicateSequenceError,
    InvalidRecordError,
    KafkaError,
    RecordTooLargeError,
    TopicAuthorizationError,
    UnsupportedCompressionTypeError,
    UnsupportedVersionError,
    error_for,
)
from forebay.errors._base import printable
from forebay.model import TopicPartition

FIRST_V1 = cython.declare(cython.int, 2)
FIRST_V2 = cython.declare(cython.int, 3)
FIRST_ZSTD = cython.declare(cython.int, 7)

LEADER_MOVED = (6, 74)
"""NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH may name the new leader (KIP-951)."""


@cython.freelist(8)
@cython.cclass
class ProduceCall:
    """The batches of one request to one node; sender's thread only."""

    def __init__(
        self,
        node_id: cython.int,
        batches: list[ProducerBatch],
        drained: cython.double,
        *,
        acks: cython.int,
        timeout_ms: cython.int,
        compressor: Any,
        transactional_id: str | None = None,
    ) -> None:
        self.set_up(node_id, batches, drained, acks, timeout_ms, compressor, transactional_id)

    @cython.cfunc
    def set_up(
        self,
        node_id: cython.int,
        batches: list[Any],
        drained: cython.double,
        acks: cython.int,
        timeout_ms: cython.int,
        compressor: Any,
        transactional_id: str | None,
    ) -> object:
        """What the constructor does, without the cost of its keywords."""
        self.node_id = node_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.batches = batches
        self.drained = drained
        self.compressor = compressor
        self.transactional_id = transactional_id
        self.newest = NEWEST_PRODUCE
        self.held: list[Any] = []
        # Batches that a request of the broker's version cannot carry, and why.  They are left out of it.
        self.refused: dict[ProducerBatch, KafkaError] | None = None
        batch: ProducerBatch
        for batch in batches:
            batch.records.hold(self.held)
            if batch.topic_id is None:
                self.newest = FIRST_PRODUCE_BY_ID - 1
        return None

    @cython.cfunc
    def refusal(self, batch: ProducerBatch, otherwise: Any) -> Any:
        """Why the batch was left out of the request; ``otherwise`` if it was not."""
        return otherwise if self.refused is None else self.refused.get(batch, otherwise)

    def build(self, version: cython.int) -> list[Any]:
        """The request's body, record bytes not copied; a batch that this version cannot carry is left out.

        Raises:
            KafkaError: it can carry none of them.  It is the error of the first; ``refused`` has all.
        """
        entries: list[Any] = []
        refused: dict[ProducerBatch, KafkaError] | None = None
        batch: ProducerBatch
        for batch in self.batches:
            try:
                entries.append(self.entry(batch, version))
            except KafkaError as error:
                refused = {} if refused is None else refused
                refused[batch] = error
        if refused is not None:
            self.refused = refused
            if len(entries) == 0:
                raise refused[self.batches[0]]
        return encode_produce(version, self.transactional_id, self.acks, self.timeout_ms, entries)

    @cython.cfunc
    def entry(self, batch: ProducerBatch, version: cython.int) -> PartitionRecords:
        if batch.records.codec_id == CODEC_ZSTD and version < FIRST_ZSTD:
            raise UnsupportedCompressionTypeError(
                f"The broker speaks Produce up to version {version}, but zstd needs version {FIRST_ZSTD} "
                "(Kafka 2.1); choose another compression.type",
                node=self.node_id,
            )
        if version < FIRST_PRODUCE_BY_ID:
            batch.by_name = True
        if version < FIRST_V2:
            return self._legacy_entry(batch, version)
        # Not by the constructor, whose arguments would cost more than the entry.
        entry: PartitionRecords = PartitionRecords.__new__(PartitionRecords)
        entry.topic = batch.queue.topic
        entry.topic_id = batch.topic_id
        entry.partition = batch.queue.partition
        entry.header = batch.header()
        entry.buffers = batch.records.payload
        entry.size = BATCH_OVERHEAD + batch.records.payload_size
        return entry

    def _legacy_entry(self, batch: ProducerBatch, version: int) -> PartitionRecords:
        # Record formats v0 and v1, for brokers before 0.11: the batch is read back and written again.
        if batch.has_sequence():
            raise UnsupportedVersionError(
                f"The broker speaks Produce up to version {version}, which knows no idempotence (Kafka 0.11); set "
                "enable.idempotence=false to write to it",
                node=self.node_id,
            )
        section = b"".join(bytes(piece) for piece in (batch.header(), *batch.records.payload))
        # Imported here, because only brokers before 0.11 need the modules that read records.
        from forebay._records.batch_legacy import convert_v2
        from forebay._records.reader import read_batches

        records = read_batches(section)[0].records
        message_set = convert_v2(records, magic=0 if version < FIRST_V1 else 1, compressor=self.compressor)
        return PartitionRecords(batch.topic, batch.partition, b"", [message_set], len(message_set))

    @cython.ccall
    def release(self) -> cython.void:
        """The connection no longer needs the bytes (it has the answer, or is closed); idempotent."""
        held: list[Any] = self.held
        self.held = []
        buffer: Buffer
        for buffer in held:
            buffer.release()


@cython.ccall
def match(batches: list[Any], answers: list[Any]) -> list[Any]:
    """For each batch the answer for its partition, or None if the broker left it out.

    An answer that names a topic by its id gets the topic's name from the batch with that id, because metadata may know
    another topic of that name by now.
    """
    if in_step(batches, answers):
        return answers
    by_partition = {(answer.topic_id or answer.topic, answer.partition): answer for answer in answers}
    found: list[Any] = []
    for batch in batches:
        answer = by_partition.get((batch.topic, batch.partition)) or by_partition.get((batch.topic_id, batch.partition))
        found.append(answer if answer is not None and is_about(answer, batch) else None)
    return found


@cython.cfunc
@cython.exceptval(-1)
def is_about(answer: PartitionResponse, batch: ProducerBatch) -> cython.bint:
    # If it is, it also gets the topic's name.
    if answer.partition != batch.queue.partition:
        return False
    if answer.topic_id is None:
        return answer.topic == batch.queue.topic  # type: ignore[no-any-return]
    if answer.topic_id != batch.topic_id:
        return False
    answer.topic = batch.queue.topic
    return True


@cython.cfunc
def in_step(batches: list[Any], answers: list[Any]) -> cython.bint:
    batch: ProducerBatch
    answer: PartitionResponse
    at: cython.Py_ssize_t
    if len(batches) != len(answers):
        return False
    for at in range(len(batches)):
        batch = batches[at]
        answer = answers[at]
        if not is_about(answer, batch):
            return False
    return True


def moved_leader(
    answer: PartitionResponse, hints: Any, sent_to: bytes | None, known: bytes | None
) -> dict[TopicPartition, tuple[int, int]] | None:
    """``hints`` with the new leader that a refusal names.

    Args:
        sent_to: the topic's id when the batch was sent, None if it was not known.
        known: the topic's id in metadata now.  A topic that was created again begins with low epochs, and would keep a
            leader of the previous one.
    """
    if answer.error_code not in LEADER_MOVED or answer.leader_id < 0 or answer.leader_epoch < 0:
        return hints  # type: ignore[no-any-return]
    if sent_to is not None and known is not None and sent_to != known:
        return hints  # type: ignore[no-any-return]
    found: dict[TopicPartition, tuple[int, int]] = {} if hints is None else hints
    found[TopicPartition(answer.topic, answer.partition)] = (answer.leader_id, answer.leader_epoch)
    return found


def error_in(answer: PartitionResponse) -> KafkaError | None:
    """The error of one partition's answer; None for success.

    A duplicate is a success, because an earlier attempt wrote the records.
    """
    code: cython.int = answer.error_code
    if code == 0 or code == DuplicateSequenceError.code:
        return None
    where = TopicPartition(answer.topic, answer.partition)
    if code == TopicAuthorizationError.code:
        return TopicAuthorizationError(f"Not authorized to access topics: [{answer.topic}]", topic=answer.topic)
    if code == ClusterAuthorizationError.code:
        return ClusterAuthorizationError("The producer is not authorized to do idempotent sends")
    if code == RecordTooLargeError.code:
        return RecordTooLargeError(
            printable(answer.error_message or "")
            or f"The broker refused a batch for {where} as larger than its message.max.bytes (or the topic's "
            "max.message.bytes)"
        )
    return error_for(code, answer.error_message, partition=str(where))


def record_errors_in(answer: PartitionResponse, error: KafkaError) -> tuple[KafkaError, dict[int, KafkaError] | None]:
    """The error of the batch's other records, and the errors of single records by index (KIP-467).

    The partition's error is that of a single record only if the broker names no other record.
    """
    if not answer.record_errors:
        return error, None
    single = len(answer.record_errors) == 1
    kind = type(error) if single else InvalidRecordError
    where = f"{answer.topic}-{answer.partition}"
    errors = {
        index: kind(printable(message or answer.error_message or error.message), partition=where)
        for index, message in answer.record_errors
    }
    rest = KafkaError(
        "Failed to append record because it was part of a batch which had one more more invalid records",
        partition=where,
        invalid_records=len(errors),
    )
    return rest, errors
