"""What this package needs of the accumulator's batches and queues, as protocols.

The two packages are siblings and do not import each other: the accumulator calls its gate, and the gate sees
batches and queues only through these attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class GatedQueue(Protocol):
    """A partition's queue, with a slot for the gate's state, so that no batch costs a dictionary look-up."""

    gate_state: Any

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...


class StampedBatch(Protocol):
    """A batch and its stamp; ``base_sequence`` is -1 until it was stamped."""

    @property
    def queue(self) -> Any: ...

    @property
    def record_count(self) -> int: ...

    @property
    def producer_id(self) -> int: ...

    @property
    def producer_epoch(self) -> int: ...

    @property
    def base_sequence(self) -> int: ...

    def set_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int, transactional: bool, /
    ) -> None: ...


class Gate(Protocol):
    """Decides which batches may be sent now, and stamps them; called on the sender thread only."""

    def may_drain(self, queue: GatedQueue, batch: StampedBatch, /) -> bool:
        """Whether ``batch``, the head of ``queue``, may be sent now; if not, the partition is skipped."""
        ...

    def stamp(self, queue: GatedQueue, batch: StampedBatch, /) -> None:
        """Called at every drain of ``batch``; gives it its sequence at the first."""
        ...

    def comes_before(self, batch: StampedBatch, other: StampedBatch, /) -> bool:
        """Whether a re-enqueued ``batch`` must stand ahead of ``other`` in their queue."""
        ...

    def on_split(self, batch: StampedBatch, children: Sequence[StampedBatch], /) -> None:
        """``children`` take the place and the sequences of ``batch``."""
        ...
