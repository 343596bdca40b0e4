"""A partition read back: from an offset to the end, or its last records from the end backwards.

What readers of committed records see: no control batches, nothing of aborted transactions, and nothing from the
first open transaction on.  Offsets may have gaps (markers, aborted records, compaction), so counting back from the
end is a guess that grows until there is enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from forebay._protocol.fetch import AbortedTransaction, FetchResponse, decode_fetch, encode_fetch
from forebay._protocol.list_offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    decode_list_offsets,
    encode_list_offsets,
)
from forebay._protocol.metadata import MetadataResponse, decode_metadata, encode_metadata
from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay._records.decoded import Batch, ControlType, EndTransactionMarker
from forebay._records.reader import read_batches
from forebay.admin._session import AdminSession, Deadline, Question, raise_for
from forebay.errors import (
    KafkaTimeoutError,
    LeaderNotAvailableError,
    ProtocolError,
    RefreshRetriableError,
    UnknownTopicOrPartitionError,
    error_for,
)
from forebay.model import Node, TailRecord, TopicPartition

_OFFSET_OUT_OF_RANGE = 1
_OFFSET_NOT_AVAILABLE = 78
# The first version that can be told not to create the topic.
_WITHOUT_CREATION = 4
_MAX_BYTES = 1 << 20
_MAX_WAIT_MS = 500
_EMPTY_ANSWERS = 3
"""A broker with nothing left below the end says so at once; one that waits for remote storage, perhaps twice."""
_FIRST_STEP = 32
_GROWTH = 8


def committed(batches: Iterable[Batch], aborted: Iterable[AbortedTransaction]) -> Iterator[Batch]:
    """The batches of one answer without those of aborted transactions and without markers.

    Args:
        aborted: what the broker said beside them, in any order.
    """
    ahead = deque(sorted(aborted, key=lambda one: one.first_offset))
    aborting: set[int] = set()
    for batch in batches:
        while ahead and ahead[0].first_offset <= batch.last_offset:
            aborting.add(ahead.popleft().producer_id)
        if batch.is_control:
            if _ends_in_abort(batch):
                aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            yield batch


def _ends_in_abort(batch: Batch) -> bool:
    # A marker may have been emptied by compaction; control batches of other kinds belong to no transaction.
    if not batch.is_transactional or not batch.records:
        return False
    return EndTransactionMarker.parse(batch.records[0]).type is ControlType.ABORT


class PartitionReader:
    """One partition, read through its leader.

    Args:
        isolation: ``READ_COMMITTED`` or ``READ_UNCOMMITTED`` of ``_protocol.list_offsets``.
    """

    def __init__(self, session: AdminSession, where: TopicPartition, isolation: int) -> None:
        self.session = session
        self._where = where
        self._isolation = isolation
        self._leader: Node | None = None

    def end(self, deadline: Deadline) -> int:
        """The offset behind the last record that may be read now."""
        return self._offset(LATEST, deadline)

    def start(self, deadline: Deadline) -> int:
        """The first offset that is kept."""
        return self._offset(EARLIEST, deadline)

    def tail(self, count: int, deadline: Deadline) -> list[TailRecord]:
        """The last ``count`` records, oldest first; fewer if there are not so many."""
        end, start = self.end(deadline), self.start(deadline)
        found: deque[TailRecord] = deque()
        step = max(_FIRST_STEP, 2 * count)
        high = end
        while high > start and len(found) < count:
            low = max(start, high - step)
            piece = deque(self._between(low, high, deadline), maxlen=count - len(found))
            found.extendleft(reversed(piece))
            high = low
            step *= _GROWTH
        return list(found)

    def step(self, position: int, end: int, deadline: Deadline) -> tuple[list[TailRecord], int]:
        """Records from ``position`` on and below ``end``, as many as one answer brings, and where to go on."""
        empty = 0
        while empty < _EMPTY_ANSWERS:
            response = self._fetch(position, end, deadline)
            if response is None:
                return [], max(position, self.start(deadline))
            batches = read_batches(response.records, partial=True)
            if batches:
                return self._readable(response, batches, position, end)
            if response.records:
                raise ProtocolError(f"Fetch: {self._where} at offset {position} has a batch that is cut short")
            # An empty answer with a throttle time is the quota's, and says nothing of the log (KIP-219).
            empty += response.throttle_time_ms == 0
        # Compaction left nothing up to the end.
        return [], end

    def _readable(
        self, response: FetchResponse, batches: list[Batch], position: int, end: int
    ) -> tuple[list[TailRecord], int]:
        after = batches[-1].last_offset + 1
        if after <= position:
            raise ProtocolError(f"Fetch: {self._where} at offset {position} was answered with records before it")
        if self._isolation == READ_COMMITTED:
            chosen = committed(batches, response.aborted)
        else:
            chosen = (batch for batch in batches if not batch.is_control)
        return [
            TailRecord(record.offset, record.timestamp, record.key, record.value, record.headers)
            for batch in chosen
            for record in batch.records
            if position <= record.offset < end
        ], after

    def _between(self, low: int, high: int, deadline: Deadline) -> Iterator[TailRecord]:
        while low < high:
            records, low = self.step(low, high, deadline)
            yield from records

    def _offset(self, which: int, deadline: Deadline) -> int:
        question = Question(
            ApiKey.LIST_OFFSETS,
            lambda version: encode_list_offsets(version, self._where, which, self._isolation),
            decode_list_offsets,
        )
        answer = self.session.retry(deadline, lambda: self._at_leader(question, deadline))
        return int(answer.offset)

    def _fetch(self, position: int, end: int, deadline: Deadline) -> FetchResponse | None:
        """None if what is at ``position`` is not kept any more.

        A new leader's high watermark may lag behind the last one's for a moment, and so before ``end``.  That is not
        the end of the log: it is asked again.
        """
        question = Question(
            ApiKey.FETCH,
            lambda version: encode_fetch(
                version,
                self._where,
                position,
                isolation=self._isolation,
                max_bytes=_MAX_BYTES,
                max_wait_ms=_MAX_WAIT_MS,
            ),
            decode_fetch,
        )

        def attempt() -> FetchResponse | None:
            response: FetchResponse = self._at_leader(question, deadline, _OFFSET_OUT_OF_RANGE)
            if response.error_code:
                return None
            if not response.records and not response.throttle_time_ms and self._shown(response) < end:
                raise_for(_OFFSET_NOT_AVAILABLE, where=self._where, shown=self._shown(response), end=end)
            return response

        response = self.session.retry(deadline, attempt)
        if response is None and self.start(deadline) <= position:
            # Above the end: the log was cut back, and what was read of it may be gone.
            raise_for(_OFFSET_OUT_OF_RANGE, where=self._where, offset=position)
        return response

    def _shown(self, response: FetchResponse) -> int:
        """Up to where the leader lets readers see its log now."""
        return response.last_stable_offset if self._isolation == READ_COMMITTED else response.high_watermark

    def _at_leader(self, question: Question, deadline: Deadline, *allowed: int) -> Any:
        try:
            if self._leader is None:
                self._leader = self._find_leader(deadline)
            answer = self.session.ask(self._leader, question, deadline)
            if answer.error_code not in allowed:
                raise_for(answer.error_code, where=self._where, node=self._leader.id)
            return answer
        except (RefreshRetriableError, KafkaTimeoutError):
            self._leader = None
            raise

    def _find_leader(self, deadline: Deadline) -> Node:
        topic = self._where.topic
        question = Question(
            ApiKey.METADATA,
            # Not by the session's own metadata: to want a topic there would create it.
            lambda version: encode_metadata(version, [topic], allow_auto_topic_creation=False),
            decode_metadata,
            (_WITHOUT_CREATION, SUPPORTED[ApiKey.METADATA][1]),
        )
        answer = self.session.ask(self.session.any_node(deadline), question, deadline)
        return leader_of(answer, self._where)


def leader_of(answer: MetadataResponse, where: TopicPartition) -> Node:
    """The leader as one answer has it.

    Raises:
        KafkaError: the topic's or partition's error; LeaderNotAvailableError without a leader.
    """
    for topic in answer.topics:
        if topic.name != where.topic:
            continue
        raise_for(topic.error_code, topic=where.topic)
        for found in topic.partitions:
            if found.partition == where.partition:
                leader = next((node for node in answer.brokers if node.id == found.leader_id), None)
                if leader is None:
                    raise error_for(found.error_code) or LeaderNotAvailableError(where=where)
                return leader
        raise UnknownTopicOrPartitionError(
            f"Topic {where.topic} has {len(topic.partitions)} partitions, none is {where.partition}"
        )
    raise UnknownTopicOrPartitionError(topic=where.topic)
