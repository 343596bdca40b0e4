"""Transports that move their own bytes (TLS) are served here, under the GIL, channel by channel."""

from __future__ import annotations

import errno
from typing import Any

import cython
from cython.cimports.forebay._network._io import (
    CONNECTING,
    ENDED,
    FAILED,
    OPEN,
    OPENED,
    POLLED,
    READ,
    RECEIVE_LIMIT,
    SEND_LIMIT,
    WROTE,
    PortPointer,
    advance,
)
from cython.cimports.forebay._network.channel import Channel

from forebay._network.transport import BLOCKED

SERVED_BUFFERS = 64
"""Buffers offered to a transport that is not native at a time."""


@cython.ccall
def serve(channel: Channel, now: cython.double) -> object:
    """Does for a transport that moves its own bytes what the section without the GIL does for the others."""
    port: PortPointer = channel.port
    transport: Any = channel.transport
    port.events &= ~POLLED
    try:
        if channel.state == CONNECTING and transport.finish_connect():
            channel.mark_open(now)
            port.events |= OPENED
        if channel.state == OPEN:
            _write(channel)
            _read(channel, now)
        port.wants = transport.wants
    except OSError as error:
        port.error = error.errno or errno.EPROTO
        port.events |= FAILED
    return None


@cython.cfunc
def _write(channel: Channel) -> cython.void:
    port: PortPointer = channel.port
    moved: cython.Py_ssize_t = 0
    while port.queued > port.written and moved < SEND_LIMIT:
        size: cython.Py_ssize_t = channel.transport.send(channel.outgoing(SERVED_BUFFERS))
        if size == 0:
            break
        advance(port, size)
        moved += size
        port.events |= WROTE


@cython.cfunc
def _read(channel: Channel, now: cython.double) -> cython.void:
    port: PortPointer = channel.port
    moved: cython.Py_ssize_t = 0
    while moved < RECEIVE_LIMIT:
        size: cython.Py_ssize_t = channel.transport.receive(channel.room())
        if size <= 0:
            if size != BLOCKED:
                port.events |= ENDED
            break
        channel.filled(size, now)
        moved += size
        port.events |= READ
    if channel.transport.pending:
        port.events |= POLLED  # poll(2) does not see them
