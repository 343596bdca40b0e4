"""One connection's bytes: what waits to be written, what was received and not yet consumed, and how it ended.

Buffers given to ``write`` are not copied: they stay exported until the system has taken their bytes or the channel is
closed, and then ``on_written`` is called.  Owned by the sender's thread.  The states CONNECTING, OPEN and CLOSED are in
``_io``.
"""

from __future__ import annotations

import errno
import logging
from typing import Any

import cython
from cython.cimports.forebay._network._io import (
    CLOSED,
    CONNECTING,
    ENDED,
    FAILED,
    OPEN,
    OPENED,
    READ,
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
CANCELED = errno.ECANCELED
"""The code of a socket whose filter failed; ``Channel.failure`` has the words."""


@cython.cclass
class Channel:
    """One attempt at a connection, from its beginning to its end.

    Selectors call ``mark_open``, ``room``, ``filled``, ``outgoing``, ``sent`` and ``shut``; owners the others.
    What was received before the end stays readable after it.
    """

    def __init__(
        self, channel_id: int, context: object, peer: str, transport: Any, now: float, stream_filter: Any = None
    ) -> None:
        writes: list[tuple[int, Any]] = []
        early: list[tuple[list[Any], Any, bool]] = []
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
        self.filter = stream_filter
        self.failure = no_error
        self.early = early
        self.input = bytearray()
        self.writes = writes
        self.socket = new_socket(-1 if transport is None else transport.fileno())

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
        if self.filter is not None:
            self._write_filtered(buffers, on_written, prompt)
            return
        socket: SocketPointer = self.socket
        before: cython.Py_ssize_t = socket.count
        size: cython.Py_ssize_t = 0
        try:
            for data in buffers:
                size += hold(socket, data)
        except BaseException:
            drop_from(socket, before)
            raise
        socket.queued += size
        self.pending += size
        self._note_write(on_written, prompt)

    @cython.ccall
    def takes_more(self) -> cython.bint:
        """Whether all that was queued is written; if not, the end of the write will end the turn: a caller waits."""
        if self.pending > 0:
            self._wait_for(self.socket.queued)
        return self.pending == 0

    # -- with a filter -----------------------------------------------------------------------------------

    @cython.cfunc
    def start_filter(self) -> cython.void:
        """The connection is there: the filter's handshake begins, and the channel opens at its end."""
        self.socket.state = OPEN
        self._set_input(bytearray(INPUT_SIZE))
        try:
            self.filter.start()
        except Exception as error:  # noqa: BLE001 - as in ``filter_input``
            self._filter_failed(error)

    @cython.cfunc
    @cython.exceptval(-1)
    def filter_input(self, now: cython.double) -> cython.int:
        """Turns what the descriptor gave into the stream's bytes; returns the events that follow from it.

        New bytes are behind those that are not consumed yet.  The filter's result is no longer than they are, so it
        takes their place.
        """
        socket: SocketPointer = self.socket
        events: cython.int = 0
        plain_end: cython.Py_ssize_t = socket.begin + self.received_size
        try:
            if socket.end > plain_end:
                self.filter.feed(memoryview(self.input)[plain_end : socket.end])
                socket.end = plain_end
            if self.state == CONNECTING and self.filter.shake_hands():
                self.state = OPEN
                self.last_active = now
                events |= OPENED
                self._queue(self.filter.outgoing())  # the handshake's last bytes go first
                early, self.early = self.early, []
                for views, on_written, prompt in early:
                    self._write_filtered(views, on_written, prompt)
            while self.state == OPEN:
                size: cython.Py_ssize_t = self.filter.receive(self.room())
                if size <= 0:
                    events |= ENDED if size < 0 else 0
                    break
                self.filled(size, now)
                events |= READ
            # Always, because an answer of the protocol itself may wait there, such as one to a change of keys.
            self._queue(self.filter.outgoing())
        except Exception as error:  # noqa: BLE001 - whatever it is, this connection is over, and no other
            self._filter_failed(error)
            events |= FAILED
        return events

    @cython.cfunc
    def _write_filtered(self, buffers: list[Any], on_written: Any, prompt: cython.bint) -> cython.void:
        # All of it is filtered at once: then nothing of the buffers is needed any more, and each write's end in the
        # filtered stream is known.  A node gets a request only once the one before is written.
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        if self.state == CONNECTING:
            self.early.append((views, on_written, prompt))
            return
        data: Any = None
        try:
            data = self.filter.send(views)
        except Exception as error:  # noqa: BLE001 - the write ends as the channel does, in the next turn
            # No return in here: see ``OutcomeHandler._split``.
            self._filter_failed(error)
            self.writes.append((self.socket.queued + 1, on_written))
        if data is not None:
            self._queue(data)
            self._note_write(on_written, prompt)

    @cython.cfunc
    def _queue(self, data: bytes) -> cython.void:
        size: cython.Py_ssize_t = hold(self.socket, data)
        self.socket.queued += size
        self.pending += size

    @cython.cfunc
    def _note_write(self, on_written: Any, prompt: cython.bint) -> cython.void:
        socket: SocketPointer = self.socket
        self.writes.append((socket.queued, on_written))
        if prompt:
            self._wait_for(socket.queued)
        if socket.written == socket.queued:
            socket.events |= WROTE  # nothing to wait for: the next turn reports it

    @cython.cfunc
    def _wait_for(self, end: cython.longlong) -> cython.void:
        # An earlier end that is waited for comes first.
        if not self.socket.prompt:
            self.socket.prompt = True
            self.socket.due = end

    @cython.cfunc
    def _filter_failed(self, error: object) -> cython.void:
        # Nothing more is written but the filter's alert, which tells the peer why.
        self.failure = error
        self.socket.error = CANCELED
        self.socket.events |= FAILED
        self.transport.send_last(self.filter.outgoing())

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
        if self.filter is not None and self.state == OPEN and self.pending == 0 and self.failure is None:
            self.transport.send_last(self.filter.end())
        self.state = CLOSED
        self.socket.state = CLOSED
        self.error = error
        if self.transport is not None:
            self.transport.close()
        self.socket.fd = -1
        drop_from(self.socket, 0)
        self.pending = 0
        told = [on_written for _mark, on_written in self.writes]
        told += [on_written for _views, on_written, _prompt in self.early]
        self.writes = []
        self.early = []
        for on_written in told:
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
        if self.writes:
            socket.due = self.writes[0][0]
        else:
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
