"""LentTurn: the outgoing half of a turn, on a thread that sends.

Beside a thread that computes, the sender's thread gets the GIL after 5 ms or 10; whoever is inside ``send()`` has it.
And where nothing is in flight, waking another thread costs more than the request.  So while the sender's thread waits
(in poll(2), or for the GIL) it lends its turn: what is ready is drained, framed and written here.  Connections,
answers, outcomes, callbacks, logs and whatever is rare stay with the sender's thread, which is woken for them.
"""

from __future__ import annotations

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.forebay._accumulator.batch import ProducerBatch
    from cython.cimports.forebay._accumulator.ready_nodes import ReadyNodes
    from cython.cimports.forebay._accumulator.schedule import BatchSchedule
    from cython.cimports.forebay._accumulator.topic import PartitionQueue
    from cython.cimports.forebay._gate import Gate, GatedQueue, StampedBatch
    from cython.cimports.forebay._mutex import HAS_GIL
    from cython.cimports.forebay._network.lending import LentNetwork
    from cython.cimports.forebay._sender.produce import newest_for
    from cython.cimports.forebay._sender.sender import Sender
    from cython.cimports.forebay._transactions.manager import TransactionManager
else:
    from forebay._accumulator.batch import ProducerBatch
    from forebay._accumulator.ready_nodes import ReadyNodes
    from forebay._accumulator.schedule import BatchSchedule
    from forebay._accumulator.topic import PartitionQueue
    from forebay._gate import Gate, GatedQueue, StampedBatch
    from forebay._mutex import HAS_GIL
    from forebay._network.lending import LentNetwork
    from forebay._sender.produce import newest_for
    from forebay._sender.sender import Sender
    from forebay._transactions.manager import TransactionManager

FIRST_V2 = cython.declare(cython.int, 3)
"""The Produce version from which on batches go as they are."""
NEW = cython.declare(cython.int, 4)  # of what append answers, in accumulator.py
WORTH_WAKING = cython.declare(cython.int, 6)


@cython.final
@cython.cclass
class SeenTopics(Gate):
    """The gate of a lent turn: the sender's, closed for topics of which nothing was sent yet.

    The sender's thread makes a topic's sensors, under the registry's lock and in interpreted Python; and it finds out
    which version a request comes to that names topics by id, or by name, where the last one did the other.
    """

    def __init__(self, transactions: TransactionManager | None) -> None:
        self.transactions = transactions
        self.newest = -1

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def may_drain(self, queue: GatedQueue, batch: StampedBatch) -> cython.bint:
        """See ``Gate``."""
        waiting: PartitionQueue = queue  # type: ignore[assignment]
        head: ProducerBatch = batch  # type: ignore[assignment]
        if waiting.state.sensors is None or newest_for(head) != self.newest:
            return False
        return self.transactions is None or self.transactions.may_drain(queue, batch)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def stamp(self, queue: GatedQueue, batch: StampedBatch) -> cython.int:
        """See ``Gate``."""
        if self.transactions is not None:
            return self.transactions.stamp(queue, batch)
        return 0


@cython.final
@cython.cclass
class LentTurn:
    """Any thread, one at a time: the network's turn is the lock."""

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.claim = sender.claim
        self.network = LentNetwork(sender.client)
        self.gate = SeenTopics(sender.transactions)
        # A codec gives the GIL up in between; a transaction's requests and what needs no answer are more than this.
        self.possible = sender.session is None and sender.acks != 0 and sender.accumulator.closer.codec_id == 0
        self.prompt = self.possible and sender.schedule.linger_ms == 0

    @cython.ccall
    def tell(self, status: cython.int, timestamp: cython.longlong) -> cython.void:
        """What a thread does for the sender at the end of its send: its work, or waking it, or giving way to it.

        Args:
            status: what append answered.
            timestamp: of the record, in ms.
        """
        claimed: cython.bint = self.claim.waiting
        # Nothing is in flight and a batch that does not linger has begun; or the sender cannot come.
        due: cython.bint = status & NEW != 0 and self.prompt and self.network.idle()
        if claimed and (self.claim.beside or self.claim.passed == 0):
            due = self.claim.is_long(self.network.now()) or due
        if due and self.send_ready(self.network.now()):
            status = 0
        # A sender that waits for the GIL looks at all there is when it has it; a word would make it turn once more.
        if status & WORTH_WAKING and not (claimed and HAS_GIL):
            self.sender.client.wakeup()
        if claimed:
            self.claim.pass_by(timestamp)

    @cython.ccall
    @cython.exceptval(-1)
    def send_ready(self, now: cython.double) -> cython.bint:
        """Sends what is ready.

        Returns:
            Whether that was all there is to do; else the sender's thread is to be woken.
        """
        if not self.possible or self.sender.closing or not self.network.begin():
            return False
        try:
            return self.send_all(now)
        except Exception as error:  # noqa: BLE001 - the record was taken: send() must not raise what the sender met
            self.sender.trouble = error
            return False
        finally:
            self.network.end()

    @cython.cfunc
    @cython.exceptval(-1)
    def send_all(self, now: cython.double) -> cython.bint:
        sender: Sender = self.sender
        schedule: BatchSchedule = sender.schedule
        if self.something_first() or now >= schedule.next_expiry_at():
            return False
        found: ReadyNodes = schedule.ready(now, False)
        whole: cython.bint = len(found.nodes) > 0 and found.leaderless is None
        for node_id in found.nodes:
            if not self.send_to(node_id, now):
                whole = False
        delay: cython.double = min(found.next_check, schedule.behind_check)
        return whole and self.network.wakes_by(now + sender._wait_until(now, delay))

    @cython.cfunc
    @cython.exceptval(-1)
    def something_first(self) -> cython.bint:
        # What a turn begins with, where it is not just a look.
        transactions: TransactionManager | None = self.sender.transactions
        if transactions is not None and (not transactions.has_producer_id or transactions.is_in_doubt()):
            return True
        # After trouble the sender's thread mends what there is; nobody takes from it before that.
        torn: cython.bint = self.sender.schedule.torn or self.sender.trouble is not None or self.sender.unsettled
        return torn or self.sender.accumulator.pool.starved()

    @cython.cfunc
    @cython.exceptval(-1)
    def send_to(self, node_id: cython.int, now: cython.double) -> cython.bint:
        sender: Sender = self.sender
        schedule: BatchSchedule = sender.schedule
        if not self.network.takes(node_id, FIRST_V2, now):
            return False
        self.gate.newest = self.network.newest
        calls: list[Any] = []
        try:
            sender.draining.drain(node_id, calls, now, self.gate)
            if len(calls) == 0:
                return False
            more: cython.bint = schedule.more
            schedule.loads.update_node_latency(node_id, now, True)
            for _, batches, _ in calls:
                sender.accumulator.closer.close_batches(batches)
                sender.send(node_id, batches, now, False)
        except BaseException:
            sender.draining.put_back(calls, now)
            raise
        return self.network.flush(node_id, now) and not more
