"""One connection's side of the protocol, without I/O: requests to buffers, bytes to responses.

The client moves the bytes and reads the clock.  This module frames the bytes and matches answers with the requests in
flight.  Belongs to the sender's thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython
from cython.cimports.forebay._network.inflight import answer_to
from cython.cimports.forebay._protocol.framing import framed
from cython.cimports.forebay._runtime.primitives import bytes_at, bytes_pointer, get_int32

from forebay._network.inflight import ClientRequest, ClientResponse, InFlightRequests
from forebay._protocol.framing import correlation_id, frame_size, response_header, stranger
from forebay._protocol.versions import api_name, is_flexible, response_header_version
from forebay.errors import KafkaError, ProtocolError

if TYPE_CHECKING:
    from forebay._network.broker_versions import BrokerVersions
    from forebay.model import Node

# The broker's own default limit for requests (socket.request.max.bytes).  Answers to a producer are far smaller, and
# the first bytes of other protocols, read as a length, are far larger.
MAX_FRAME = 100 * 1024 * 1024


@cython.cclass
class Connection:
    """One connection, from its first request to its last.

    Args:
        node: for messages.
        client_id: goes into every request's header.
        max_frame: largest response taken, in bytes.
    """

    def __init__(self, node: Node, client_id: str, max_frame: cython.Py_ssize_t = MAX_FRAME) -> None:
        self.node = node
        self.client_id = client_id
        self._name: bytes | None = None if client_id is None else client_id.encode()
        self.max_frame = max_frame
        self.in_flight = InFlightRequests()
        # None until the handshake is over; until then each request names its version.
        versions: BrokerVersions | None = None
        self.versions = versions
        # The number of requests in flight without an answer (acks=0): these are done once they are written.
        self._unanswered = 0
        # The version and headers chosen for the latest request's API: nearly all are produce requests.
        self._kind_by: BrokerVersions | None = None
        self._kind_api = self._kind_oldest = self._kind_newest = self._kind_version = -1
        self._kind_flexible = self._kind_tagged = False

    @cython.ccall
    def encode(self, request: ClientRequest, correlation_id: cython.int, now: cython.double) -> list[Any]:
        """The request's bytes, its length first; it is in flight from now on.

        Raises:
            UnsupportedVersionError: no version in common; names the node.  Like all other errors here, it leaves
                nothing in flight.
        """
        if not self._is_known(request):
            self._learn(request)
        version: cython.int = self._kind_version
        request.version = version
        body: list[Any] = request.build(version)
        buffers: list[Any] = framed(request.api_key, version, self._kind_flexible, correlation_id, self._name, body)
        request.correlation_id = correlation_id
        request.sent = now
        request.deadline = now + request.timeout_ms
        self.in_flight.add(request)
        if not request.expect_response:
            self._unanswered += 1
        return buffers

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_known(self, request: ClientRequest) -> cython.bint:
        return (
            request.api_key == self._kind_api
            and request.min_version == self._kind_oldest
            and request.max_version == self._kind_newest
            and self._kind_by is self.versions
        )

    def _learn(self, request: ClientRequest) -> None:
        version: int = request.max_version
        if self.versions is not None:
            try:
                version = self.versions.choose(request.api_key, request.min_version, request.max_version)
            except KafkaError as error:
                raise error.with_context(node=str(self.node)) from None
        flexible = is_flexible(request.api_key, version)
        self._kind_by = self.versions
        self._kind_api, self._kind_version = request.api_key, version
        self._kind_oldest, self._kind_newest = request.min_version, request.max_version
        self._kind_flexible = flexible
        self._kind_tagged = response_header_version(request.api_key, version) == 1

    @cython.ccall
    def withdraw(self, request: ClientRequest) -> None:
        """Removes this request if it is the newest in flight: none of its bytes was queued."""
        if self.in_flight.count and self.in_flight.last_sent() is request:
            self.in_flight.complete_last_sent()
            if not request.expect_response:
                self._unanswered -= 1

    @cython.ccall
    @cython.exceptval(-1)
    def receive(self, data: Any, now: cython.double, completed: list[Any]) -> cython.Py_ssize_t:
        """Takes what has arrived and appends a ClientResponse to ``completed`` for each whole answer in it.

        Returns:
            How many bytes were used; the others have to be given again, with more.

        Raises:
            ProtocolError: the bytes do not answer a request; the connection cannot be used any more.
        """
        used: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t
        total: cython.Py_ssize_t = len(data)
        while total - used >= 4:
            size = int32_in(data, used)
            if size < 4 or size > self.max_frame:
                size = self._frame_size(data[used:])
            if total - used - 4 < size:
                self._check_begun(data[used:], size)
                break
            if not self.in_flight.count:
                raise ProtocolError(f"{self.node} sent {size} bytes that nothing was asked for")
            request: ClientRequest = self.in_flight.first()
            if not request.written:
                # To accept this as its answer would free buffers that the socket still reads.
                name = api_name(request.api_key)
                raise ProtocolError(f"{self.node} answered before its {name} request was written in full")
            completed.append(self._answer(request, data, used + 4, size, now))
            used += 4 + size
        return used

    @cython.ccall
    def take_written(self, now: cython.double, completed: list[Any]) -> None:
        """Completes the requests that expect no answer and were written."""
        if self._unanswered == 0:
            return
        for request in self.in_flight.take_written():
            self._unanswered -= 1
            completed.append(ClientResponse(request, now))

    @cython.ccall
    def abort(self, now: cython.double, error: KafkaError, timed_out: cython.bint) -> list[Any]:
        """A ClientResponse for every request in flight, in the order they were sent: the connection is gone."""
        self._unanswered = 0
        return [
            ClientResponse(request, now, error=error, disconnected=True, timed_out=timed_out)
            for request in self.in_flight.clear()
        ]

    def _check_begun(self, begun: Any, size: int) -> None:
        """Refuses bytes as soon as they cannot be an answer: no wait and no memory for the rest."""
        if not self.in_flight.count:
            raise ProtocolError(f"{self.node} sent {size} bytes that nothing was asked for")
        if len(begun) >= 8:
            self._check_correlation(self.in_flight.first(), correlation_id(begun[4:8]))

    def _check_correlation(self, request: ClientRequest, found: int) -> None:
        if found != request.correlation_id:
            raise ProtocolError(
                f"{self.node} answered with correlation id {found}, "
                f"the oldest request waiting has {request.correlation_id} ({api_name(request.api_key)})"
            )

    def _frame_size(self, data: Any) -> int:
        try:
            return frame_size(data, self.max_frame)
        except ProtocolError as error:
            begin = bytes(data[:40])
            told = ProtocolError(f"{self.node}: {error}; its answer begins {begin!r}")
            told.stranger = stranger(begin) is not None
            raise told from None

    @cython.cfunc
    def _answer(
        self, request: ClientRequest, data: Any, at: cython.Py_ssize_t, size: cython.Py_ssize_t, now: cython.double
    ) -> ClientResponse:
        found: cython.int = cython.cast(cython.int, int32_in(data, at))
        if found != request.correlation_id:
            self._check_correlation(request, found)
        start: cython.Py_ssize_t = at + self._header_size(request, data, at, size)
        try:
            body = request.parse(request.version, piece_of(data, start, at + size))
        except ProtocolError as error:
            raise error.with_context(node=str(self.node)) from None
        except Exception as error:
            # A parser that fails on the broker's bytes must not end the sender's loop.
            name = api_name(request.api_key)
            raise ProtocolError(f"{self.node}: cannot read its {name} v{request.version} answer: {error!r}") from error
        # Removed only now: a request with an unreadable answer fails with the others, in its order.
        self.in_flight.complete_next()
        return answer_to(request, now, body, size + 4)

    @cython.cfunc
    @cython.exceptval(-1)
    def _header_size(
        self, request: ClientRequest, data: Any, at: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        if request.api_key == self._kind_api and request.version == self._kind_version:
            if not self._kind_tagged:
                return 4
            if size > 4 and data[at + 4] == 0:
                return 5
        return cython.cast(
            cython.Py_ssize_t, response_header(request.api_key, request.version, data[at : at + size])[1]
        )


@cython.cfunc
def piece_of(data: Any, start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> Any:
    # Most answers are bytes: this path makes no slice object.
    if type(data) is bytes:
        return bytes_at(bytes_pointer(data), start, stop - start)
    return data[start:stop]


@cython.cfunc
@cython.exceptval(-1, check=True)
def int32_in(data: Any, at: cython.Py_ssize_t) -> cython.longlong:
    """The big-endian signed 32-bit number at an index of ``data``, which has four bytes there."""
    if type(data) is bytes:
        return get_int32(bytes_pointer(data), at)
    return int.from_bytes(data[at : at + 4], "big", signed=True)
