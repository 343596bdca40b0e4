"""Moves the bytes of many channels at once; knows nothing of Kafka.

``SocketSelector.turn`` is one section without the GIL for all channels: it writes what is queued, waits in poll(2),
reads what is there and writes what became writable.  Then, under the GIL, filters (TLS) turn what came into the bytes
of their streams, and the turn reports what happened.  All of it belongs to the sender's thread, except ``wakeup``.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import cython
from cython.cimports.forebay._network._io import (
    CLOSED,
    CONNECTING,
    ENDED,
    FAILED,
    OPEN,
    OPENED,
    READ,
    READABLE,
    WRITABLE,
    WROTE,
    PollSetPointer,
    SocketPointer,
    add_socket,
    connect_result,
    free_pollset,
    new_pollset,
    receive_some,
    remove_socket,
    seen,
    send_some,
    set_wake_fd,
    wait_ready,
    wake_pollset,
    watch,
)
from cython.cimports.forebay._runtime.clock import monotonic_ms

from forebay._network.channel import Channel
from forebay._network.transport import TcpTransport, WakePipe
from forebay._runtime.gil import GilClaim
from forebay.errors import DisconnectError, KafkaError, NetworkError

if TYPE_CHECKING:
    from forebay._network.transport import Address, StreamFilter

MAX_WRITE_UNDER_GIL = cython.declare(cython.longlong, 16_000)
"""Bytes that a turn writes before it gives up the GIL: less than a full batch.  Giving it up wakes a thread that waits
for it, and the system may run that thread first, for some milliseconds."""


@cython.cclass
class Selector:
    """What the network client needs; here over sockets, in ``forebay.testing.memory`` without any.

    ``claim`` is set while the thread that runs the turns waits for the GIL.  Compiled, so that a turn over sockets is
    no Python call.
    """

    def __init__(self) -> None:
        self.claim = GilClaim()

    def open(
        self,
        address: Address,
        *,
        context: object,
        now: float,
        send_buffer: int,
        receive_buffer: int,
        stream_filter: StreamFilter | None = None,
    ) -> Channel:
        """Begins a connection to a numeric address without waiting; errors arrive as a CLOSED channel in a later turn.

        Args:
            address: of the peer.
            context: kept in ``Channel.context``.
            now: monotonic ms.
            send_buffer: bytes, -1 for the system's default (``send.buffer.bytes``).
            receive_buffer: bytes, -1 for the system's default (``receive.buffer.bytes``).
            stream_filter: between the connection's bytes and the channel's stream (TLS).
        """
        raise NotImplementedError

    @cython.ccall
    def turn(self, timeout_ms: cython.double, now: cython.double) -> list[Any]:
        """Moves bytes; waits up to ``timeout_ms``, a fraction or infinite, for something to happen.

        Returns:
            The channels that became OPEN, became CLOSED by themselves, received bytes, or ended a write with
            ``prompt``, each once.
        """
        raise NotImplementedError

    def close(self, channel: Channel) -> None:
        """Closes a channel; open writes end with ``on_written(False)``.  A closed channel stays as it is."""
        raise NotImplementedError

    def close_all(self) -> None:
        """Closes every channel."""
        raise NotImplementedError

    def close_after_fork(self) -> None:
        """In a forked child, or if a producer could not be made: closes its descriptors and does nothing else."""
        raise NotImplementedError

    def wakeup(self) -> None:
        """Ends this turn, or else the next one, at once.  Any thread, any signal handler; never raises."""
        raise NotImplementedError


@cython.cclass
class SocketSelector(Selector):
    """The selector over real sockets."""

    def __init__(self) -> None:
        super().__init__()
        self.pipe = WakePipe()
        self.wake_fd = self.pipe.writer
        try:
            self.pollset = new_pollset(self.pipe.reader)
        except BaseException:
            self.pipe.close()
            raise
        channels: list[Channel] = []
        crowded: list[Channel] = []
        self.channels = channels
        self.crowded = crowded
        self.next_id = 0

    def __dealloc__(self) -> None:
        free_pollset(self.pollset)

    def open(
        self,
        address: Address,
        *,
        context: object,
        now: float,
        send_buffer: int,
        receive_buffer: int,
        stream_filter: StreamFilter | None = None,
    ) -> Channel:
        """See ``Selector.open``."""
        code: cython.int = 0
        transport: TcpTransport | None = None
        try:
            transport = TcpTransport.connect(address, send_buffer, receive_buffer)
        except OSError as error:
            code = error.errno or errno.ENETUNREACH
        channel = Channel(self.next_id, context, str(address), transport, now, stream_filter)
        self.next_id += 1
        if code:
            channel.socket.error = code
            channel.socket.events = FAILED
        self.channels.append(channel)
        add_socket(self.pollset, channel.socket)
        return channel

    @cython.ccall
    def turn(self, timeout_ms: cython.double, now: cython.double) -> list[Any]:
        """See ``Selector.turn``; a signal ends the wait early."""
        if self.crowded:
            self._make_rooms()
        self._move_bytes(timeout_ms, now + timeout_ms)
        return self._settle(now)

    def close(self, channel: Channel) -> None:
        """See ``Selector.close``."""
        self._remove(channel)
        channel.shut(None)

    def close_all(self) -> None:
        """See ``Selector.close_all``.  The wake pipe stays open: another thread may be about to write to it."""
        channel: Channel
        for channel in list(self.channels):
            self.close(channel)

    def close_after_fork(self) -> None:
        """See ``Selector.close_after_fork``.  poll(2) registers nothing, so the parent does not notice."""
        set_wake_fd(self.pollset, -1)
        self.wake_fd = -1
        self.pipe.close()
        channel: Channel
        for channel in self.channels:
            if channel.transport is not None:
                channel.transport.close()

    def wakeup(self) -> None:
        """See ``Selector.wakeup``.  All calls during one wait write one byte into the pipe; without a wait none."""
        wake_pollset(self.pollset, self.wake_fd)

    @cython.cfunc
    def _make_rooms(self) -> cython.void:
        # Not at the end of the earlier turn: the owner may have consumed enough since then.
        channel: Channel
        for channel in self.crowded:
            if channel.state == OPEN:
                channel._make_room()
        self.crowded.clear()

    @cython.cfunc
    @cython.exceptval(check=False)
    def _move_bytes(self, timeout_ms: cython.double, until: cython.double) -> cython.void:
        # A large write is many small ones, as the system takes them.  None of these but the last ends the turn: each
        # would cost a turn of the sender, and the GIL.
        pollset: PollSetPointer = self.pollset
        claim: GilClaim = self.claim
        at: cython.int
        for at in range(pollset.size):
            _write(pollset.sockets[at], MAX_WRITE_UNDER_GIL)
        going: cython.bint = True
        with cython.nogil:
            while going:
                for at in range(pollset.size):
                    if _before_wait(pollset, at):
                        timeout_ms = 0
                going = wait_ready(pollset, timeout_ms)
                for at in range(pollset.size):
                    _after_wait(pollset.sockets[at], seen(pollset, at))
                    if _has_news(pollset.sockets[at]):
                        going = False
                if going:
                    timeout_ms = max(0.0, until - monotonic_ms())
            claim.begin(monotonic_ms())
        claim.end()
        pollset.ready_count = 0
        for at in range(pollset.size):
            if pollset.sockets[at].events:
                pollset.ready[pollset.ready_count] = at
                pollset.ready_count += 1

    @cython.cfunc
    def _settle(self, now: cython.double) -> list[Any]:
        pollset: PollSetPointer = self.pollset
        changed: list[Channel] = []
        # Collected first: a callback that opens or closes a channel reorders the sockets.
        ready: list[Channel] = [self.channels[pollset.ready[at]] for at in range(pollset.ready_count)]
        pollset.ready_count = 0
        channel: Channel
        for channel in ready:
            if channel.state != CLOSED and self._settle_one(channel, now):
                changed.append(channel)
        return changed

    @cython.cfunc
    def _settle_one(self, channel: Channel, now: cython.double) -> cython.bint:
        socket: SocketPointer = channel.socket
        events: cython.int = socket.events
        socket.events = 0
        if channel.filter is not None:
            events = _filtered(channel, events, now)
        elif events & OPENED:
            channel.mark_open(now)
        changed: cython.bint = events & (OPENED | READ | ENDED | FAILED) != 0
        if events & READ:
            channel.received_size = socket.end - socket.begin
            channel.last_active = now
        if socket.end == socket.capacity and channel.state == OPEN:
            self.crowded.append(channel)
        if events & WROTE:
            channel.last_active = now
            if channel._complete():
                changed = True
        if channel.state == CLOSED:
            return False  # a callback closed it, so the owner knows
        if events & FAILED:
            self._remove(channel)
            channel.shut(_failure(channel, socket.error))
        elif events & ENDED:
            self._remove(channel)
            channel.shut(_end(channel))
        return changed

    @cython.cfunc
    def _remove(self, channel: Channel) -> cython.void:
        at: cython.int = channel.socket.index
        if at < 0:
            return
        remove_socket(self.pollset, channel.socket)
        last = self.channels.pop()
        if last is not channel:
            self.channels[at] = last


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write(socket: SocketPointer, most: cython.longlong) -> cython.void:
    """Writes what is queued, unless it is more than ``most`` bytes."""
    if socket.state == OPEN and socket.error == 0 and 0 < socket.queued - socket.written <= most:
        socket.error = send_some(socket)
        if socket.error:
            socket.events |= FAILED


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _before_wait(pollset: PollSetPointer, at: cython.int) -> cython.bint:
    """Writes what is queued and asks for the events to wait for.  True: there are events already, so do not wait."""
    socket: SocketPointer = pollset.sockets[at]
    queued: cython.bint = socket.state == OPEN and socket.queued > socket.written
    if queued:
        _write(socket, socket.queued)
        queued = socket.queued > socket.written
    if socket.state == CONNECTING:
        watch(pollset, at, WRITABLE)
    else:
        watch(pollset, at, READABLE | (WRITABLE if queued else 0))
    return _has_news(socket)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _has_news(socket: SocketPointer) -> cython.bint:
    """Whether something has happened that ends a turn: more than that a part of a write was taken."""
    if socket.events & ~WROTE != 0:
        return True
    return socket.events & WROTE != 0 and socket.prompt and socket.written >= socket.due


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _after_wait(socket: SocketPointer, ready: cython.int) -> cython.void:
    """Acts on what poll(2) found; the socket's events say what happened."""
    if ready:
        error: cython.int = 0
        if socket.state == CONNECTING:
            error = connect_result(socket.fd)
            if error == 0:
                socket.state = OPEN
                socket.events |= OPENED
        elif ready & READABLE:
            error = receive_some(socket)  # even if a write failed: a last answer may have come before the end
        if socket.error == 0:
            socket.error = error
        if socket.error == 0 and socket.state == OPEN and socket.queued > socket.written and ready & WRITABLE:
            socket.error = send_some(socket)
        if socket.error:
            socket.events |= FAILED


