"""All connections of one producer: which nodes take requests, sending, and the turn.

``poll`` is one turn: a metadata request if it is due, one turn of the selector, the events of its channels, what is
overdue, and last the callbacks, in order.  Every request that ``send`` took completes exactly once, also when its
connection is lost or the client is closed.  Belongs to the sender's thread, except ``wakeup``.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import cython
from cython.cimports.forebay._network._io import CLOSED

from forebay._metrics.sensor import NodeSensors
from forebay._network.broker_versions import ApiVersions, client_throttles
from forebay._network.channel import Channel
from forebay._network.connection import Connection
from forebay._network.connection_states import ABSENT, ConnectionStates, NodeState, State
from forebay._network.connector import Connector
from forebay._network.handshake import Handshakes
from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._network.metadata_updater import MetadataUpdater
from forebay._network.reasons import describe_loss, describe_unready, loss_error, timeout_error
from forebay._runtime.log import RateLimitedLogger
from forebay._runtime.owner import check_owner
from forebay.errors import AuthenticationError, DisconnectError, IllegalStateError, KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from forebay._metrics.producer import ProducerMetrics
    from forebay._network.metadata import Metadata
    from forebay._network.options import NetworkOptions
    from forebay._network.resolver import NameResolver
    from forebay._network.selector import Selector
    from forebay._runtime.clock import Clock
    from forebay.model import Node

_INFINITY: float = float("inf")
# The last eight ids are reserved for authentication, as in the Java client.
_MAX_CORRELATION = 0x7FFFFFFF - 8
COPY_BELOW_BYTES = cython.declare(cython.Py_ssize_t, 16384)
"""Up to this many received bytes are copied: a view would cost more."""
# Python looks an enum's member up by its name at each use; this name saves that.
CONNECTING = cython.declare(object, State.CONNECTING)
READY = cython.declare(object, State.READY)


@cython.cclass
class NetworkClient:
    """The producer's network.

    ``states`` answers questions about nodes, ``versions`` about what their brokers support; both are read only here.

    Args:
        selector: moves the bytes.
        resolver: looks names up.
        metadata: kept fresh by this client; its ``bootstrap`` has been called.
        options: times and sizes.
        metrics: the producer's sensors.
        clock: read after each turn of the selector, because time passes in it, and at the end of ``poll``.
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
        self._clock = clock
        self._metadata = metadata
        self._options = options
        self._random = random
        self._max_in_flight = options.max_in_flight
        self._log = RateLimitedLogger("forebay.network", prefix=options.log_prefix)
        self.states = ConnectionStates(options, random)
        self._nodes = self.states.nodes
        self.versions = ApiVersions()
        self._connector = Connector(
            selector, resolver, metadata, options, failed=self._failed, close=self._shut, check_at=self.check_at
        )
        self._handshakes = Handshakes(
            self.states, self.versions, options, random, transmit=self.transmit, lose=self._lose, check_at=self.check_at
        )
        if options.helper is not None:
            options.helper.wake = self.wakeup
        self._updater = MetadataUpdater(self, self.states, metadata, options, self._log)
        self._completed: list[Any] = []
        # The earliest time at which something may be overdue.  An answer does not change it, so that a request costs
        # nothing here; a check that finds nothing overdue sets it again.
        self._next_check = _INFINITY if options.sasl is None else 0.0
        self._correlation = 0
        self.in_flight = 0
        self.closed = False
        self._metrics = metrics
        self._requests, self._bytes_out = metrics.requests, metrics.bytes_out
        self._responses, self._bytes_in = metrics.responses, metrics.bytes_in
        self._io_wait_ns, self._io_ns = metrics.io_wait_ns, metrics.io_ns

    # -- which nodes take requests ------------------------------------------------------------------------------

    @cython.ccall
    @cython.exceptval(-1)
    def ready(self, node: Any, now: cython.double) -> cython.bint:
        """Whether ``node`` takes a request now; begins a connection if there is none and one is allowed."""
        if self.is_ready(node, now):
            return True
        if not self.closed and self.states.can_connect(node.id, now):
            self.connect(node, now)
        return False

    @cython.ccall
    @cython.exceptval(-1)
    def is_ready(self, node: Any, now: cython.double) -> cython.bint:
        """Whether ``node`` takes a request now and no metadata request has to go first."""
        if not self.can_send(node.id, now):
            return False
        due_at: cython.double = self._metadata.due_at
        return now < due_at or self._updater.query is not None

    @cython.ccall
    @cython.exceptval(-1)
    def can_send(self, node_id: cython.int, now: cython.double) -> cython.bint:
        """Whether the node is connected, not throttled, has room for a request, and all earlier ones are written."""
        state: NodeState | None = self._nodes.get(node_id)
        return False if state is None else state.can_send(now, self._max_in_flight)

    @cython.ccall
    @cython.exceptval(-1)
    def slots(self, node_id: cython.int, now: cython.double) -> cython.int:
        """How many requests the node takes before its next answer; 0 unless connected and not throttled."""
        state: NodeState | None = self._nodes.get(node_id)
        return 0 if state is None else state.free_slots(now, self._max_in_flight)

    def least_loaded_node(self, now: float) -> Node | None:
        """The node to ask what any node can answer; it may have to be connected first."""
        return self.pick(now)[0]

    def pick(self, now: float) -> tuple[Node | None, bool]:
        """The least loaded node, and whether any is connected or may be."""
        nodes = self._metadata.cluster().nodes
        start = int(self._random() * len(nodes))
        found: tuple[Node | None, bool] = self.states.least_loaded(nodes, start, self._max_in_flight, now)
        return found

    def unready_reason(self, node_id: int, now: float) -> str | None:
        """Why a node takes no request now, in words; None if it takes one."""
        if self.can_send(node_id, now):
            return None
        return describe_unready(self._nodes.get(node_id), now)

    def in_flight_count(self, node_id: int | None = None) -> int:
        """How many requests wait for an answer, of one node or of all."""
        if node_id is None:
            return int(self.in_flight)
        connection = state.connection if (state := self._nodes.get(node_id)) is not None else None
        return connection.in_flight.count if connection is not None else 0

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
        """Sends without a look at readiness: for the client's own requests."""
        self._transmit(self._nodes[request.node_id], request, now)

    @cython.cfunc
    def _transmit(self, state: NodeState, request: ClientRequest, now: cython.double) -> None:
        connection: Connection = state.connection
        request.created = now
        channel: Channel = state.channel
        before: cython.Py_ssize_t = channel.pending
        failure: Any = None
        try:
            buffers: list[Any] = connection.encode(request, self._correlation, now)
            # No answer will end the turn, or the caller waits for the writing: its end has to end the turn.
            prompt = request.on_written is not None or not request.expect_response
            channel.write(buffers, request.release, prompt)
        except Exception as error:  # noqa: BLE001 - the request must complete in any case
            # No version in common, or a request that cannot be built: it completes with that error.
            failure = error if isinstance(error, KafkaError) else KafkaError(f"Cannot build {request!r}: {error!r}")
        if failure is not None:
            # Not in the except clause: see ``OutcomeHandler._split``.
            connection.withdraw(request)
            request.release(False)
            self._complete(ClientResponse(request, now, error=failure))
            return
        self._correlation = 0 if self._correlation == _MAX_CORRELATION else self._correlation + 1
        self.in_flight += 1
        size: cython.Py_ssize_t = channel.pending - before
        self._requests.record(size)
        self._bytes_out.record(size)
        node: NodeSensors = state.sensors
        node.count_request(size)
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
            wait = self._metadata.due_at
            wait -= now
        if wait <= 0:
            wait = self._updater.maybe_update(now)
        # A deadline is over only after its time: a wake-up exactly at it would find nothing, again and again.
        wait = min(timeout_ms, wait, self._next_check - now + 1)
        if len(self._completed) > 0 or wait < 0:
            wait = 0
        channels: list[Any] = self._selector.turn(wait, now)
        after: cython.double = self._clock.now()
        self._io_wait_ns.record((after - now) * 1e6)
        channel: Channel
        for channel in channels:
            self._serve(channel, after)
        if self._connector.waiting:
            self._connector.poll(after)
        if self._handshakes.waiting:
            self._handshakes.poll(after)
        if after > self._next_check:
            self._check(after)
        self._deliver()
        end: cython.double = self._clock.now()
        self._io_ns.record((end - after) * 1e6)
        return end

    def wakeup(self) -> None:
        """Ends the wait of this turn, or of the next one; any thread, any signal handler."""
        self._selector.wakeup()

    @cython.cfunc
    def _serve(self, channel: Channel, now: cython.double) -> None:
        state: NodeState = channel.context  # type: ignore[assignment]
        if not self._is_open(state, channel, now):
            return
        connection: Connection = state.connection
        done: list[Any] = []
        failure = None
        connection.take_written(now, done)
        if channel.received_size > 0:
            try:
                received = channel.copied() if channel.received_size <= COPY_BELOW_BYTES else channel.received()
                used: cython.Py_ssize_t = connection.receive(received, now, done)
                if used > 0:
                    channel.consume(used)
            except KafkaError as error:
                failure = error
        for item in done:
            self._finish(state, item, now)
        if state.channel is not channel:
            return
        if failure is not None:
            self._lose(state, failure, now)
        elif channel.state == CLOSED:
            self._failed(state, channel.error, now)

    @cython.cfunc
    @cython.exceptval(-1)
    def _is_open(self, state: NodeState, channel: Channel, now: cython.double) -> cython.bint:
        """Whether the channel is the node's; begins the handshake if it has just become that."""
        if state.channel is not channel and not self._connector.heard(state, channel, now):
            return False
        if state.state is CONNECTING:
            self._metrics.connections_created.record(1)
            self._handshakes.begin(state, now)
        # The handshake may have failed with its first request, which gives the connection up.
        return state.channel is channel

    @cython.cfunc
    def _finish(self, state: NodeState, response: ClientResponse, now: cython.double) -> None:
        request: ClientRequest = response.request
        self.in_flight -= 1
        size: cython.Py_ssize_t = response.size
        if size > 0:
            self._responses.record(size)
            self._bytes_in.record(size)
            node: NodeSensors = state.sensors
            node.count_response(size, now - request.sent)
            throttle: cython.int = getattr(response.body, "throttle_time_ms", 0)
            if throttle > 0 and client_throttles(request.api_key, request.version):
                response.throttle_ms = throttle
                self.states.throttle(state, now + throttle)
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
        # Requests that callbacks complete wait for the next turn: a callback may always send another.
        completed: list[Any] = self._completed
        if len(completed) > 0:
            self._completed = []
            for item in completed:
                self._run(item)

    @cython.cfunc
    def _run(self, response: ClientResponse) -> None:
        try:
            response.request.on_complete(response)
        except Exception as error:  # noqa: BLE001 - the caller's code must not stop the sender
            self._log.exception("Uncaught error in request completion of %r", response, error=error)
            self._metadata.note_uncaught(error, response.received)

    # -- connections --------------------------------------------------------------------------------------------

    def connect(self, node: Node, now: float) -> None:
        """Begins a connection."""
        self._log.debug("Connecting to node %s", node)
        state = self.states.connecting(node, now)
        state.sensors = self._metrics.node(node.id, now)
        self.check_at(now + state.setup_timeout_ms)
        self._connector.begin(state, now)

    def retry_delay(self, now: float) -> float:
        """Ms until some node may be tried again; at least 1, whatever the back-off."""
        delays = [self.states.poll_delay(node.id, now) for node in self._metadata.cluster().nodes]
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
        """Makes a turn at ``when``, or soon after it, look for what is overdue."""
        self._next_check = min(self._next_check, when)

    def _check(self, now: float) -> None:
        """Gives up what is overdue, closes the connection that is idle for the longest time, sets the next check."""
        self._next_check = _INFINITY
        max_idle = self._options.connections_max_idle_ms
        unused: tuple[float, Any] = (_INFINITY, None)
        for state in list(self._nodes.values()):
            due = state.overdue_at()
            if now > due:
                self._lose(state, timeout_error(state), now, state.state is not State.CONNECTING)
                continue
            self.check_at(due)
            self._connector.go_on(state, now)
            if state.state is READY:
                if now >= state.reauthenticate_at:
                    self._handshakes.authenticate_again(state, now)
                self.check_at(state.reauthenticate_at)
            unused = min(unused, (state.idle_at(max_idle), state), key=itemgetter(0))
        if now > unused[0]:
            # One for each turn, the oldest: if many were closed at once, many would be opened at once.
            self._log.debug("Closing the connection to %s, idle for connections.max.idle.ms", unused[1].node)
            self._drop(unused[1], None, now, False)
            self.check_at(now - 1)
        else:
            self.check_at(unused[0])
        self._handshakes.check(now)
        self._updater.maybe_rebootstrap(now)

    def _failed(self, state: NodeState, cause: BaseException | None, now: float) -> None:
        """The connection ended by itself, or could not be made."""
        self._lose(state, loss_error(state, cause), now)

    def _shut(self, channel: Channel) -> None:
        self._selector.close(channel)
        self._metrics.connections_closed.record(1)

    def _lose(self, state: NodeState, error: KafkaError, now: float, timed_out: bool = False) -> None:
        level, kind, text = describe_loss(state, error, timed_out)
        self._log.log(level, (kind, state.node), now, "%s", text)
        state.last_error = error
        if self.states.on_loss is not None:
            self.states.on_loss(state, error)
        self._drop(state, error, now, timed_out)
        self._updater.disconnected(state, error, now)

    def _drop(self, state: NodeState, error: KafkaError | None, now: float, timed_out: bool) -> None:
        channel, connection, setup = state.channel, state.connection, state.setup
        state.channel = state.connection = state.setup = None
        if error is None:
            self.states.closed(state)
        elif isinstance(error, AuthenticationError):
            self.states.authentication_failed(state, error, now)
            self._metrics.authentications_failed.record(1)
        else:
            self.states.disconnected(state, now)
        self.versions.remove(state.node.id)
        self._connector.give_up(state)
        if channel is not None:
            # This releases the buffers that were not written, before their requests complete.
            self._shut(channel)
        if setup is not None:
            setup.close()
        if connection is not None:
            for response in connection.abort(now, error, timed_out):
                self.in_flight -= 1
                self._complete(response)
