"""Draining: which batches leave in a turn, and in how many requests.

Of each node that can take a request, everything that is due; what was drained, but could not be sent, goes back.
Sender thread only.
"""

from __future__ import annotations

import math
from typing import Any

import cython
from cython.cimports.forebay._accumulator.accumulator import RecordAccumulator
from cython.cimports.forebay._accumulator.batch import ProducerBatch
from cython.cimports.forebay._accumulator.schedule import ReadyNodes
from cython.cimports.forebay._network.client import NetworkClient
from cython.cimports.forebay._transactions.manager import TransactionManager

INFINITY: cython.double = math.inf


@cython.final
@cython.cclass
class Draining:
    """Takes from the accumulator what the network takes.

    Args:
        transactions: decides whether a partition may be drained and stamps its batches, or None.
        max_request_size: bytes of one request (``max.request.size``); a node that got as many in a turn gets no more.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        client: NetworkClient,
        metadata: Any,
        transactions: TransactionManager | None,
        max_request_size: int,
    ) -> None:
        self.schedule = accumulator.schedule
        self.batches = accumulator.drain
        self.client = client
        self.metadata = metadata
        self.transactions = transactions
        self.max_request_size = max_request_size
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
                    delay = min(delay, self.client.poll_delay(node, now))
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

    @cython.ccall
    def put_back(self, calls: list[Any], now: cython.double) -> object:
        """Lets what was drained, but not sent, wait again; else nobody would know of it."""
        batch: ProducerBatch
        for _, batches, _ in calls:
            for batch in batches:
                if not batch.in_flight and not batch.done:
                    self.schedule.reenqueue(batch, now, self.transactions)
        return None
