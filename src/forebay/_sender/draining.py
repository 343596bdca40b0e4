"""Draining: the batches of a turn, from the accumulator to requests that are ready to be built.

Each node that can take a request gets everything that is due.  All batches are compressed before the first request is
built.  Batches that were drained but could not be sent go back into their queues.  Sender's thread only.

What goes to a node, by the *sparse* batches in flight to it, which were drained while they could take more records:

| In flight | A sparse batch | A full one, one sent before, any for a flush, a close or a commit |
|---|---|---|
| fewer than ``max.sparse.batches.in.flight`` | goes once it lingered | goes |
| as many or more | waits for an answer, and grows | goes |

The road not taken: to let a full request of sparse batches go.  With 10,000 partitions every request is full.
"""

from __future__ import annotations

import math
from typing import Any

import cython

from forebay._accumulator.accumulator import RecordAccumulator
from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.schedule import ReadyNodes
from forebay._network.client import NetworkClient
from forebay._sender.outcomes import OutcomeHandler
from forebay._transactions.manager import TransactionManager
from forebay.errors import KafkaError

INFINITY: cython.double = math.inf


@cython.final
@cython.cclass
class SparseInFlight:
    """How many sparse batches are in flight to a node."""

    def __init__(self, node_id: cython.int) -> None:
        self.node_id = node_id
        self.count = 0


@cython.final
@cython.cclass
class Draining:
    """Takes from the accumulator what the network can take.

    Args:
        transactions: decides whether a partition may be drained and stamps its batches, or None.
        outcomes: told of a batch that cannot be compressed.
        options: of the sender.  ``max_request_size`` is most bytes for one node in one turn, too.  While ``max_sparse``
            sparse batches are in flight to a node, it gets none that gains by waiting; 0 is no limit.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        client: NetworkClient,
        metadata: Any,
        transactions: TransactionManager | None,
        outcomes: OutcomeHandler,
        options: Any,
    ) -> None:
        self.schedule = accumulator.schedule
        self.batches = accumulator.drain
        self.client = client
        self.metadata = metadata
        self.transactions = transactions
        self.max_request_size, self.max_sparse = options.max_request_size, options.max_sparse
        self.sparse: dict[int, SparseInFlight] = {}
        self.latest = SparseInFlight(-1)
        self.outcomes = outcomes
        self.closer = accumulator.closer
        self.compresses = accumulator.closer.codec_id != 0

    @cython.cfunc
    @cython.exceptval(-2)
    def collect(self, found: ReadyNodes, calls: list[Any], now: cython.double) -> cython.double:
        """Adds (node, batches, prompt) to ``calls`` for each request that can go; ms until a node may be ready.

        ``prompt`` says that the turn is to end once the request is written, because more can follow it.
        """
        delay: cython.double = INFINITY
        self.batches.begin()
        if len(found.nodes) == 0:
            return delay  # as in most turns: the picture of the cluster is not asked for
        cluster = self.metadata.cluster()
        for node_id in found.nodes:
            node = cluster.node(node_id)
            if node is None or not self.client.ready(node, now):
                if node is not None:
                    # At least 1: an attempt that fails at once may have no back-off (reconnect.backoff.ms).
                    delay = min(delay, max(1.0, self.client.states.poll_delay(node.id, now)))
                    self.schedule.loads.update_node_latency(node_id, now, False)
                continue
            self.schedule.loads.update_node_latency(node_id, now, True)
            held: cython.bint = self.holds(node_id)
            if held and (found.ripe is None or node_id not in found.ripe):
                continue  # an answer ends the wait
            self.batches.ripe_only = held
            self.drain(node_id, calls, now)
        self.batches.ripe_only = False
        return delay

    @cython.cfunc
    @cython.exceptval(-1)
    def holds(self, node_id: cython.int) -> cython.bint:
        """Whether batches that gain by waiting are held back until the node answers."""
        found: SparseInFlight
        if self.max_sparse <= 0:
            return False
        found = self.sparse_of(node_id)
        return bool(found.count >= self.max_sparse)

    @cython.cfunc
    def sparse_of(self, node_id: cython.int) -> SparseInFlight:
        """The count of a node; most often it is the node that was asked for before."""
        found: SparseInFlight = self.latest
        if found.node_id != node_id:
            found = self.sparse.get(node_id)  # type: ignore[assignment]
            if found is None:
                found = self.sparse[node_id] = SparseInFlight(node_id)
            self.latest = found
        return found

    @cython.cfunc
    @cython.exceptval(-1)
    def count_sparse(self, batch: ProducerBatch, change: cython.int) -> cython.int:
        """A batch went out to its ``last_node`` (1) or has its answer (-1)."""
        if batch.sparse:
            found: SparseInFlight = self.sparse_of(batch.last_node)
            found.count += change
        return 0

    @cython.cfunc
    def drain(self, node_id: cython.int, calls: list[Any], now: cython.double) -> object:
        """Adds the requests that can go to a node which is ready."""
        # A turn costs two hand-overs of the GIL, so one turn sends all that is due and that the node takes.  With a
        # codec it sends one request: the first would leave only when the batches of all requests are compressed.
        slots: cython.int = 1 if self.compresses else self.client.slots(node_id, now)
        room: cython.Py_ssize_t = self.max_request_size
        more: cython.bint = True
        batch: ProducerBatch
        while more and slots > 0 and room > 0:
            batches: list[Any] = self.batches.drain(node_id, room, now, self.transactions)
            if len(batches) == 0:
                break
            slots -= 1
            more = self.batches.more
            for batch in batches:
                room -= batch.estimated_size()
            if self.batches.cut_short:
                room = 0  # the rest would have little room; in the next turn it can go in a whole request
            # With no slot left, an answer ends the turn.
            prompt: cython.bint = more and (self.compresses or (slots > 0 and room <= 0))
            calls.append((node_id, batches, prompt))
        return None

    @cython.cfunc
    def close(self, calls: list[Any], now: cython.double) -> list[Any]:
        """Makes the bytes of all batches final; a batch that cannot be compressed fails alone and is left out."""
        closed: cython.bint = False
        try:
            self.closer.close_drained([batch for _, batches, _ in calls for batch in batches])
            closed = True
        except Exception:  # noqa: BLE001 - from a codec, or no memory
            pass
        if closed:
            return calls
        # Each batch is tried alone.
        left = [(node_id, [batch for batch in some if self._closes(batch, now)], more) for node_id, some, more in calls]
        return [call for call in left if call[1]]

    def _closes(self, batch: ProducerBatch, now: cython.double) -> bool:
        error: Any = None
        try:
            self.closer.close_batch(batch)
        except Exception as cause:  # noqa: BLE001 - the batch fails with it
            # No return in here: see ``OutcomeHandler._split``.
            error = KafkaError(
                f"Cannot compress {batch.record_count} record(s) for {batch.topic}-{batch.partition}: {cause!r}"
            )
            error.__cause__ = cause
        if error is None:
            return True
        if self.transactions is not None:
            self.transactions.on_failed(batch, error, True)
        self.outcomes.fail(batch, error, None, now)
        return False

    @cython.ccall
    def put_back(self, calls: list[Any], now: cython.double) -> object:
        """Puts batches that were drained but not sent back into their queues, or they would be lost."""
        batch: ProducerBatch
        for _, batches, _ in calls:
            for batch in batches:
                if not batch.in_flight and not batch.done:
                    self.schedule.reenqueue(batch, now, self.transactions)
        return None
