"""Moves the bytes of many channels at once and knows no Kafka.

``SocketSelector.turn`` is one section without the GIL for all channels: it writes what is queued, waits in
poll(2), reads what is there and writes what became writable; then, under the GIL, it tells what happened.  All of
it belongs to the sender's thread, except ``wakeup``.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, Protocol

import cython
from cython.cimports.forebay._network._io import (
    CLOSED,
    CONNECTING,
    ENDED,
    FAILED,
    OPEN,
    OPENED,
    POLLED,
    READ,
    READABLE,
    WRITABLE,
    WROTE,
    BankPointer,
    PortPointer,
    add_port,
    connect_result,
    free_bank,
    new_bank,
    receive_some,
    remove_port,
    seen,
    send_some,
    set_wake_fd,
    wait_ready,
    wake_bank,
    watch,
)
from cython.cimports.forebay._network.channel import Channel
from cython.cimports.forebay._network.serving import serve
from cython.cimports.forebay._runtime.clock import monotonic_ms
from cython.cimports.forebay._runtime.gil import GilClaim

from forebay._network.transport import PlainTransport, WakePipe
from forebay.errors import DisconnectError, NetworkError

if TYPE_CHECKING:
    from forebay._network.transport import Address, Connector, Transport

LITTLE = cython.declare(cython.longlong, 16_000)
"""Bytes that a turn writes before it gives up the GIL: less than a full batch.  Who gives it up wakes whoever waits for
it, and the system may well go on with that thread and come back after some milliseconds."""


class Selector(Protocol):
    """What the network client needs; here over sockets, in ``forebay.testing.memory`` without any."""

    claim: GilClaim
    """Set while the thread that runs the turns waits for the GIL."""

    def open(self, address: Address, *, context: object, now: float, send_buffer: int, receive_buffer: int) -> Channel:
        """Begins a connection.  Whatever goes wrong arrives as a CLOSED channel in a later turn."""
        ...

    def turn(self, timeout_ms: float, now: float) -> list[Channel]:
        """Moves bytes; waits up to ``timeout_ms`` for something to happen.

        Returns:
            The channels that became OPEN, became CLOSED by themselves, received bytes, or ended a write that
            was to be told (``prompt``), each once.
        """
        ...

    def close(self, channel: Channel) -> None:
        """Closes a channel; open writes end with ``on_written(False)``.  A closed one is left as it is."""
        ...

    def close_all(self) -> None:
        """Closes every channel."""
        ...

    def close_after_fork(self) -> None:
        """In a forked child, or where a producer could not be made: closes its descriptors and does nothing else."""
        ...

    def wakeup(self) -> None:
        """Ends the turn under way or else the next one at once.  Any thread, any signal handler; never raises."""
        ...


@cython.cclass
class SocketSelector:
    """The selector over real sockets.

    Args:
        connector: begins the connection of a new channel's transport; plain TCP if left out.
    """

    def __init__(self, connector: Connector = PlainTransport.connect) -> None:
        self.connector = connector
        self.pipe = WakePipe()
        self.wake_fd = self.pipe.writer
        try:
            self.bank = new_bank(self.pipe.reader)
        except BaseException:
            self.pipe.close()
            raise
        channels: list[Channel] = []
        crowded: list[Channel] = []
        self.channels = channels
        self.crowded = crowded
        self.next_id = 0
        self.claim = GilClaim()

    def __dealloc__(self) -> None:
        free_bank(self.bank)

    def open(self, address: Address, *, context: object, now: float, send_buffer: int, receive_buffer: int) -> Channel:
        """Begins a connection to a numeric address without waiting; errors arrive as a CLOSED channel.

        Args:
            address: where to.
            context: kept in ``Channel.context``.
            now: monotonic ms.
            send_buffer: bytes, -1 for the system's default (``send.buffer.bytes``).
            receive_buffer: bytes, -1 for the system's default (``receive.buffer.bytes``).
        """
        failure: cython.int = 0
        transport: Transport | None = None
        try:
            transport = self.connector(address, send_buffer, receive_buffer)
        except OSError as error:
            failure = error.errno or errno.ENETUNREACH
        channel = Channel(self.next_id, context, str(address), transport, now)
        self.next_id += 1
        if failure:
            channel.port.error = failure
            channel.port.events = FAILED
        self.channels.append(channel)
        add_port(self.bank, channel.port)
        return channel

    @cython.ccall
    def turn(self, timeout_ms: cython.double, now: cython.double) -> list[Any]:
        """See ``Selector.turn``; ``timeout_ms`` may be a fraction or infinite, an interrupted wait ends early."""
        if self.crowded:
            self._make_rooms()
        self._move_bytes(timeout_ms)
        return self._settle(now)

    @cython.ccall
    def close(self, channel: Channel) -> cython.void:
        """See ``Selector.close``."""
        self._remove(channel)
        channel.shut(None)

    @cython.ccall
    def close_all(self) -> cython.void:
        """See ``Selector.close_all``.  The wake pipe stays: another thread may be just about to write to it."""
        channel: Channel
        for channel in list(self.channels):
            self.close(channel)

    def close_after_fork(self) -> None:
        """See ``Selector.close_after_fork``.  poll(2) registers nothing, so the parent does not notice."""
        set_wake_fd(self.bank, -1)
        self.wake_fd = -1
        self.pipe.close()
        channel: Channel
        for channel in self.channels:
            if channel.transport is not None:
                channel.transport.close()

    @cython.ccall
    @cython.exceptval(check=False)
    def wakeup(self) -> cython.void:
        """See ``Selector.wakeup``.  Many of them cost one byte in the pipe, none while no turn waits."""
        wake_bank(self.bank, self.wake_fd)

    @cython.cfunc
    def _make_rooms(self) -> cython.void:
        # Not at the end of the turn before: what its owner has consumed since may do.
        channel: Channel
        for channel in self.crowded:
            if channel.state == OPEN:
                channel._make_room()
        self.crowded.clear()

    @cython.cfunc
    @cython.exceptval(check=False)
    def _move_bytes(self, timeout_ms: cython.double) -> cython.void:
        bank: BankPointer = self.bank
        claim: GilClaim = self.claim
        at: cython.int
        for at in range(bank.size):
            _write(bank.ports[at], LITTLE)
        with cython.nogil:
            for at in range(bank.size):
                if _before_wait(bank, at):
                    timeout_ms = 0
            wait_ready(bank, timeout_ms)
            for at in range(bank.size):
                _after_wait(bank.ports[at], seen(bank, at))
            claim.begin(monotonic_ms())
        claim.end()
        bank.ready_count = 0
        for at in range(bank.size):
            if bank.ports[at].events:
                bank.ready[bank.ready_count] = at
                bank.ready_count += 1

    @cython.cfunc
    def _settle(self, now: cython.double) -> list[Any]:
        bank: BankPointer = self.bank
        changed: list[Channel] = []
        # Collected first: a callback that opens or closes moves ports about.
        ready: list[Channel] = [self.channels[bank.ready[at]] for at in range(bank.ready_count)]
        bank.ready_count = 0
        channel: Channel
        for channel in ready:
            if channel.state != CLOSED and self._settle_one(channel, now):
                changed.append(channel)
        return changed

    @cython.cfunc
    def _settle_one(self, channel: Channel, now: cython.double) -> cython.bint:
        port: PortPointer = channel.port
        if port.events & POLLED:
            serve(channel, now)
        events: cython.int = port.events & ~POLLED
        port.events &= POLLED
        changed: cython.bint = events & (OPENED | READ | ENDED | FAILED) != 0
        if events & OPENED:
            channel.mark_open(now)
        if events & READ:
            channel.received_size = port.end - port.begin
            channel.last_active = now
            if port.end == port.capacity:
                self.crowded.append(channel)
        if events & WROTE:
            channel.last_active = now
            if channel._complete():
                changed = True
        if channel.state == CLOSED:
            return False  # by a callback: whoever did it knows
        if events & FAILED:
            self._remove(channel)
            channel.shut(_failure(channel, port.error))
        elif events & ENDED:
            self._remove(channel)
            channel.shut(DisconnectError(f"{channel.peer} closed the connection"))
        return changed

    @cython.cfunc
    def _remove(self, channel: Channel) -> cython.void:
        at: cython.int = channel.port.index
        if at < 0:
            return
        remove_port(self.bank, channel.port)
        last = self.channels.pop()
        if last is not channel:
            self.channels[at] = last


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write(port: PortPointer, most: cython.longlong) -> cython.void:
    """Writes what is queued, unless it is more than ``most`` bytes."""
    if port.native and port.state == OPEN and port.error == 0 and 0 < port.queued - port.written <= most:
        port.error = send_some(port)
        if port.error:
            port.events |= FAILED


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _before_wait(bank: BankPointer, at: cython.int) -> cython.bint:
    """Writes what is queued and says what to wait for.  True: there is news already, so do not wait."""
    port: PortPointer = bank.ports[at]
    queued: cython.bint = port.state == OPEN and port.queued > port.written
    if not port.native:
        watch(bank, at, port.wants | (WRITABLE if queued else 0))
        return port.events != 0
    if queued:
        _write(port, port.queued)
        queued = port.queued > port.written
    if port.state == CONNECTING:
        watch(bank, at, WRITABLE)
    else:
        watch(bank, at, READABLE | (WRITABLE if queued else 0))
    return port.events & ~WROTE != 0 or (port.events & WROTE != 0 and port.prompt)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _after_wait(port: PortPointer, ready: cython.int) -> cython.void:
    """Acts on what poll(2) found; what there is to tell is in the port's events."""
    if ready and not port.native:
        port.events |= POLLED
    elif ready:
        error: cython.int = 0
        if port.state == CONNECTING:
            error = connect_result(port.fd)
            if error == 0:
                port.state = OPEN
                port.events |= OPENED
        elif ready & READABLE:
            error = receive_some(port)  # even if a write failed: a last answer may have come before the end
        if port.error == 0:
            port.error = error
        if port.error == 0 and port.state == OPEN and port.queued > port.written and ready & WRITABLE:
            port.error = send_some(port)
        if port.error:
            port.events |= FAILED


@cython.cfunc
def _failure(channel: Channel, code: cython.int) -> object:
    text = f"{errno.errorcode.get(code, code)}: {os.strerror(code)}"
    if channel.state == CONNECTING:
        return NetworkError(f"cannot connect to {channel.peer}: {text}")
    return DisconnectError(f"connection to {channel.peer} lost: {text}")
