"""A request, its response, and the queue of one connection's requests that wait for a response.

Brokers answer in the order of arrival, so a queue is enough to match the two.  Every request that
``NetworkClient.send`` took completes exactly once, and releases its buffers exactly once.
Everything here belongs to the sender's thread.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import cython

from forebay.errors import DisconnectError, IllegalStateError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from forebay.errors import KafkaError

log = logging.getLogger("forebay.network")

_INFINITY: float = float("inf")


@cython.freelist(8)
@cython.cclass
class ClientRequest:
    """One request to one node.

    Args:
        node_id: of the node it is for.
        api_key: Kafka's number of the API.
        min_version: oldest version ``build`` can make.
        max_version: newest; the one used is the newest that the broker knows too.
        build: from the chosen version to the body, a list of bytes-like objects whose ``len`` is their size in
            bytes.  They are not copied, so they must not change until ``on_written``.
        parse: from the version and the bytes after the response's header to the response.  It keeps no reference to
            those bytes.
        timeout_ms: from being queued for the socket until the whole connection is given up.
        on_complete: gets the ClientResponse, once, at the end of ``NetworkClient.poll`` (or in ``close``).
        on_written: gets True once the last byte was taken by the system, or False once the channel is closed and
            will not read the buffers again.  It makes the end of the write end the selector's turn; leave it out if
            ``on_complete`` is early enough.
        expect_response: False completes the request, without a body, as soon as it is written (acks=0).
        internal: of the client's own (metadata, version check): ``on_complete`` runs at once, before the users'.
        context: for the caller.
    """

    def __init__(
        self,
        node_id: cython.int,
        api_key: cython.int,
        min_version: cython.int,
        max_version: cython.int,
        build: Callable[[int], list[Any]],
        parse: Callable[[int, Any], object],
        *,
        timeout_ms: cython.double,
        on_complete: Callable[[ClientResponse], None],
        on_written: Callable[[bool], object] | None = None,
        expect_response: cython.bint = True,
        internal: cython.bint = False,
        context: object = None,
    ) -> None:
        self.fill(node_id, api_key, min_version, max_version, build, parse, timeout_ms, on_complete, context)
        self.on_written = on_written
        self.expect_response = expect_response
        self.internal = internal

    @cython.cfunc
    @cython.exceptval(check=False)
    def fill(
        self,
        node_id: cython.int,
        api_key: cython.int,
        min_version: cython.int,
        max_version: cython.int,
        build: Any,
        parse: Any,
        timeout_ms: cython.double,
        on_complete: Any,
        context: object,
    ) -> cython.void:
        """Sets what every request has, without the cost of the constructor's keywords."""
        self.node_id = node_id
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version
        self.build = build
        self.parse = parse
        self.timeout_ms = timeout_ms
        self.on_complete = on_complete
        self.on_written = None
        self.expect_response = True
        self.internal = False
        self.context = context
        self.version = -1
        self.correlation_id = -1
        self.created = 0.0
        self.sent = 0.0
        # Later by the time for which the broker throttles.
        self.deadline = _INFINITY
        self.written = False
        self.released = False

    def release(self, written: bool) -> None:
        """The channel does not read the buffers any more; only the first call counts."""
        # A plain method, because it is passed as an object; a C method cannot be.
        if self.released:
            return
        self.released = True
        self.written = written
        if self.on_written is None:
            return
        try:
            self.on_written(written)
        except Exception as error:
            # It runs inside the selector's turn, which serves all connections.
            log.error("on_written of %r failed", self, exc_info=error)

    def __repr__(self) -> str:
        return (
            f"<ClientRequest api={self.api_key} v{self.version} node={self.node_id} correlation={self.correlation_id}>"
        )


