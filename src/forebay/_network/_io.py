"""The interpreted twin of ``_io.pxd``: the same names and results on ``os``, ``select.poll`` and memoryviews.

Used when the package runs interpreted (tests run both forms).  Python code that compares ``Channel.state`` imports the
constants from here.  Sockets and poll sets belong to the sender's thread; ``wake_pollset`` is for any thread.
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

VECTOR = 128
SEND_LIMIT = 4194304
RECEIVE_LIMIT = 262144

_BROKEN = select.POLLERR | select.POLLHUP | select.POLLNVAL
_LONGEST_MS = 2147483647
_new_poller = original(select, "poll")


class Socket:
    """One socket's bytes in both directions."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.state = CONNECTING
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
        self.due = 0

    @property
    def count(self) -> int:
        return len(self.buffers)


class PollSet:
    """All sockets of one selector, and its wake pipe."""

    def __init__(self, wake_fd: int) -> None:
        self.wake_fd = wake_fd
        self.sockets: list[Socket] = []
        self.asked: list[int] = []
        self.seen: list[int] = []
        self.ready: list[int] = []
        self.ready_count = 0
        self.woken = 0
        self.polling = 0

    @property
    def size(self) -> int:
        return len(self.sockets)


SocketPointer: TypeAlias = Socket
PollSetPointer: TypeAlias = PollSet


def new_socket(fd: int) -> Socket:
    return Socket(fd)


def free_socket(socket: Socket) -> None:
    drop_from(socket, 0)


def release_written(socket: Socket) -> None:
    for view in socket.buffers[: socket.first]:
        view.release()
    del socket.buffers[: socket.first]
    socket.first = 0


def drop_from(socket: Socket, kept: int) -> None:
    for view in socket.buffers[kept:]:
        view.release()
    del socket.buffers[kept:]
    if not socket.buffers:
        socket.first = 0
        socket.offset = 0


def hold(socket: Socket, data: Any) -> int:
    view = memoryview(data)
    if not view.c_contiguous:
        raise BufferError("memoryview: underlying buffer is not C-contiguous")
    view = view.cast("B")
    if view.nbytes:
        socket.buffers.append(view)
    return view.nbytes


def unsent(socket: Socket, at: int) -> memoryview | None:
    index = socket.first + at
    if index >= len(socket.buffers):
        return None
    return socket.buffers[index][socket.offset :] if at == 0 else socket.buffers[index]


def new_pollset(wake_fd: int) -> PollSet:
    return PollSet(wake_fd)


def free_pollset(pollset: PollSet) -> None:
    pollset.sockets.clear()


def add_socket(pollset: PollSet, socket: Socket) -> int:
    socket.index = len(pollset.sockets)
    pollset.sockets.append(socket)
    pollset.asked.append(0)
    pollset.seen.append(0)
    pollset.ready.append(0)
    return socket.index


def remove_socket(pollset: PollSet, socket: Socket) -> None:
    last = pollset.sockets.pop()
    if last is not socket:
        pollset.sockets[socket.index] = last
        last.index = socket.index
    socket.index = -1
    for column in (pollset.asked, pollset.seen, pollset.ready):
        column.pop()


def set_wake_fd(pollset: PollSet, fd: int) -> None:
    pollset.wake_fd = fd


def wake_pollset(pollset: PollSet, fd: int) -> None:
    was = pollset.woken
    pollset.woken = 1
    if not was and pollset.polling:
        try:
            os.write(fd, b"w")
        except OSError:
            pass  # a full pipe wakes as well, and a closed one has no reader


def advance(socket: Socket, size: int) -> None:
    socket.written += size
    while size > 0:
        left = socket.buffers[socket.first].nbytes - socket.offset
        if size < left:
            socket.offset += size
            return
        size -= left
        socket.first += 1
        socket.offset = 0


def send_some(socket: Socket) -> int:
    moved = 0
    while socket.first < len(socket.buffers) and moved < SEND_LIMIT:
        vector = socket.buffers[socket.first : socket.first + VECTOR]
        vector[0] = vector[0][socket.offset :]
        try:
            sent = os.writev(socket.fd, vector)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            return error.errno or 0
        socket.events |= WROTE
        advance(socket, sent)
        moved += sent
        if sent < sum(view.nbytes for view in vector):
            return 0
    return 0


def receive_some(socket: Socket) -> int:
    room = socket.capacity - socket.end
    if room == 0:
        return 0
    try:
        size = os.readv(socket.fd, [socket.input[socket.end : socket.end + min(room, RECEIVE_LIMIT)]])
    except (BlockingIOError, InterruptedError):
        return 0
    except OSError as error:
        return error.errno or 0
    if size > 0:
        socket.end += size
        socket.events |= READ
    else:
        socket.events |= ENDED
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


def watch(pollset: PollSet, at: int, asked: int) -> None:
    pollset.asked[at] = asked
    pollset.seen[at] = 0


def seen(pollset: PollSet, at: int) -> int:
    events = pollset.seen[at]
    if events & _BROKEN:
        return READABLE | WRITABLE
    return (READABLE if events & select.POLLIN else 0) | (WRITABLE if events & select.POLLOUT else 0)


def _poller(pollset: PollSet) -> tuple[Any, dict[int, int]]:
    poller = _new_poller()
    where: dict[int, int] = {}
    if pollset.wake_fd >= 0:
        poller.register(pollset.wake_fd, select.POLLIN)
    for at, socket in enumerate(pollset.sockets):
        if socket.fd >= 0:
            asked = pollset.asked[at]
            mask = (select.POLLIN if asked & READABLE else 0) | (select.POLLOUT if asked & WRITABLE else 0)
            poller.register(socket.fd, mask)
            where[socket.fd] = at
    return poller, where


def wait_ready(pollset: PollSet, timeout_ms: float) -> bool:
    poller, where = _poller(pollset)
    pollset.polling = 1
    if pollset.woken:
        timeout_ms = 0
    limit = None if timeout_ms > _LONGEST_MS else max(timeout_ms, 0)
    try:
        found = poller.poll(limit)
    except InterruptedError:
        found = []
    pollset.polling = 0
    for fd, events in found:
        if fd in where:
            pollset.seen[where[fd]] = events
        elif fd == pollset.wake_fd:
            os.read(fd, 64)
    woken, pollset.woken = pollset.woken, 0
    return not woken and bool(found)
