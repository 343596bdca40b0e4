"""Calls that the sender's thread carries out for the caller, who waits for it: ``warm_up`` and ``purge``."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from forebay._delivery.sender_lock import check_wait
from forebay._runtime.ticket import ThreadTicket
from forebay._runtime.times import limit
from forebay.errors import IllegalStateError, KafkaTimeoutError
from forebay.errors._base import caused, own_copy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forebay._assembly import Components
    from forebay._runtime.times import Seconds
    from forebay._sender.thread import SenderThread
    from forebay._sender.warming import WarmUp
    from forebay.model import PartitionInfo


class SenderCalls:
    """A base of KafkaProducer."""

    _parts: Components
    _thread: SenderThread

    def _check_not_forked(self) -> None:
        raise NotImplementedError

    def _check_open(self) -> None:
        raise NotImplementedError

    def _on_sender_thread(self) -> bool:
        raise NotImplementedError

    def partitions_for(self, topic: str, *, timeout: Seconds | None = None) -> tuple[PartitionInfo, ...]:
        raise NotImplementedError

    def warm_up(self, topics: Iterable[str], *, timeout: Seconds | None = None) -> None:
        """Gets what the first records would wait for: metadata, connections to all leaders, and a producer id.

        Call it when a service starts, so that its first request is not its slowest (kafka#13320).  A connection without
        records is closed after ``connections.max.idle.ms``.

        Args:
            topics: names of the topics that will be written to.
            timeout: seconds for all of it; None for ``max.block.ms``.

        Raises:
            KafkaTimeoutError: some of it did not come in time; the message says what.
            KafkaError: a topic's name is invalid or it is forbidden to us; or no broker lets us in.
            IllegalStateError: called from a delivery callback, which would wait for itself.
        """
        warming = Warming(self, topics, timeout)
        for topic in warming.topics:
            self.partitions_for(topic, timeout=warming.left_ms() / 1000)
        with warming.begun() as request:
            warming.check(request, wait_for_result(request.result, warming.left_ms()))

    def purge(self, *, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Drops records that were accepted: their futures and callbacks get a PurgedError.  As librdkafka's purge.

        What was never sent gives its memory back at once.  A record in flight may be written all the same; its memory
        comes back when no request needs it.  An idempotent producer goes on under the next epoch where records were
        dropped in flight, so that later records are not taken for them (as when records expire).  A transaction with a
        dropped record can only be aborted (as with librdkafka; Java purges in abort_transaction).
        Records that are sent after the call are not touched, nor are threads that wait in ``send``.

        Args:
            in_queue: records that were never sent.
            in_flight: records of requests without an answer, and records that wait for another attempt.
            blocking: wait until the dropped records have their outcome and callbacks have run.

        Raises:
            IllegalStateError: called with ``blocking`` from a delivery callback, which would wait for itself.
        """
        dropped = self._begin_purge(in_queue, in_flight, blocking)
        if blocking:
            wait_for_result(dropped, None)

    def _begin_purge(self, in_queue: bool, in_flight: bool, blocking: bool) -> Any:
        self._check_not_forked()
        if blocking:
            if self._on_sender_thread():
                raise IllegalStateError("purge() cannot wait in a delivery callback: use purge(blocking=False) there")
            check_wait("purge()")
        return self._thread.purge(in_queue=in_queue, in_flight=in_flight)


class Warming:
    """One call of ``warm_up`` on any front end: its topics, its time and what is made of its end."""

    def __init__(self, producer: SenderCalls, topics: Iterable[str], timeout: Seconds | None) -> None:
        if isinstance(topics, (str, bytes)):
            raise TypeError(f"warm_up() takes a list of names of topics, got {topics!r}; write [{topics!r}]")
        self.topics = tuple(topics)
        timeout = limit(timeout)
        producer._check_open()
        if producer._on_sender_thread():
            raise IllegalStateError("warm_up() cannot be called from a delivery callback: it would wait for itself")
        check_wait("warm_up()")
        parts = producer._parts
        self._producer, self._clock, self._began = producer, parts.clock, parts.clock.now()
        self._wait_ms: float = parts.config["max.block.ms"] if timeout is None else timeout * 1000

    def left_ms(self) -> float:
        """What is left of its time."""
        return max(0.0, self._began + self._wait_ms - self._clock.now())

    @contextmanager
    def begun(self) -> Iterator[WarmUp]:
        """The request to the sender's thread, once metadata knows the topics; it ends with the block."""
        from forebay._sender.warming import WarmUp  # rare, and not wanted at each start

        parts, thread = self._producer._parts, self._producer._thread
        gate = parts.transactions if parts.session is None else None
        request = WarmUp(self.topics, parts.client, parts.metadata, gate)
        if not request.missing() and not request.lacks_id():
            request.result.settle()
        thread.warm_up(request)
        try:
            yield request
        finally:
            thread.end_warm_up(request)

    def check(self, request: WarmUp, is_there: bool) -> None:
        """Raises the error of a request that has failed or is late."""
        self._producer._check_open()
        if request.result.error is not None:
            raise own_copy(request.result.error)
        if is_there:
            return
        missing = [f"connection to node {node}" for node in request.missing()]
        missing += ["producer id"] if request.lacks_id() else []
        late = KafkaTimeoutError(
            f"warm_up: no {' and no '.join(missing) or 'answer'} after {self._wait_ms / 1000:g} s", phase="warm_up"
        )
        states = self._producer._parts.client.states
        causes = (states.last_error(node.id) for node in request.missing())
        raise caused(late, next((cause for cause in causes if cause is not None), None))


def wait_for_result(result: Any, timeout_ms: float | None) -> bool:
    """Waits on this thread, and signals get through; False if ``timeout_ms`` passed first."""
    ticket = ThreadTicket()
    if result.subscribe(ticket):
        return True
    try:
        if timeout_ms is not None:
            return ticket.wait(timeout_ms)
        while not ticket.wait(3_600_000):
            pass
        return True
    finally:
        result.unsubscribe(ticket)