@cython.freelist(8)
@cython.cclass
class ClientResponse:
    """How a request ended.

    ``body`` is what ``parse`` returned, None if there was no answer.  ``disconnected``: the connection ended
    first; with ``timed_out`` because an answer on it was overdue.  The broker may or may not have acted.
    ``error`` is why there is no body: UnsupportedVersionError (nothing was sent), AuthenticationError,
    ProtocolError, else a DisconnectError or TimeoutError; None after success.  ``received`` is in monotonic ms,
    ``size`` is the answer's bytes, ``throttle_ms`` the time for which the node takes no requests because of it.
    """

    def __init__(
        self,
        request: ClientRequest,
        received: cython.double,
        *,
        body: object = None,
        error: KafkaError | None = None,
        disconnected: cython.bint = False,
        timed_out: cython.bint = False,
        size: cython.Py_ssize_t = 0,
    ) -> None:
        self.request = request
        self.received = received
        self.body = body
        self.error = error
        self.disconnected = disconnected
        self.timed_out = timed_out
        self.size = size
        # Set by the client, which knows whether it has to wait (KIP-219).
        self.throttle_ms = 0.0

    @property
    def failure(self) -> KafkaError | None:
        """``error`` for this request; its flags say whether another attempt may help.

        A ProtocolError ends the connection with all requests on it.  For each of these it is a lost connection: as a
        ProtocolError it would look like the broker's final answer to this request.
        """
        if not self.disconnected or not isinstance(self.error, ProtocolError):
            return self.error
        lost = DisconnectError(str(self.error))
        lost.__cause__ = self.error
        return lost

    @property
    def latency_ms(self) -> float:
        """From being queued for the socket to the answer."""
        return self.received - self.request.sent

    def __repr__(self) -> str:
        how = "disconnected" if self.disconnected else repr(self.error or self.body)
        return f"<ClientResponse {self.request!r}: {how}>"


@cython.cfunc
def answer_to(request: ClientRequest, received: cython.double, body: object, size: cython.Py_ssize_t) -> ClientResponse:
    """The response to a request that was answered."""
    response: ClientResponse = ClientResponse.__new__(ClientResponse)
    response.request = request
    response.received = received
    response.body = body
    response.error = None
    response.disconnected = False
    response.timed_out = False
    response.size = size
    response.throttle_ms = 0.0
    return response


@cython.cclass
class InFlightRequests:
    """Requests in the order they were sent."""

    def __init__(self) -> None:
        self._requests: list[ClientRequest] = []  # few: max.in.flight.requests.per.connection
        self.count = 0

    @cython.ccall
    @cython.exceptval(-1)
    def add(self, request: ClientRequest) -> cython.int:
        self._requests.append(request)
        self.count += 1
        return 0

    @cython.ccall
    def first(self) -> ClientRequest:
        """The oldest, whose answer comes next.

        Raises:
            IllegalStateError: there is none.
        """
        if not self.count:
            raise IllegalStateError("There are no in-flight requests to this node")
        return self._requests[0]

    @cython.ccall
    def complete_next(self) -> ClientRequest:
        """Removes and returns the oldest."""
        request: ClientRequest = self.first()
        self._requests.pop(0)
        self.count -= 1
        return request

    @cython.ccall
    def last_sent(self) -> ClientRequest:
        """The newest.

        Raises:
            IllegalStateError: there is none.
        """
        if not self.count:
            raise IllegalStateError("There are no in-flight requests to this node")
        return self._requests[self.count - 1]

    @cython.ccall
    def complete_last_sent(self) -> ClientRequest:
        """Removes and returns the newest."""
        request: ClientRequest = self.last_sent()
        self._requests.pop()
        self.count -= 1
        return request

    @cython.ccall
    def take_written(self) -> list[Any]:
        """Removes and returns the written requests without an answer, oldest first; others may stand between them."""
        done: list[Any] = []
        kept: list[Any] = []
        for item in self._requests:
            request: ClientRequest = item
            (kept if request.expect_response or not request.written else done).append(request)
        self._requests = kept
        self.count -= len(done)
        return done

    @cython.ccall
    def waiting(self) -> list[Any]:
        """All, oldest first."""
        return list(self._requests)

    @cython.ccall
    def clear(self) -> list[Any]:
        """Removes and returns all, oldest first."""
        requests: list[Any] = list(self._requests)
        self._requests.clear()
        self.count = 0
        return requests

    @cython.ccall
    @cython.exceptval(check=False)
    def deadline(self) -> cython.double:
        """The earliest deadline in monotonic ms; timeouts differ, so it may not be the oldest request's."""
        earliest: cython.double = _INFINITY
        for item in self._requests:
            request: ClientRequest = item
            earliest = min(earliest, request.deadline)
        return earliest

    @cython.ccall
    def postpone(self, ms: cython.double) -> cython.void:
        """Makes every deadline later by ``ms``: the broker throttles for that time (KIP-219)."""
        for item in self._requests:
            request: ClientRequest = item
            request.deadline += ms
