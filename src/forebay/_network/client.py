"""All connections of one producer: who may be sent to, sending, and the turn that moves everything on.

``poll`` is one turn: metadata if due, one selector turn, then what it brought, what is overdue, and last the
callbacks, in order.  Every request taken by ``send`` completes exactly once, also when its connection is lost or
the client is closed.  Belongs to the sender thread, except ``wakeup``.
"""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import cython
from cython.cimports.forebay._network.channel import Channel
from cython.cimports.forebay._network.connection import Connection
from cython.cimports.forebay._network.connection_states import NodeState
from cython.cimports.forebay._network.exchange import Exchange
from cython.cimports.forebay._network.inflight import ClientRequest, ClientResponse

from forebay._network.broker_versions import ApiVersions, client_throttles
from forebay._network.connection_states import ABSENT, ConnectionStates, State
from forebay._network.connector import Connector
from forebay._network.handshake import check_versions
from forebay._network.lost import describe_loss, describe_unready, loss_error
from forebay._network.metadata_updater import MetadataUpdater
from forebay._network.node_choice import choose_node, patience_left
from forebay._network.overdue import idle_at, overdue_at, timeout_error
from forebay._runtime.log import RateLimitedLogger
from forebay._runtime.owner import check_owner
from forebay.errors import (
    AuthenticationError,
    DisconnectError,
    IllegalStateError,
    KafkaError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from forebay._metrics.producer import ProducerMetrics
    from forebay._network.metadata import Metadata
    from forebay._network.options import NetworkOptions
    from forebay._network.resolver import NameResolver
    from forebay._network.selector import Selector
    from forebay._protocol.versions import Range
    from forebay._runtime.clock import Clock
    from forebay.model import Node

_INFINITY: float = float("inf")
_CLOSED = 2
# The last eight of 31 bits are set apart for authentication, as in the Java client.
_MAX_CORRELATION = 0x7FFFFFFF - 8
_COPIED = cython.declare(cython.Py_ssize_t, 16384)
"""Up to so many received bytes are copied rather than looked at through views, which cost more."""
# An enum's member is looked up by its name at each mention of it.
CONNECTING = cython.declare(object, State.CONNECTING)


@cython.cclass
class NetworkClient:
    """The producer's network.

    Args:
        selector: moves the bytes.
        resolver: looks names up.
        metadata: kept fresh by this client; its ``bootstrap`` has been called.
        options: times and sizes.
        metrics: the producer's sensors.
        clock: read after each selector turn, because time passes in it.
        random: in [0, 1), for jitter and for the choice among equal nodes.
    """

    def __init__(
        self,
        *,
        selector: Selector,
        resolver: NameResolver,
        metadata: Metadata,
        options: NetworkOptions,
        metrics: ProducerMetrics,
        clock: Clock,
        random: Callable[[], float],
    ) -> None:
        self._selector = selector
        self.gil_claim = selector.claim
        self._exchange = Exchange(selector, clock, metrics)
        self._metadata = self._picture = metadata
        self._options = options
        self._random = random
        self._max_in_flight = options.max_in_flight
        self._log = RateLimitedLogger("forebay.network", prefix=options.log_prefix)
        self._states = ConnectionStates(
            reconnect_backoff_ms=options.reconnect_backoff_ms,
            reconnect_backoff_max_ms=options.reconnect_backoff_max_ms,
            setup_timeout_ms=options.setup_timeout_ms,
            setup_timeout_max_ms=options.setup_timeout_max_ms,
            random=random,
        )
        self._nodes = self._states.nodes
        self._connector = Connector(
            selector, resolver, metadata, options, failed=self._failed, close=self._hang_up, check_at=self.check_at
        )
        self._updater = MetadataUpdater(self, metadata, options, self._log)
        self.versions = ApiVersions()
        self._completed: list[Any] = []
        # The earliest time at which something may be overdue.  Not moved when an answer comes in time, so that a
        # request costs nothing here; the check that finds nothing sets it anew.
        self._next_check = _INFINITY
        self._correlation = 0
        self.in_flight = 0
        self.closed = False
        self._metrics = metrics

    # -- who may be sent to -------------------------------------------------------------------------------------

    @cython.ccall
    @cython.exceptval(-1)
    def ready(self, node: Any, now: cython.double) -> cython.bint:
        """Whether a request may be sent to ``node`` now; begins a connection if there is none and one may be made."""
        if self.is_ready(node, now):
            return True
        if not self.closed and self._states.can_connect(node.id, now):
            self.connect(node, now)
        return False

    @cython.ccall
    @cython.exceptval(-1)
    def is_ready(self, node: Any, now: cython.double) -> cython.bint:
        """Connected, with room for a request, not throttled, and no metadata request that has to go first."""
        if not self.can_send(node.id, now):
            return False
        return self._updater.query is not None or now < self._picture.due_at

    @cython.ccall
    @cython.exceptval(-1)
    def can_send(self, node_id: cython.int, now: cython.double) -> cython.bint:
        """As ``is_ready``, also for what goes before the users' requests."""
        state: NodeState | None = self._nodes.get(node_id)
        if state is None or state.free_slots(now, self._max_in_flight) == 0:
            return False
        # One turn's requests at a time on their way out: in the accumulator what waits can still grow or expire.
        channel: Channel = state.channel
        return channel.takes_more()

    @cython.ccall
    @cython.exceptval(-1)
    def slots(self, node_id: cython.int, now: cython.double) -> cython.int:
        """How many requests the node takes before it has answered another; 0 unless connected and not throttled."""
        state: NodeState | None = self._nodes.get(node_id)
        return 0 if state is None else state.free_slots(now, self._max_in_flight)

    def connection_delay(self, node: Node, now: float) -> float:
        """Ms until a connection to ``node`` may be begun; infinite while there is one or one is being made."""
        delay: float = self._states.connection_delay(node.id, now)
        return delay

    def throttle_delay(self, node_id: int, now: float) -> float:
        """Ms until the node takes requests again; 0 if it is not throttling (KIP-219)."""
        delay: float = self._states.throttle_delay(node_id, now)
        return delay

    def poll_delay(self, node: Node, now: float) -> float:
        """Ms after which it is worth asking ``ready`` again, events apart."""
        return float(self._states.poll_delay(node.id, now))

    def connection_failed(self, node: Node) -> bool:
        """Whether the last connection to ``node``, or the attempt at one, failed."""
        return (state := self._nodes.get(node.id)) is not None and state.state in ABSENT

    def authentication_error(self, node: Node) -> AuthenticationError | None:
        """Why ``node`` refused us when it was last tried."""
        return state.authentication_error if (state := self._nodes.get(node.id)) is not None else None

    def least_loaded_node(self, now: float) -> Node | None:
        """The node to ask something that any node can answer; it may have to be connected first."""
        return self.pick(now)[0]

    def pick(self, now: float) -> tuple[Node | None, bool]:
        """The least loaded node, and whether any is connected or may be."""
        nodes = self._metadata.cluster().nodes
        return choose_node(nodes, int(self._random() * len(nodes)), self._nodes, self, now)

    def connection_error(self, node_id: int) -> KafkaError | None:
        """What ended the last connection to a node, or the attempt at one, since it was ready."""
        return state.last_error if (state := self._nodes.get(node_id)) is not None else None

    def unready_reason(self, node_id: int, now: float) -> str | None:
        """Why a node cannot be sent to now, in words; None if it can."""
        if self.can_send(node_id, now):
            return None
        return describe_unready(self._nodes.get(node_id), now)

    def in_flight_count(self, node_id: int | None = None) -> int:
        """Requests that wait for an answer, of one node or of all."""
        if node_id is None:
            return int(self.in_flight)
        connection = state.connection if (state := self._nodes.get(node_id)) is not None else None
        return connection.in_flight.count if connection is not None else 0

    @property
    def connection_count(self) -> int:
        """Connections that stand; a gauge, any thread."""
        return sum(state.established for state in list(self._nodes.values()))

    def api_versions(self, node_id: int) -> Mapping[int, Range] | None:
        """``(oldest, newest)`` version by API key that a connected node knows."""
        return versions.ranges if (versions := self.versions.get(node_id)) is not None else None

    def max_usable_produce_magic(self) -> int:
        """The newest record format that every connected broker takes; 2 if none is connected."""
        return int(self.versions.max_usable_produce_magic)

    # -- sending ------------------------------------------------------------------------------------------------

    @cython.ccall
    def send(self, request: ClientRequest, now: cython.double) -> None:
        """Queues a request; it leaves in the next ``poll``.

        Raises:
            IllegalStateError: the node is not ready; the request was not taken.
        """
        state: NodeState | None = self._nodes.get(request.node_id)
        if state is None or state.free_slots(now, self._max_in_flight) == 0:
            raise IllegalStateError(f"Attempt to send a request to node {request.node_id} which is not ready.")
        self._transmit(state, request, now)

    @cython.ccall
    def transmit(self, request: ClientRequest, now: cython.double) -> None:
        """Sends without asking for readiness: for the client's own requests."""
        self._transmit(self._nodes[request.node_id], request, now)

    @cython.cfunc
    def _transmit(self, state: NodeState, request: ClientRequest, now: cython.double) -> None:
        connection: Connection = state.connection
        request.created = now
        channel: Channel = state.channel
        before: cython.Py_ssize_t = channel.pending
        try:
            buffers: list[Any] = connection.encode(request, self._correlation, now)
            # Nobody else ends the turn for a request without an answer, or for a caller who waits for the writing.
            prompt = request.on_written is not None or not request.expect_response
            channel.write(buffers, request.release, prompt)
        except Exception as error:  # noqa: BLE001 - must complete all the same
            # No version in common, or a request that cannot be built: it completes with that, in its turn.
            failure = error if isinstance(error, KafkaError) else KafkaError(f"Cannot build {request!r}: {error!r}")
            connection.withdraw(request)
            request.release(False)
            self._complete(ClientResponse(request, now, error=failure))
            return
        self._correlation = 0 if self._correlation == _MAX_CORRELATION else self._correlation + 1
        self.in_flight += 1
        self._exchange.sent(state.sensors, channel.pending - before)
        self._next_check = min(self._next_check, request.deadline)

    # -- the turn -----------------------------------------------------------------------------------------------

    @cython.ccall
    @cython.exceptval(-1)
    def poll(self, timeout_ms: cython.double, now: cython.double) -> cython.double:
        """One turn; waits up to ``timeout_ms`` for something to happen.

        Returns:
            The time after it (monotonic ms).
        """
        if not cython.compiled:
            check_owner(self)
        wait: cython.double = -1
        if self._updater.query is None:
            wait = self._picture.due_at - now
        if wait <= 0:
            wait = self._updater.maybe_update(now)
        # A deadline is over when it lies strictly behind: waking exactly at it would find nothing, and spin.
        wait = min(timeout_ms, wait, self._next_check - now + 1)
        if len(self._completed) > 0 or wait < 0:
            wait = 0
        channels: list[Any] = self._exchange.turn(wait, now)
        after: cython.double = self._exchange.after
        channel: Channel
        for channel in channels:
            self._serve(channel, after)
        if self._connector.waiting:
            self._connector.poll(after)
        if after > self._next_check:
            self._check(after)
        self._deliver()
        return self._exchange.end()

    def wakeup(self) -> None:
        """Ends the wait of the turn under way, or of the next; any thread, any signal handler."""
        self._selector.wakeup()

    @cython.cfunc
    def _serve(self, channel: Channel, now: cython.double) -> None:
        state: NodeState = channel.context  # type: ignore[assignment]
        if state.channel is not channel and not self._connector.heard(state, channel, now):
            return
        if state.state is CONNECTING:
            self._opened(state, now)
        connection: Connection = state.connection
        done: list[Any] = []
        failure = None
        connection.take_written(now, done)
        if channel.received_size > 0:
            try:
                received = channel.copied() if channel.received_size <= _COPIED else channel.received()
                used: cython.Py_ssize_t = connection.receive(received, now, done)
                if used > 0:
                    channel.consume(used)
            except KafkaError as error:
                failure = error
        for item in done:
            self._settle(state, item, now)
        if state.channel is not channel:
            return
        if failure is not None:
            self._lose(state, failure, now)
        elif channel.state == _CLOSED:
            self._failed(state, channel.error, now)

    @cython.cfunc
    def _settle(self, state: NodeState, response: ClientResponse, now: cython.double) -> None:
        request: ClientRequest = response.request
        self.in_flight -= 1
        size: cython.Py_ssize_t = response.size
        if size > 0:
            self._exchange.received(state.sensors, size, now - request.sent)
            throttle: cython.int = getattr(response.body, "throttle_time_ms", 0)
            if throttle > 0 and client_throttles(request.api_key, request.version):
                response.throttle_ms = throttle
                self._states.throttle(state, now + throttle)
                if state.connection is not None:
                    state.connection.in_flight.postpone(throttle)
        self._complete(response)

    @cython.cfunc
    def _complete(self, response: ClientResponse) -> None:
        if response.request.internal:
            self._run(response)
        else:
            self._completed.append(response)

    @cython.cfunc
    def _deliver(self) -> None:
        # What callbacks complete themselves waits for the next turn: they may send again for ever.
        completed: list[Any] = self._completed
        if len(completed) > 0:
            self._completed = []
            for item in completed:
                self._run(item)

    @cython.cfunc
    def _run(self, response: ClientResponse) -> None:
        try:
            response.request.on_complete(response)
        except Exception as error:  # noqa: BLE001 - foreign code must not stop the sender
            self._log.exception("Uncaught error in request completion of %r", response, error=error)

    # -- connections --------------------------------------------------------------------------------------------

    def can_connect(self, node: Node, now: float) -> bool:
        """Whether there is no connection to ``node`` and its back-off is over."""
        return bool(self._states.can_connect(node.id, now))

    def patience_left(self, now: float) -> float:
        """Ms for which no other connection should be begun, because one is being made."""
        return max((patience_left(state, now) for state in self._nodes.values()), default=0.0)

    def connect(self, node: Node, now: float) -> None:
        """Begins a connection."""
        self._log.debug("Connecting to node %s", node)
        state = self._states.connecting(node, now)
        state.sensors = self._metrics.node(node.id, now)
        self.check_at(now + state.setup_timeout_ms)
        self._connector.begin(state, now)

    def retry_delay(self, now: float) -> float:
        """Ms until some node may be tried again; not below one, whatever the back-off."""
        delays = [self._states.poll_delay(node.id, now) for node in self._metadata.cluster().nodes]
        return max(1.0, min(delays, default=self._options.reconnect_backoff_ms))

    def disconnect(self, node_id: int, now: float) -> None:
        """Closes the connection to a node; its requests complete, as disconnected, in the next ``poll``."""
        state = self._nodes.get(node_id)
        if state is not None and state.state not in ABSENT:
            self._drop(state, DisconnectError(f"The connection to {state.node} was closed by the client"), now, False)

    def disconnect_learned(self, now: float) -> None:
        """Closes the connections to all nodes of the metadata, before starting over."""
        for node in self._metadata.cluster().nodes:
            self.disconnect(node.id, now)

    def close(self, now: float) -> None:
        """Closes everything; requests in flight complete as disconnected before this returns."""
        self.closed = True
        for state in list(self._nodes.values()):
            self.disconnect(state.node.id, now)
        self._selector.close_all()
        while self._completed:
            self._deliver()

    def close_after_fork(self) -> None:
        """In a forked child: closes the descriptors and touches nothing else."""
        self._selector.close_after_fork()

    @cython.ccall
    def check_at(self, when: cython.double) -> None:
        """Sees to it that what may be overdue at ``when`` is looked at then."""
        self._next_check = min(self._next_check, when)

    def _opened(self, state: NodeState, now: float) -> None:
        self._metrics.connections_created.record(1)
        self._states.checking(state)
        step: Callable[[ClientResponse], None] = partial(self._step, state, state.channel)
        options = self._options
        state.setup = check_versions(state.node.id, options.software_version, options.request_timeout_ms, step)
        self.transmit(next(state.setup), now)

    def _step(self, state: NodeState, channel: object, response: ClientResponse) -> None:
        """The next step of the handshake, or its end."""
        if response.disconnected or state.channel is not channel:
            return
        try:
            if response.error is not None:
                raise response.error
            self.transmit(state.setup.send(response), response.received)
        except StopIteration as end:
            state.setup = None
            state.connection.versions = end.value
            self.versions.update(state.node.id, end.value)
            self._states.ready(state)
            if self._options.connections_max_idle_ms >= 0:
                self.check_at(response.received + self._options.connections_max_idle_ms)
        except KafkaError as error:
            self._lose(state, error, response.received)

    def _check(self, now: float) -> None:
        """Gives up what is overdue, closes the connection that is idle the longest, and sets the next check."""
        self._next_check = _INFINITY
        max_idle = self._options.connections_max_idle_ms
        unused: tuple[float, Any] = (_INFINITY, None)
        for state in list(self._nodes.values()):
            due = overdue_at(state)
            if now > due:
                self._lose(state, timeout_error(state), now, state.state is not State.CONNECTING)
                continue
            self.check_at(due)
            self._connector.go_on(state, now)
            unused = min(unused, (idle_at(state, max_idle), state), key=itemgetter(0))
        if now > unused[0]:
            # One a turn, the oldest: a burst of closed connections would be a burst of new ones.
            self._log.debug("Closing the connection to %s, idle for connections.max.idle.ms", unused[1].node)
            self._drop(unused[1], None, now, False)
            self.check_at(now - 1)
        else:
            self.check_at(unused[0])
        self._updater.maybe_rebootstrap(now)

    def _failed(self, state: NodeState, cause: BaseException | None, now: float) -> None:
        """The connection ended by itself, or could not be made."""
        self._lose(state, loss_error(state, cause), now)

    def _hang_up(self, channel: Channel) -> None:
        self._selector.close(channel)
        self._metrics.connections_closed.record(1)

    def _lose(self, state: NodeState, error: KafkaError, now: float, timed_out: bool = False) -> None:
        level, kind, text = describe_loss(state, error, timed_out)
        self._log.log(level, (kind, state.node), now, "%s", text)
        state.last_error = error
        self._drop(state, error, now, timed_out)
        self._updater.disconnected(state, error, now)

    def _drop(self, state: NodeState, error: KafkaError | None, now: float, timed_out: bool) -> None:
        channel, connection, setup = state.channel, state.connection, state.setup
        state.channel = state.connection = state.setup = None
        if error is None:
            self._states.closed(state)
        elif isinstance(error, AuthenticationError):
            self._states.authentication_failed(state, error, now)
            self._metrics.authentications_failed.record(1)
        else:
            self._states.disconnected(state, now)
        self.versions.remove(state.node.id)
        self._connector.give_up(state)
        if channel is not None:
            # The buffers of what was not written are let go in here, before the requests complete.
            self._hang_up(channel)
        if setup is not None:
            setup.close()
        if connection is not None:
            for response in connection.abort(now, error, timed_out):
                self.in_flight -= 1
                self._complete(response)
