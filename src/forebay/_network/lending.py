"""LentNetwork: what a thread that sends may do with the network while the sender's thread does nothing but wait.

It may queue requests to nodes that are ready, and write them.  Only what needs no interpreted Python is lent, and the
garbage collector is held off meanwhile: a signal's handler or a finaliser that ran here could wait for an outcome, and
so for the very thread that cannot go on before the turn is given back.
"""

from __future__ import annotations

import cython

from forebay._protocol.versions import ApiKey

if cython.compiled:
    from cython.cimports.forebay._codec._collector import pause_collector, resume_collector
    from cython.cimports.forebay._network.channel import Channel
    from cython.cimports.forebay._network.client import NetworkClient
    from cython.cimports.forebay._network.connection import Connection
    from cython.cimports.forebay._network.connection_states import NodeState
else:
    from forebay._codec._collector import pause_collector, resume_collector
    from forebay._network.channel import Channel
    from forebay._network.client import NetworkClient
    from forebay._network.connection import Connection
    from forebay._network.connection_states import NodeState

PRODUCE = cython.declare(cython.int, ApiKey.PRODUCE)


@cython.final
@cython.cclass
class LentNetwork:
    """Any thread calls ``idle`` and ``begin``; the others are for who has begun, until ``end``."""

    def __init__(self, client: NetworkClient) -> None:
        self.client = client
        self.exchange = client._exchange
        self.collected = 0
        self.newest = -1

    @cython.cfunc
    @cython.exceptval(check=False)
    def idle(self) -> cython.bint:
        """Whether no request waits for an answer; a hint."""
        return self.client.in_flight == 0

    @cython.cfunc
    @cython.exceptval(-1)
    def now(self) -> cython.double:
        """The time, as the sender's thread reads it."""
        return self.exchange.now()

    @cython.cfunc
    @cython.exceptval(-1)
    def begin(self) -> cython.bint:
        """Borrows the turn, if it can be had at once."""
        if not self.exchange.borrow():
            return False
        self.collected = pause_collector()
        return True

    @cython.cfunc
    def end(self) -> cython.void:
        """Gives the turn back."""
        resume_collector(self.collected)
        self.exchange.give_back()

    @cython.cfunc
    @cython.exceptval(-1)
    def takes(self, node_id: cython.int, oldest: cython.int, now: cython.double) -> cython.bint:
        """Whether a produce request can go to a node as one of version ``oldest`` or a newer one went before.

        ``newest`` says afterwards which version was the newest that this one could have had.
        """
        client: NetworkClient = self.client
        state: NodeState | None = client._nodes.get(node_id)
        if client.closed or state is None or state.channel is None:
            return False
        if client._updater.query is None and now >= client._picture.due_at:
            return False  # that request goes first
        channel: Channel = state.channel
        connection: Connection = state.connection
        self.newest = connection.learnt_newest(PRODUCE, oldest)
        if not self.exchange.writes(channel) or self.newest < 0:
            return False
        # What the sender's thread has written, and could not come to tell, still counts as queued.
        return self.exchange.write_now(channel, now) and client.can_send(node_id, now)

    @cython.cfunc
    @cython.exceptval(-1)
    def flush(self, node_id: cython.int, now: cython.double) -> cython.bint:
        """Writes what is queued for a node.  False: there is more to do, in a turn."""
        state: NodeState = self.client._nodes[node_id]
        channel: Channel = state.channel
        return self.exchange.write_now(channel, now) and len(self.client._completed) == 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def wakes_by(self, when: cython.double) -> cython.bint:
        """Whether the wait of the turn under way ends by then, and before a request that was sent is overdue."""
        # Sums of the same numbers in another order: a microsecond says that they are equal.
        return self.exchange.until <= min(when, self.client._next_check + 1) + 0.001
