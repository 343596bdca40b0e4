"""One connection's bytes: what waits to be written, what was received and not yet consumed, and how it ended.

Buffers given to ``write`` are not copied: they stay exported until the system has taken their bytes or the channel is
closed, and then ``on_written`` is called.  Owned by the sender thread.  The states CONNECTING, OPEN and CLOSED are in
``_io``.
"""

from __future__ import annotations

import logging
from typing import Any

import cython
from cython.cimports.forebay._network._io import (
    CLOSED,
    CONNECTING,
    OPEN,
    WROTE,
    SocketPointer,
    advance,
    drop_from,
    free_socket,
    hold,
    new_socket,
    release_written,
    unsent,
)
from cython.cimports.forebay._runtime.primitives import bytearray_pointer, bytes_at, get_int32

from forebay.errors import IllegalArgumentError, IllegalStateError

log = logging.getLogger("forebay.network")

INPUT_SIZE = 8192
"""Bytes of input that an open channel always keeps: answers to produce requests are far smaller."""
INPUT_KEPT = 65536
"""A larger input buffer shrinks back once it is empty."""


@cython.cclass
class Channel:
    """One attempt at a connection, from its beginning to its end.

    Selectors call ``mark_open``, ``room``, ``filled``, ``outgoing``, ``sent`` and ``shut``; owners the others.
    What was received before the end stays readable after it.
    """

    def __init__(self, channel_id: int, context: object, peer: str, transport: Any, now: float) -> None:
        native: cython.bint = transport is not None and transport.native
        writes: list[tuple[int, Any]] = []
        self.id = channel_id
        no_error: Any = None
        self.state = CONNECTING
        self.error = no_error
        self.context = context
        self.last_active = now
        self.received_size = 0
        self.pending = 0
        self.peer = peer
        self.transport = transport
        self.input = bytearray()
        self.writes = writes
        self.socket = new_socket(-1 if transport is None else transport.fileno(), native)
        if transport is not None and not native:
            self.socket.wants = transport.wants

    def __dealloc__(self) -> None:
        free_socket(self.socket)

    def __repr__(self) -> str:
        state = ("CONNECTING", "OPEN", "CLOSED")[self.state]
        return f"<Channel {self.id} to {self.peer} {state} received={self.received_size} pending={self.pending}>"

    # -- for its owner -----------------------------------------------------------------------------------

    @cython.ccall
    def received(self) -> Any:
        """A view of what was received and not consumed; valid until ``consume``, ``take`` or the next turn."""
        return memoryview(self.input)[self.socket.begin : self.socket.end]

    @cython.cfunc
    def copied(self) -> bytes:
        """A copy of what was received and not consumed; cheaper than ``received`` for few bytes."""
        return bytes_at(self.socket.input, self.socket.begin, self.received_size)

    @cython.ccall
    def consume(self, size: cython.Py_ssize_t) -> cython.void:
        """Takes ``size`` bytes off the front of what was received."""
        if size < 0 or size > self.received_size:
            raise IllegalArgumentError(f"{self!r} cannot consume {size} bytes")
        self.received_size -= size
        self.socket.begin += size
        if self.received_size == 0:
            self.socket.begin = self.socket.end = 0
            if self.socket.capacity > INPUT_KEPT:
                self._set_input(bytearray(INPUT_SIZE))

    @cython.ccall
    def take(self, size: cython.Py_ssize_t) -> bytes:
        """A copy of the first ``size`` received bytes, which are consumed."""
        if size < 0 or size > self.received_size:
            raise IllegalArgumentError(f"{self!r} cannot give {size} bytes")
        begin: cython.Py_ssize_t = self.socket.begin
        data = bytes(memoryview(self.input)[begin : begin + size])
        self.consume(size)
        return data

    @cython.ccall
    def int32_at(self, at: cython.Py_ssize_t) -> cython.longlong:
        """The big-endian signed 32-bit number ``at`` bytes into what was received."""
        if at < 0 or at + 4 > self.received_size:
            raise IllegalArgumentError(f"{self!r} has no 4 bytes at {at}")
        return get_int32(self.socket.input, self.socket.begin + at)

    @cython.ccall
    def write(self, buffers: list[Any], on_written: Any, prompt: cython.bint = True) -> cython.void:
        """Queues bytes-like objects, in order, after all that were queued before; nothing is copied.

        Args:
            buffers: contiguous bytes-like objects, unchanged until they are written.
            on_written: called once, in a later ``turn`` or ``close``: with True when the system has taken all
                bytes, with False when the channel closed first.  Or None.
            prompt: the end of this write ends the selector's turn.  False if an answer will come: then
                ``on_written`` may be called as late as the answer.

        Raises:
            IllegalStateError: the channel is closed; nothing was taken.
        """
        if self.state == CLOSED:
            raise IllegalStateError(f"cannot write to {self!r}")
        socket: SocketPointer = self.socket
        before: cython.Py_ssize_t = socket.count
        size: cython.Py_ssize_t = 0
        try:
            for data in buffers:
                size += hold(socket, data if socket.native else memoryview(data))
        except BaseException:
            drop_from(socket, before)
            raise
        socket.queued += size
        self.pending += size
        self.writes.append((socket.queued, on_written))
        if prompt:
            socket.prompt = True
        if socket.written == socket.queued:
            socket.events |= WROTE  # nothing to wait for: the next turn reports it

    @cython.ccall
    def takes_more(self) -> cython.bint:
        """Whether all that was queued is written; if not, the end of the write will end the turn: a caller waits."""
        if self.pending > 0:
            self.socket.prompt = True
        return self.pending == 0

    # -- for selectors -----------------------------------------------------------------------------------

    @cython.ccall
    def mark_open(self, now: cython.double) -> cython.void:
        """The connection is open."""
        self.state = OPEN
        self.socket.state = OPEN
        self.last_active = now
        self._set_input(bytearray(INPUT_SIZE))

    @cython.ccall
    def room(self) -> Any:
        """The free space of the input as a writable view, never empty."""
        self._make_room()
        return memoryview(self.input)[self.socket.end : self.socket.capacity]

    @cython.ccall
    def filled(self, size: cython.Py_ssize_t, now: cython.double) -> cython.void:
        """``size`` bytes arrived in the view that ``room`` gave."""
        self.socket.end += size
        self.received_size += size
        self.last_active = now

    @cython.ccall
    def outgoing(self, limit: cython.Py_ssize_t) -> list[Any]:
        """At most ``limit`` of the queued buffers as views; the first without the bytes that are sent."""
        views: list[Any] = []
        at: cython.Py_ssize_t
        for at in range(limit):
            view = unsent(self.socket, at)
            if view is None:
                break
            views.append(view)
        return views

    @cython.ccall
    def sent(self, size: cython.Py_ssize_t, now: cython.double) -> cython.bint:
        """``size`` queued bytes are written.  True if this completed a write."""
        if size:
            advance(self.socket, size)
            self.last_active = now
        return self._complete()

    @cython.ccall
    def shut(self, error: object) -> cython.void:
        """Closes for good; the descriptor before the buffers, so that none of their bytes is written after this."""
        if self.state == CLOSED:
            return
        self.state = CLOSED
        self.socket.state = CLOSED
        self.error = error
        if self.transport is not None:
            self.transport.close()
        self.socket.fd = -1
        drop_from(self.socket, 0)
        self.pending = 0
        writes = self.writes
        self.writes = []
        for _mark, on_written in writes:
            _tell(self, on_written, False)

    @cython.cfunc
    def _complete(self) -> cython.bint:
        socket: SocketPointer = self.socket
        release_written(socket)
        self.pending = socket.queued - socket.written
        ended: cython.bint = False
        # The list is read anew each time: a callback may write, or close this channel.
        while self.writes and self.writes[0][0] <= socket.written:
            on_written = self.writes.pop(0)[1]
            ended = True
            if on_written is not None:
                _tell(self, on_written, True)
        if not self.writes:
            socket.prompt = False
        return ended

    @cython.cfunc
    def _make_room(self) -> cython.void:
        # Under the GIL, between turns.  A view given out earlier keeps the old bytearray alive.
        socket: SocketPointer = self.socket
        size: cython.Py_ssize_t = socket.end - socket.begin
        if socket.end < socket.capacity:
            return
        if 2 * size > socket.capacity or socket.capacity < INPUT_SIZE:
            grown = bytearray(max(2 * socket.capacity, INPUT_SIZE))
            grown[:size] = memoryview(self.input)[socket.begin : socket.end]
            self._set_input(grown)
        else:
            self.input[:size] = self.input[socket.begin : socket.end]
        socket.begin = 0
        socket.end = size

    @cython.cfunc
    def _set_input(self, data: bytearray) -> cython.void:
        self.input = data
        self.socket.input = bytearray_pointer(data)
        self.socket.capacity = len(data)


@cython.cfunc
def _tell(channel: Channel, on_written: Any, written: cython.bint) -> cython.void:
    if on_written is None:
        return
    try:
        on_written(written)
    except Exception:
        # The callback is the caller's; its error must not stop the other channels.
        log.exception("the callback of a write to %s failed", channel.peer)
