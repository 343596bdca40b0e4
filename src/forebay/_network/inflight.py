"""A request, its response, and the queue of requests on one connection that still wait for theirs.

Brokers answer in the order of arrival, so the queue is all that is needed to match the two.  Every request that
``NetworkClient.send`` took completes exactly once, and is told exactly once that its buffers may be let go.
Everything here belongs to the sender thread.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import cython

from forebay.errors import DisconnectError, IllegalStateError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from forebay.errors import KafkaError

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
            bytes.  They are not copied: they must not change until ``on_written``.
        parse: from the version and the bytes after the response's header to the response.  It keeps nothing of
            those bytes.
        timeout_ms: from being queued for the socket until the whole connection is given up.
        on_complete: gets the ClientResponse, once, at the end of ``NetworkClient.poll`` (or in ``close``).
        on_written: gets True once the last byte was taken by the system, or False once the channel is closed and
            will not touch the buffers again.  Leave it out where ``on_complete`` is early enough: it ends the
            selector's turn at the moment of writing.
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
        """What every request has; the constructor's keywords cost a fifth of a request on its way."""
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
        # Moves back when the broker throttles: that time is not the request's fault.
        self.deadline = _INFINITY
        self.written = False
        self.released = False

    def release(self, written: bool) -> None:
        """The channel's word that it is done with the buffers; only the first counts."""
        # A plain method: it is handed over as an object, which a C method cannot be.
        if self.released:
            return
        self.released = True
        self.written = written
        if self.on_written is None:
            return
        try:
            self.on_written(written)
        except Exception as error:
            # It runs inside the selector's turn, which other connections share.
            logging.getLogger("forebay.network").error("on_written of %r failed", self, exc_info=error)

    def __repr__(self) -> str:
        return (
            f"<ClientRequest api={self.api_key} v{self.version} node={self.node_id} correlation={self.correlation_id}>"
        )


@cython.freelist(8)
@cython.cclass
class ClientResponse:
    """How a request ended.

    ``body`` is what ``parse`` made of the answer, None if there is none.  ``disconnected``: the connection ended
    first, with ``timed_out`` because an answer on it was overdue; the broker may or may not have acted.
    ``error`` is why there is no body: UnsupportedVersionError (nothing was sent), AuthenticationError,
    ProtocolError, else a DisconnectError or TimeoutError; None after success.  ``received`` is in monotonic ms,
    ``size`` the answer's bytes, ``throttle_ms`` what the node is muted for because of it.
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
        # Set by the client, which knows whether waiting is its part.
        self.throttle_ms = 0.0

    @property
    def failure(self) -> KafkaError | None:
        """``error`` as it concerns this request, to be asked whether another try may help.

        Bytes that make no sense end a connection, and every request on it, whichever they were meant for: for the
        request that is a lost connection.  A ProtocolError that stays one would pass for the broker's last word.
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
        """The one whose answer comes next.

        Raises:
            IllegalStateError: there is none.
        """
        if not self.count:
            raise IllegalStateError("There are no in-flight requests to this node")
        return self._requests[0]

    @cython.ccall
    def complete_next(self) -> ClientRequest:
        """Takes out the oldest."""
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
        """Takes out the newest."""
        request: ClientRequest = self.last_sent()
        self._requests.pop()
        self.count -= 1
        return request

    @cython.ccall
    def take_written(self) -> list[Any]:
        """Takes out those that expect no answer and are written, oldest first; answers may be owed before and after."""
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
        """Takes out all, oldest first."""
        requests: list[Any] = list(self._requests)
        self._requests.clear()
        self.count = 0
        return requests

    @cython.ccall
    @cython.exceptval(check=False)
    def deadline(self) -> cython.double:
        """The earliest deadline in monotonic ms; timeouts differ, so it need not be the oldest's."""
        earliest: cython.double = _INFINITY
        for item in self._requests:
            request: ClientRequest = item
            earliest = min(earliest, request.deadline)
        return earliest

    @cython.ccall
    def postpone(self, ms: cython.double) -> cython.void:
        """Moves every deadline back: the broker held its answers for that long on purpose (KIP-219)."""
        for item in self._requests:
            request: ClientRequest = item
            request.deadline += ms