@cython.cfunc
@cython.exceptval(-1)
def _filtered(channel: Channel, events: cython.int, now: cython.double) -> cython.int:
    """The events of the stream behind a filter, from the events of its descriptor."""
    if events & FAILED and channel.failure is not None:
        return events & ~(OPENED | READ)
    if events & OPENED:
        channel.start_filter()
        if channel.failure is not None:
            return FAILED
    news: cython.int = channel.filter_input(now) if events & (OPENED | READ) else 0
    # Bytes that the filter queued are written in the next turn, which does not wait then.
    return (events & ~(OPENED | READ)) | news


@cython.cfunc
def _end(channel: Channel) -> object:
    """The peer closed the connection."""
    if channel.state == CONNECTING:
        return NetworkError(f"cannot connect to {channel.peer}: {channel.filter.cut_off()}")
    return DisconnectError(f"{channel.peer} closed the connection")


@cython.cfunc
def _failure(channel: Channel, code: cython.int) -> object:
    failure: object = channel.failure
    if failure is not None:
        if isinstance(failure, KafkaError):
            return failure
        return DisconnectError(f"connection to {channel.peer} lost: {failure!r}")
    text = f"{errno.errorcode.get(code, code)}: {os.strerror(code)}"
    if channel.state == CONNECTING:
        return NetworkError(f"cannot connect to {channel.peer}: {text}")
    return DisconnectError(f"connection to {channel.peer} lost: {text}")
