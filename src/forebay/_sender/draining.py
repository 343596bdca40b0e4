"""Draining: the batches of a turn, from the accumulator to requests that are ready to be built.

Each node that can take a request gets everything that is due.  The batches are compressed and their bytes final before
the first request is built.  What was drained, but could not be sent, goes back.  Sender's thread only.
"""

from __future__ import annotations

import math
from typing import Any

import cython
from cython.cimports.forebay._accumulator.accumulator import RecordAccumulator
from cython.cimports.forebay._accumulator.batch import ProducerBatch
from cython.cimports.forebay._accumulator.schedule import ReadyNodes
from cython.cimports.forebay._network.client import NetworkClient
from cython.cimports.forebay._sender.outcomes import BatchOutcomes
from cython.cimports.forebay._transactions.manager import TransactionManager

from forebay.errors import KafkaError

INFINITY: cython.double = math.inf


@cython.final
@cython.cclass
class Draining:
    """Takes from the accumulator what the network takes.

    Args:
        transactions: decides whether a partition may be drained and stamps its batches, or None.
        outcomes: told of a batch that cannot be compressed.
        max_request_size: bytes of one request (``max.request.size``); a node that got as many in a turn gets no more.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        client: NetworkClient,
        metadata: Any,
        transactions: TransactionManager | None,
        outcomes: BatchOutcomes,
        max_request_size: int,
    ) -> None:
        self.schedule = accumulator.schedule
        self.batches = accumulator.drain
        self.client = client
        self.metadata = metadata
        self.transactions = transactions
        self.max_request_size = max_request_size
        self.outcomes = outcomes
        self.closer = accumulator.closer
        self.compresses = accumulator.closer.codec_id != 0

    @cython.cfunc
    @cython.exceptval(-2)
    def collect(self, found: ReadyNodes, calls: list[Any], now: cython.double) -> cython.double:
        """Adds (node, batches, prompt) to ``calls`` for each request that can go; ms until a node is worth asking.

        ``prompt`` says that the turn is to end once the request is written, for more can follow it.
        """
        delay: cython.double = INFINITY
        self.batches.begin()
        cluster = self.metadata.cluster()
        for node_id in found.nodes:
            node = cluster.node(node_id)
            if node is None or not self.client.ready(node, now):
                if node is not None:
                    delay = min(delay, self.client.states.poll_delay(node.id, now))
                    self.schedule.loads.update_node_latency(node_id, now, False)
                continue
            self.schedule.loads.update_node_latency(node_id, now, True)
            self.drain(node_id, calls, now)
        return delay

    @cython.cfunc
    def drain(self, node_id: cython.int, calls: list[Any], now: cython.double) -> object:
        """Adds the requests that can go to a node which is ready."""
        # A turn costs two hand-overs of the GIL, so what is due does not wait for the next one while the node takes it.
        # With a codec it does: the first request would leave only when the batches of all of them are compressed.
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
                room = 0  # the rest would hold little; in the next turn a whole request of it can go
            # With no slot left it is an answer that ends the turn.
            prompt: cython.bint = more and (self.compresses or (slots > 0 and room <= 0))
            calls.append((node_id, batches, prompt))
        return None

    @cython.cfunc
    def close(self, calls: list[Any], now: cython.double) -> list[Any]:
        """Makes the bytes of all batches final; a batch that cannot be compressed fails alone and is left out."""
        try:
            self.closer.close_batches([batch for _, batches, _ in calls for batch in batches])
            return calls
        except Exception:  # noqa: BLE001 - a codec's own, or no memory; which batch it was is found below
            left = [
                (node_id, [batch for batch in some if self._closes(batch, now)], more) for node_id, some, more in calls
            ]
            return [call for call in left if call[1]]

    def _closes(self, batch: ProducerBatch, now: cython.double) -> bool:
        try:
            self.closer.close_batch(batch)
        except Exception as cause:  # noqa: BLE001 - the batch fails with it
            error = KafkaError(
                f"Cannot compress {batch.record_count} record(s) for {batch.topic}-{batch.partition}: {cause!r}"
            )
            error.__cause__ = cause
            if self.transactions is not None:
                self.transactions.on_failed(batch, error, True)
            self.outcomes.fail(batch, error, None, now)
            return False
        return True

    @cython.ccall
    def put_back(self, calls: list[Any], now: cython.double) -> object:
        """Lets what was drained, but not sent, wait again; else nobody would know of it."""
        batch: ProducerBatch
        for _, batches, _ in calls:
            for batch in batches:
                if not batch.in_flight and not batch.done:
                    self.schedule.reenqueue(batch, now, self.transactions)
        return None
