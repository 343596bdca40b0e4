"""The interpreted twin of ``_io.pxd``: the same names and results on ``os``, ``select.poll`` and memoryviews.

Used when the package runs interpreted (tests run both forms); the constants are also what Python code that
compares ``Channel.state`` imports.  Ports and banks belong to the sender thread; ``wake_bank`` is for any thread.
"""

from __future__ import annotations

import _socket  # never replaced by gevent
import os
import select
from typing import Any, TypeAlias

from forebay._runtime.threads import original

CONNECTING = 0
OPEN = 1
CLOSED = 2

READABLE = 1
WRITABLE = 2

OPENED = 1
READ = 2
WROTE = 4
ENDED = 8
FAILED = 16
POLLED = 32

VECTOR = 128
SEND_LIMIT = 4194304
RECEIVE_LIMIT = 262144

_BROKEN = select.POLLERR | select.POLLHUP | select.POLLNVAL
_LONGEST_MS = 2147483647
_new_poller = original(select, "poll")


class Port:
    """One socket's bytes in both directions."""

    def __init__(self, fd: int, native: bool) -> None:
        self.fd = fd
        self.state = CONNECTING
        self.native = native
        self.wants = 0
        self.prompt = False
        self.index = -1
        self.events = 0
        self.error = 0
        self.input: Any = memoryview(b"")
        self.begin = 0
        self.end = 0
        self.capacity = 0
        self.buffers: list[memoryview] = []
        self.first = 0
        self.offset = 0
        self.queued = 0
        self.written = 0

    @property
    def count(self) -> int:
        return len(self.buffers)


class Bank:
    """All ports of one selector, and its wake pipe."""

    def __init__(self, wake_fd: int) -> None:
        self.wake_fd = wake_fd
        self.ports: list[Port] = []
        self.asked: list[int] = []
        self.seen: list[int] = []
        self.ready: list[int] = []
        self.ready_count = 0
        self.woken = 0
        self.polling = 0

    @property
    def size(self) -> int:
        return len(self.ports)


PortPointer: TypeAlias = Port
BankPointer: TypeAlias = Bank


def new_port(fd: int, native: bool) -> Port:
    return Port(fd, native)


def free_port(port: Port) -> None:
    drop_from(port, 0)


def release_written(port: Port) -> None:
    for view in port.buffers[: port.first]:
        view.release()
    del port.buffers[: port.first]
    port.first = 0


def drop_from(port: Port, kept: int) -> None:
    for view in port.buffers[kept:]:
        view.release()
    del port.buffers[kept:]
    if not port.buffers:
        port.first = 0
        port.offset = 0


def hold(port: Port, data: Any) -> int:
    view = memoryview(data)
    if not view.c_contiguous:
        raise BufferError("memoryview: underlying buffer is not C-contiguous")
    view = view.cast("B")
    if view.nbytes:
        port.buffers.append(view)
    return view.nbytes


def unsent(port: Port, at: int) -> memoryview | None:
    index = port.first + at
    if index >= len(port.buffers):
        return None
    return port.buffers[index][port.offset :] if at == 0 else port.buffers[index]


def new_bank(wake_fd: int) -> Bank:
    return Bank(wake_fd)


def free_bank(bank: Bank) -> None:
    bank.ports.clear()


def add_port(bank: Bank, port: Port) -> int:
    port.index = len(bank.ports)
    bank.ports.append(port)
    bank.asked.append(0)
    bank.seen.append(0)
    bank.ready.append(0)
    return port.index


def remove_port(bank: Bank, port: Port) -> None:
    last = bank.ports.pop()
    if last is not port:
        bank.ports[port.index] = last
        last.index = port.index
    port.index = -1
    for column in (bank.asked, bank.seen, bank.ready):
        column.pop()


def set_wake_fd(bank: Bank, fd: int) -> None:
    bank.wake_fd = fd


def wake_bank(bank: Bank, fd: int) -> None:
    was = bank.woken
    bank.woken = 1
    if not was and bank.polling:
        try:
            os.write(fd, b"w")
        except OSError:
            pass  # a full pipe wakes as well, a closed one has nobody to wake


def advance(port: Port, size: int) -> None:
    port.written += size
    while size > 0:
        left = port.buffers[port.first].nbytes - port.offset
        if size < left:
            port.offset += size
            return
        size -= left
        port.first += 1
        port.offset = 0


def send_some(port: Port) -> int:
    moved = 0
    while port.first < len(port.buffers) and moved < SEND_LIMIT:
        vector = port.buffers[port.first : port.first + VECTOR]
        vector[0] = vector[0][port.offset :]
        try:
            sent = os.writev(port.fd, vector)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            return error.errno or 0
        port.events |= WROTE
        advance(port, sent)
        moved += sent
        if sent < sum(view.nbytes for view in vector):
            return 0
    return 0


def receive_some(port: Port) -> int:
    room = port.capacity - port.end
    if room == 0:
        return 0
    try:
        size = os.readv(port.fd, [port.input[port.end : port.end + min(room, RECEIVE_LIMIT)]])
    except (BlockingIOError, InterruptedError):
        return 0
    except OSError as error:
        return error.errno or 0
    if size > 0:
        port.end += size
        port.events |= READ
    else:
        port.events |= ENDED
    return 0


def connect_result(fd: int) -> int:
    try:
        twin = _socket.socket(fileno=os.dup(fd))
        try:
            return twin.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR)
        finally:
            twin.close()
    except OSError as error:
        return error.errno or 0


def watch(bank: Bank, at: int, asked: int) -> None:
    bank.asked[at] = asked
    bank.seen[at] = 0


def seen(bank: Bank, at: int) -> int:
    events = bank.seen[at]
    if events & _BROKEN:
        return READABLE | WRITABLE
    return (READABLE if events & select.POLLIN else 0) | (WRITABLE if events & select.POLLOUT else 0)


def _poller(bank: Bank) -> tuple[Any, dict[int, int]]:
    poller = _new_poller()
    where: dict[int, int] = {}
    if bank.wake_fd >= 0:
        poller.register(bank.wake_fd, select.POLLIN)
    for at, port in enumerate(bank.ports):
        if port.fd >= 0:
            asked = bank.asked[at]
            mask = (select.POLLIN if asked & READABLE else 0) | (select.POLLOUT if asked & WRITABLE else 0)
            poller.register(port.fd, mask)
            where[port.fd] = at
    return poller, where


def wait_ready(bank: Bank, timeout_ms: float) -> None:
    poller, where = _poller(bank)
    bank.polling = 1
    if bank.woken:
        timeout_ms = 0
    limit = None if timeout_ms > _LONGEST_MS else max(timeout_ms, 0)
    try:
        found = poller.poll(limit)
    except InterruptedError:
        found = []
    bank.polling = 0
    for fd, events in found:
        if fd in where:
            bank.seen[where[fd]] = events
        elif fd == bank.wake_fd:
            os.read(fd, 64)
    bank.woken = 0
