"""What another front end is built of: the drop-in classes take all that they need from here.

A front end takes records by a ``SendPath`` of its own (``producer._path``), or holds a ``KafkaProducer`` and calls it.
Beside the public calls it needs five things.

- *Waiting*: ``ThreadTicket`` and ``LoopTicket`` are handles for one wait, ``Clock`` tells the time of all deadlines.
- *Partitions*: ``key_partition``, and ``partition_random`` for records without a key.
- *Outcomes*: ``RecordFuture`` and the ``BatchResult`` that it reads; ``CompiledCallback`` and what is put behind a
  record after its send (``put_added``).
- *Bytes*: sizes of records and headers, a whole batch that is appended as it is, views of what is in ``bytes``.
- *The producer's inside*: ``Inside`` has what a front end may ask of the producer that it holds, and nothing else does.

Compiled front ends cimport the types, functions and values; their list is ``_frontend.pxd``.  Names here may change
with each version; a front end outside of this package pins it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.partitioner import PartitionRandom, key_partition
from forebay._accumulator.topic import TopicState
from forebay._assembly import system_surroundings
from forebay._assembly.user_parts import partition_random
from forebay._delivery.callback_thread import leave_forked_child, report_briefly
from forebay._delivery.callbacks import AddedCallback, CompiledCallback
from forebay._delivery.future import RecordFuture
from forebay._delivery.result import BatchResult
from forebay._delivery.sender_lock import SenderLock
from forebay._interpreted import implementation
from forebay._runtime.clock import Clock, SystemClock
from forebay._runtime.event_loop import CALLS_BETWEEN_LOOKS, LONGEST_RUN_S, LoopTicket, Turn
from forebay._runtime.threads import start_thread
from forebay._runtime.ticket import ThreadTicket
from forebay._sender import lifecycle
from forebay._transactions.state import State

if TYPE_CHECKING:
    from forebay.config import ProducerConfig
    from forebay.model._cluster import Cluster
    from forebay.producer.threads import KafkaProducer

__all__ = [
    "AddedCallback",
    "BatchResult",
    "CALLS_BETWEEN_LOOKS",
    "Clock",
    "CompiledCallback",
    "Inside",
    "LONGEST_RUN_S",
    "LoopTicket",
    "PartitionRandom",
    "ProducerBatch",
    "RecordFuture",
    "SenderLock",
    "State",
    "SystemClock",
    "ThreadTicket",
    "TopicState",
    "Turn",
    "key_partition",
    "leave_forked_child",
    "lifecycle",
    "partition_random",
    "report_briefly",
    "start_thread",
    "system_surroundings",
]

if TYPE_CHECKING or implementation == "interpreted":
    from forebay._accumulator.single_batch import append_whole
    from forebay._accumulator.states import APPENDED
    from forebay._delivery.added import added_callback, put_added, repeat_added
    from forebay._delivery.callbacks import alike
    from forebay._delivery.future import new_future
    from forebay._delivery.hearing import hear
    from forebay._delivery.result import DONE, process_number
    from forebay._records.batch_v2 import encode_headers, record_body_size, record_size, with_plain_headers
    from forebay._records.layout import BATCH_OVERHEAD, MAX_RECORD_OVERHEAD
    from forebay._runtime.memory import is_unshared, put_item
    from forebay._runtime.mutex import Mutex, acquire, release
    from forebay._runtime.primitives import (
        MAX_INT32,
        RecordPointer,
        RecordView,
        SectionRoom,
        bytes_pointer,
        murmur2,
        record_view,
        section_pointer,
        utf8_size,
        view_of,
    )

    __all__ += [
        "APPENDED",
        "BATCH_OVERHEAD",
        "DONE",
        "MAX_INT32",
        "MAX_RECORD_OVERHEAD",
        "Mutex",
        "RecordPointer",
        "RecordView",
        "SectionRoom",
        "acquire",
        "added_callback",
        "alike",
        "append_whole",
        "bytes_pointer",
        "encode_headers",
        "hear",
        "is_unshared",
        "murmur2",
        "new_future",
        "process_number",
        "put_added",
        "put_item",
        "record_body_size",
        "record_size",
        "record_view",
        "release",
        "repeat_added",
        "section_pointer",
        "utf8_size",
        "view_of",
        "with_plain_headers",
    ]


def __dir__() -> list[str]:
    return sorted(__all__)


class Inside:
    """What a front end may ask of the producer that it holds, beside the producer's public calls.  Any thread."""

    def __init__(self, native: KafkaProducer) -> None:
        self._parts = native._parts
        self.clock: Clock = self._parts.clock
        self.config: ProducerConfig = self._parts.config
        self.patience_ms: float = self._parts.config["max.block.ms"]
        """How long a call may wait."""
        self.metadata: Any = self._parts.metadata
        """Waits for topics and for the cluster: ``add_topic``, ``forget``, ``raise_if_failed``, ``last_error``."""
        self.connections: Any = self._parts.client.states
        """The state of each connection; ``on_loss`` is called with the state and the error of one that is lost."""
        self.batches: Any = self._parts.accumulator.incomplete
        """Every batch without an outcome."""

    def cluster(self) -> Cluster:
        """The newest picture of the cluster."""
        found: Cluster = self._parts.metadata.cluster()
        return found

    def ask_for(self, topic: str) -> None:
        """Makes the sender's thread ask for a topic's metadata at once."""
        self._parts.metadata.add_topic(topic, self.clock.now())
        self.wake()

    def wake(self) -> None:
        """Ends the sender's wait, so that it sees what was changed."""
        self._parts.client.wakeup()

    def last_errors(self) -> Sequence[BaseException | None]:
        """Of each broker that is known, why it could not be reached; None where that is not so."""
        return [self.connections.last_error(node.id) for node in self.cluster().nodes]

    def has_unfinished(self) -> bool:
        """Whether a record has no outcome yet."""
        return bool(self._parts.accumulator.has_incomplete())

    def is_sealed(self) -> bool:
        """Whether a transaction is ending, so that no record may join it."""
        return bool(self._parts.accumulator.incomplete_batches.sealed)

    def transaction_state(self) -> State:
        """Of a producer with a transactional.id."""
        session = self._parts.session
        assert session is not None
        return session.dialog.state

    def has_password(self) -> bool:
        """Whether it logs in with a password, which may be changed."""
        return self._parts.login is not None

    def note_refused(self) -> None:
        """Counts a record that was refused before it became part of a batch."""
        self._parts.metrics.record_errors.record(1)

    def note_unheard(self, error: BaseException, count: int) -> None:
        """Counts, for the log, records that failed and that nobody hears of."""
        self._parts.sender.outcomes.unheard.add(error, count, self.clock.now())
