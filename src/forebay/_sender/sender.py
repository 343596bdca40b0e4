"""Sender: one turn takes batches from the accumulator to the brokers and their answers back to the batches.

A producer's I/O thread repeats ``run_once(now)``, which reads no clock, starts no thread and sleeps only in ``poll``.
Everything here runs on that thread, except ``request_close``, ``request_force_close`` and ``wakeup``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import cython
from cython.cimports.forebay._sender.produce import match

from forebay._accumulator.accumulator import RecordAccumulator
from forebay._accumulator.batch import ProducerBatch
from forebay._accumulator.schedule import ReadyNodes
from forebay._accumulator.topic import PartitionQueue
from forebay._network.client import NetworkClient
from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._protocol.produce_response import PartitionResponse, ProduceResponse, decode_produce
from forebay._protocol.versions import ApiKey
from forebay._runtime.log import RateLimitedLogger
from forebay._runtime.owner import check_owner
from forebay._sender.draining import Draining
from forebay._sender.outcomes import OutcomeHandler, RequestSensors
from forebay._sender.produce import ProduceCall, error_in, moved_leader
from forebay._sender.producer_id import ProducerIdRequests
from forebay._transactions.manager import TransactionManager
from forebay.errors import KafkaError, NetworkError
from forebay.model import TopicPartition

if TYPE_CHECKING:
    from forebay._sender.transactional import TransactionalRequests

PRODUCE = cython.declare(cython.int, ApiKey.PRODUCE)
INFINITY: cython.double = math.inf
FORCED = "Producer is closed forcefully."
FORCED_TRANSACTION = "The producer closed forcefully"


class SenderOptions(NamedTuple):
    """What the sender takes from the configuration: times in ms, sizes in bytes."""

    acks: int = -1
    retries: int = 2**31 - 1
    max_request_size: int = 1_048_576
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: float = 120_000
    guarantee_order: bool = False
    """A partition is muted while a batch of it is in flight."""
    max_in_flight: int = 5
    max_sparse: int = 0
    log_prefix: str = ""


@cython.final
@cython.cclass
class Sender:
    """Sends what the accumulator has ready.

    Args:
        accumulator: the batches.
        client: the network; it calls back inside ``poll``.
        metadata: knows the leaders.
        transactions: the gate that stamps sequences (idempotence), or None.
        metrics: the producer's sensors.
        report: called with what a user's callback raised and the batch's result; must not raise.
        requests: a transactional producer's; None for others.
    """

    def __init__(
        self,
        *,
        accumulator: RecordAccumulator,
        client: NetworkClient,
        metadata: Any,
        transactions: TransactionManager | None,
        metrics: Any,
        options: SenderOptions,
        report: Callable[[BaseException, Any], None],
        requests: TransactionalRequests | None = None,
    ) -> None:
        self.accumulator, self.schedule = accumulator, accumulator.schedule
        self.client = client
        self.metadata, self.metrics = metadata, metrics
        self.transactions = transactions
        self.sensors = RequestSensors(metrics)
        self.log = RateLimitedLogger("forebay.sender", prefix=options.log_prefix)
        self.outcomes = self._make_outcomes(report, options)
        self.requests = requests
        self.dialog = None if requests is None else requests.dialog
        self.producer_ids = ProducerIdRequests(
            client, transactions, options.request_timeout_ms, fail_waiting=self.outcomes.fail_waiting
        )
        self.telemetry: Any = None
        self.draining = Draining(accumulator, client, metadata, transactions, self.outcomes, options)
        self.answered = self.on_produce  # made once, not for each request
        self.acks, self.timeout_ms = options.acks, options.request_timeout_ms
        self.delivery_timeout_ms, self.guarantee_order = options.delivery_timeout_ms, options.guarantee_order
        self.cluster_version, self.followed = -1, None  # of the cluster that was taken over last
        self.in_flight: dict[ProducerBatch, None] = {}
        self.next_roll, self.next_in_flight_expiry = -INFINITY, INFINITY
        self.closing = self.forced = self.unfinished_turn = False
        self.purges: list[Any] = []
        self.warm_ups: list[Any] = []

    def _make_outcomes(self, report: Callable[[BaseException, Any], None], options: SenderOptions) -> OutcomeHandler:
        return OutcomeHandler(
            accumulator=self.accumulator,
            metadata=self.metadata,
            client=self.client,
            transactions=self.transactions,
            metrics=self.metrics,
            log=self.log,
            report=report,
            retries=options.retries,
            delivery_timeout_ms=options.delivery_timeout_ms,
        )

    # Any thread

    def request_close(self) -> None:
        """Asks the thread to send what there is and to end.  Safe in a finaliser and in a signal handler."""
        self.closing = True
        self.wakeup()

    def request_force_close(self) -> None:
        """Asks the thread to end now; batches without an outcome fail."""
        self.forced = True
        self.request_close()

    def wakeup(self) -> None:
        """Ends the wait of the present turn."""
        self.client.wakeup()

    # The turn

    @cython.ccall
    def run_once(self, now: cython.double) -> object:
        """One turn: sends what is due, waits for the next event, and applies what came in."""
        if not cython.compiled:
            check_owner(self)
        self._begin_turn(now)
        failed: cython.longlong = self.outcomes.failed_records
        self._follow_metadata()
        # Before anything is drained, so that no batch fails and is sent in the same turn.  Also before the transaction
        # manager's turn, which acts on failures.
        self._expire(now)
        if len(self.purges) > 0:
            self._purge(now)
        # Before batches take all the room of a connection.
        due: cython.double = INFINITY
        if self.telemetry is not None:
            due = self.telemetry.turn(now, self.closing and not self._has_records())
        for warm_up in self.warm_ups[:]:  # callers take theirs out
            due = min(due, warm_up.turn(now))
        delay: cython.double = -1 if self.transactions is None else self._prepare(now)
        pool_due: cython.double = self.accumulator.pool.serve_deferred(now, len(self.in_flight) == 0)
        delay = self.send_ready(now) if delay < 0 else self._wait_until(now, delay)
        if self.requests is not None:
            # After the batches: the partitions that the gate did not allow yet are requested in the same turn.
            delay = min(delay, self.requests.turn(now))
        if self.outcomes.failed_records != failed or (self.closing and not self.has_work()):
            delay = 0  # a failure may change what there is to do, and an end may wait for just that
        if self.outcomes.unheard.waiting:
            delay = min(delay, self.outcomes.unheard.look(now))
        self.unfinished_turn = False
        self.client.poll(min(delay, pool_due, due), now)
        if now >= self.next_roll:
            self.next_roll = self.metrics.roll(now)
        return None

    @cython.cfunc
    def _begin_turn(self, now: cython.double) -> object:
        """Repairs what the previous turn left half done."""
        before, self.unfinished_turn = self.unfinished_turn, True  # this turn may fail, too
        if before or self.schedule.torn:
            self.accumulator.rebuild(now, self.transactions)
        return None

    def has_work(self) -> bool:
        """True while a batch has no outcome, a transaction no end, or a last push of metrics (a second) no answer.

        Other requests do not count: a server that never answers would hold the end up for ``request.timeout.ms``.
        """
        return self._has_records() or (self.telemetry is not None and self.telemetry.owes_last_push())

    def _has_records(self) -> bool:
        return self.accumulator.has_incomplete() or (self.dialog is not None and self.dialog.has_work())

    def failed_records(self) -> int:
        """All records that failed so far."""
        return int(self.metrics.record_errors.total)

    @cython.ccall
    @cython.exceptval(-2)
    def _prepare(self, now: cython.double) -> cython.double:
        """The transaction manager's part of a turn; ms to wait while nothing may be sent, else negative."""
        transactions: TransactionManager = self.transactions  # type: ignore[assignment]
        transactions.begin_turn()
        if transactions.fatal_error is not None:
            self.outcomes.fail_all(transactions.fatal_error)
            return -1
        if self.requests is not None and self.dialog is not None:
            if self.closing:
                self.requests.prepare_close(now)
            reason = self.dialog.purge_reason()
            if reason is not None:
                self.outcomes.abort_each(self.accumulator.take_unsent(), reason)
            return -1
        if transactions.has_producer_id:
            return -1
        return float(self.producer_ids.turn(now, len(self.warm_ups) > 0 or self.schedule.has_undrained()))

    @cython.cfunc
    @cython.exceptval(-2)
    def send_ready(self, now: cython.double) -> cython.double:
        """Sends what is due, as much as each node can take; ms to wait in poll."""
        send_all: cython.bint = self._send_all()
        found: ReadyNodes = self.schedule.ready(now, send_all)
        if found.leaderless is not None:
            self._ask_for_leaders(found.leaderless, now)
        delay: cython.double = found.next_check
        if len(found.nodes) > 0:
            delay = min(delay, self._send_to(found, now))
        if self.accumulator.pool.starved():
            # A thread waits for memory.  If nothing in flight will give some back, all batches go out, however small.
            # Nodes with requests in flight are left out: their answers give memory back.
            found = self.schedule.ready(now, True)
            found.nodes = list(set(found.nodes) - {batch.last_node for batch in self.in_flight})
            delay = min(delay, self._send_to(found, now), found.next_check)
        return self._wait_until(now, delay)

    @cython.cfunc
    def _send_all(self) -> cython.bint:
        completing = self.dialog is not None and self.dialog.completing
        return completing or self.closing or self.accumulator.flushing() or self.accumulator.incomplete_batches.closed

    @cython.cfunc
    @cython.exceptval(-2)
    def _send_to(self, found: ReadyNodes, now: cython.double) -> cython.double:
        """Drains for the nodes that can take a request; ms until one that cannot may be ready."""
        delay: cython.double
        calls: list[Any] = []
        try:
            delay = self.draining.collect(found, calls, now)
            if len(calls) == 0:
                return delay
            for node_id, batches, more in self.draining.close(calls, now):
                self.send(node_id, batches, now, more)
        except BaseException:
            self.draining.put_back(calls, now)
            raise
        return min(delay, self.accumulator.drain.behind_check)

    @cython.cfunc
    @cython.exceptval(-2)
    def _wait_until(self, now: cython.double, delay: cython.double) -> cython.double:
        expiry: cython.double = min(self.schedule.next_expiry_at(), self.next_in_flight_expiry)
        return max(0.0, min(delay, expiry - now))

    @cython.cfunc
    def _follow_metadata(self) -> object:
        cluster = self.metadata.newest
        if cluster is not self.followed:
            self.followed = cluster
            if cluster.version != self.cluster_version:
                self.cluster_version = cluster.version
                self.accumulator.refresh_all(cluster)
        return None

    def _ask_for_leaders(self, topics: set[str], now: float) -> None:
        # The metadata may have dropped the topic while its batches waited.
        for topic in topics:
            self.metadata.add_topic(topic, now)
        self.log.warning("no leader", now, "No leader known for partitions of %s", ", ".join(sorted(topics)))
        self.metadata.request_update(False)

    # Requests

    @cython.cfunc
    def send(self, node_id: cython.int, batches: list[Any], now: cython.double, prompt: cython.bint) -> object:
        """One produce request with ``batches`` to one node."""
        call: ProduceCall = ProduceCall.__new__(ProduceCall)
        name: str | None = None if self.dialog is None else self.dialog.transactional_id
        call.set_up(node_id, batches, now, self.acks, self.timeout_ms, self.accumulator.closer.compressor, name)
        oldest: cython.int = 0
        newest: cython.int = call.newest
        if self.requests is not None:
            oldest, newest = self.requests.produce_versions
            newest = min(newest, call.newest)
        request: ClientRequest = ClientRequest.__new__(ClientRequest)
        request.fill(node_id, PRODUCE, oldest, newest, call.build, decode_produce, self.timeout_ms, self.answered, call)
        request.on_written = bool if prompt else None  # any callback ends the selector's turn
        request.expect_response = self.acks != 0
        try:
            self.client.send(request, now)
        except BaseException:
            call.release()
            raise
        # Only now: a request that the client did not accept is never completed.
        self._note_in_flight(node_id, batches)
        self.sensors.record(batches, self.outcomes, now)
        return None

    @cython.cfunc
    def _note_in_flight(self, node_id: cython.int, batches: list[Any]) -> object:
        batch: ProducerBatch
        queue: PartitionQueue
        for batch in batches:
            queue = batch.queue
            queue.in_flight += 1
            if self.guarantee_order:
                queue.muted = True
            batch.in_flight = True
            batch.last_node = node_id
            self.draining.count_sparse(batch, 1)
            self.in_flight[batch] = None
            self.next_in_flight_expiry = min(self.next_in_flight_expiry, batch.created + self.delivery_timeout_ms)
        return None

    def on_produce(self, response: ClientResponse) -> None:
        """Applies one answer, or the lack of one, to the batches of its request."""
        call: ProduceCall = response.request.context  # type: ignore[assignment]
        call.release()
        now: cython.double = response.received
        try:
            self._apply_response(call, response, now)
        finally:
            self._end_call(call, now)

    @cython.cfunc
    def _end_call(self, call: ProduceCall, now: cython.double) -> object:
        """No batch of the request is in flight any more, even if its answer could not be applied."""
        batch: ProducerBatch
        self.outcomes.answer_in_progress = None
        for batch in call.batches:
            if batch.in_flight:
                error = NetworkError(f"The answer of node {call.node_id} could not be applied")
                self.complete(batch, None, call.refusal(batch, error), now)
            if self.guarantee_order:
                queue: PartitionQueue = batch.queue
                queue.muted = False
        return None

    @cython.cfunc
    def _apply_response(self, call: ProduceCall, response: ClientResponse, now: cython.double) -> object:
        batch: ProducerBatch
        if response.error is not None or (response.body is None and self.acks != 0):
            self._fail_call(call, response, now)
        elif response.body is None:
            if call.refused is None:
                self.outcomes.answer_in_progress = (call.batches, None)
            for batch in call.batches:
                self.complete(batch, None, call.refusal(batch, None), now)
        else:
            self.sensors.request_latency.record(now - response.request.sent)
            self._apply(call, response.body, now)  # type: ignore[arg-type]
        return None

    @cython.ccall
    def complete(
        self, batch: ProducerBatch, answer: PartitionResponse | None, error: Any, now: cython.double
    ) -> object:
        """Applies the outcome of one batch, which is not in flight any more."""
        queue: PartitionQueue = batch.queue
        queue.in_flight -= 1
        batch.in_flight = False
        self.draining.count_sparse(batch, -1)
        self.in_flight.pop(batch, None)
        try:
            self.outcomes.apply(batch, answer, error, now)
        except Exception as failure:  # noqa: BLE001 - the other batches of the request have outcomes of their own
            self.outcomes.end_after_error(batch, failure)
        return None

    def _fail_call(self, call: ProduceCall, response: ClientResponse, now: cython.double) -> None:
        error = response.failure or NetworkError(f"The answer of node {call.node_id} was lost")
        for batch in call.batches:
            self.complete(batch, None, call.refusal(batch, error), now)

    @cython.cfunc
    def _apply(self, call: ProduceCall, body: ProduceResponse, now: cython.double) -> object:
        self.sensors.throttle_time.record(body.throttle_time_ms)
        answers: list[Any] = match(call.batches, body.partitions)
        self.outcomes.answer_in_progress = (call.batches, answers)
        hints: dict[TopicPartition, tuple[int, int]] | None = None
        answer: PartitionResponse | None
        batch: ProducerBatch
        at: cython.Py_ssize_t
        for at in range(len(answers)):
            batch = call.batches[at]
            answer = answers[at]
            if answer is None:
                missing = NetworkError(f"Node {call.node_id} left {batch.topic}-{batch.partition} out of its answer")
                self.complete(batch, None, call.refusal(batch, missing), now)
            elif answer.error_code == 0:
                self.complete(batch, answer, None, now)
            else:
                hints = moved_leader(answer, hints, batch.topic_id, self.metadata.cluster().topic_id(batch.topic))
                self.complete(batch, answer, error_in(answer), now)
        if hints is not None:
            self.metadata.update_leadership(hints, body.node_endpoints)
            self._follow_metadata()
        return None

    # Expiry and the end

    @cython.ccall
    def _expire(self, now: cython.double) -> object:
        batch: ProducerBatch
        self.schedule.collect()
        if now < self.schedule.next_expiry_at() and now < self.next_in_flight_expiry:
            return None
        expired: list[Any] = self.schedule.expired(now)
        if now >= self.next_in_flight_expiry:
            timeout: cython.double = self.delivery_timeout_ms
            expired += [batch for batch in self.in_flight if batch.reached_delivery_timeout(timeout, now)]
            created = [batch.created for batch in self.in_flight if not batch.reached_delivery_timeout(timeout, now)]
            self.next_in_flight_expiry = min(created, default=INFINITY) + timeout
        for batch in expired:
            self.in_flight.pop(batch, None)
            try:
                self.outcomes.expire(batch, now)
            except Exception as failure:  # noqa: BLE001 - the others are in no queue any more and have to end too
                self.outcomes.end_after_error(batch, failure)
        return None

    def _purge(self, now: float) -> None:
        from forebay._sender.purging import apply_all  # rare, and not wanted at each start

        apply_all(self.purges, self.accumulator, self.in_flight, self.outcomes, self.log, now)

    def give_up(self, error: KafkaError) -> None:
        """The end: batches without an outcome fail with ``error``, and calls that wait for a transaction end."""
        try:
            if self.dialog is not None:
                self.dialog.close(KafkaError(FORCED_TRANSACTION))
        finally:
            self.outcomes.fail_all(error)
            self.accumulator.pool.serve_now()

    def settle_early(self) -> tuple[int, int]:
        """See ``OutcomeHandler.settle_early``; also ends waits for a transaction or metadata.  Any thread."""
        if self.dialog is not None:
            self.dialog.close(KafkaError(FORCED_TRANSACTION))
        self.metadata.close()
        return self.outcomes.settle_early(KafkaError(FORCED))
