"""What a topic of the embedded broker holds, as readers of committed records would see it.

The embedded broker shows readers what was aborted, and its markers at the end of a transaction have no checksum.  Both
are made up for here: a marker gets its checksum, and records count once the marker of their commit was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from forebay._protocol.fetch import FetchResponse
from forebay._protocol.list_offsets import READ_UNCOMMITTED
from forebay._protocol.metadata import MetadataResponse, decode_metadata, encode_metadata
from forebay._protocol.versions import ApiKey
from forebay._records.batch_v2 import checksum
from forebay._records.decoded import Batch, ControlType, EndTransactionMarker, Record
from forebay._records.layout import CONTROL_BIT, MAGIC_AT, MAGIC_V2, V2_ATTRIBUTES_AT, V2_CRC_AT
from forebay._records.reader import next_batch_size
from forebay.admin import AdminClient
from forebay.admin._session import AdminSession, Deadline, Question, raise_for
from forebay.admin._tail import PartitionReader
from forebay.errors import UnknownTopicOrPartitionError
from forebay.model import TailRecord, TopicPartition
from forebay.model._wire import shown_record

if TYPE_CHECKING:
    from forebay._runtime.times import Seconds


class ReadRecord(NamedTuple):
    """A record as it was read back; ``timestamp`` in Unix ms, -1 if it has none."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def __repr__(self) -> str:
        facts = {"topic": self.topic, "partition": self.partition, "offset": self.offset, "timestamp": self.timestamp}
        return shown_record("ReadRecord", self.value, self.key, self.headers, **facts)


def read_topic(
    admin: AdminClient, topic: str, partition: int | None, committed: bool, timeout: Seconds
) -> list[ReadRecord]:
    """The records of a topic, or of one partition: by partition, then by offset.

    Args:
        committed: without what was aborted and without what is in an open transaction.
        timeout: seconds, for each partition.

    Raises:
        TimeoutError: it is not there, nobody leads it, or no broker answers; the cause says which.
    """
    found: list[ReadRecord] = []
    with admin._call("records", timeout) as (session, deadline):
        wanted = _partitions(session, topic, deadline) if partition is None else [partition]
    for number in wanted:
        where = TopicPartition(topic, number)
        with admin._call("records", timeout) as (session, deadline):
            batches = _BatchReader(session, where).all(deadline)
        seen = _committed(batches) if committed else (batch for batch in batches if not batch.is_control)
        records = sorted((record for batch in seen for record in batch.records), key=lambda record: record.offset)
        found += [_read(where, record) for record in records]
    return found


def _read(where: TopicPartition, record: Record) -> ReadRecord:
    return ReadRecord(*where, record.offset, record.timestamp, record.key, record.value, record.headers)


def _partitions(session: AdminSession, topic: str, deadline: Deadline) -> list[int]:
    question = Question(ApiKey.METADATA, lambda version: encode_metadata(version, [topic]), decode_metadata)

    def attempt() -> list[int]:
        answer: MetadataResponse = session.ask(session.any_node(deadline), question, deadline)
        known = next((one for one in answer.topics if one.name == topic), None)
        if known is not None:
            raise_for(known.error_code, topic=topic)
        if known is None or not known.partitions:
            raise UnknownTopicOrPartitionError(f"Topic {topic} is not there", topic=topic)
        return sorted(one.partition for one in known.partitions)

    # What was lost since the last call, for the node was down, is no error of this one.
    return session.retry(deadline, attempt)


class _BatchReader(PartitionReader):
    """Keeps batches as they are stored."""

    def __init__(self, session: AdminSession, where: TopicPartition) -> None:
        super().__init__(session, where, READ_UNCOMMITTED)
        self._batches: list[Batch] = []

    def all(self, deadline: Deadline) -> list[Batch]:
        """From the first offset to the end as it is now."""
        at, end = self.start(deadline), self.end(deadline)
        while at < end:
            _, at = self.step(at, end, deadline)
        return self._batches

    def _fetch(self, position: int, end: int, deadline: Deadline) -> FetchResponse | None:
        response = super()._fetch(position, end, deadline)
        return None if response is None else response._replace(records=_with_checksums(response.records))

    def _readable(
        self, response: FetchResponse, batches: list[Batch], position: int, end: int
    ) -> tuple[list[TailRecord], int]:
        self._batches += (batch for batch in batches if batch.base_offset < end)
        return super()._readable(response, batches, position, end)


def _with_checksums(records: bytes) -> bytes:
    """The same batches; a control batch without a checksum has it."""
    found = bytearray(records)
    at = 0
    while (size := next_batch_size(records, at)) is not None and at + size <= len(records):
        if records[at + MAGIC_AT] == MAGIC_V2 and records[at + V2_ATTRIBUTES_AT + 1] & CONTROL_BIT:
            crc = slice(at + V2_CRC_AT, at + V2_ATTRIBUTES_AT)
            if not any(records[crc]):
                found[crc] = checksum(records[at + V2_ATTRIBUTES_AT : at + size]).to_bytes(4, "big")
        at += size
    return bytes(found)


def _committed(batches: Iterable[Batch]) -> Iterator[Batch]:
    open_by_producer: dict[int, list[Batch]] = {}
    for batch in batches:
        if batch.is_control:
            ended = open_by_producer.pop(batch.producer_id, [])
            if EndTransactionMarker.parse(batch.records[0]).type is ControlType.COMMIT:
                yield from ended
        elif batch.is_transactional:
            open_by_producer.setdefault(batch.producer_id, []).append(batch)
        else:
            yield batch
