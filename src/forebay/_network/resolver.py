"""Host names to numeric addresses, off the sender's thread.

``getaddrinfo`` blocks for seconds if a name server does not answer, so helper threads do the look-ups.  They start with
the resolver and not at the first look-up, because no thread can be started while the interpreter exits.  A caller gets
a ``Resolution`` at once and reads ``done``; a numeric host is done from the start and needs no thread.
"""

from __future__ import annotations

import _socket  # never replaced by gevent
import logging
import socket
from _queue import Empty, SimpleQueue
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from forebay._network.transport import Address
from forebay._runtime.threads import start_thread
from forebay.errors import KafkaError, NetworkError

log = logging.getLogger("forebay.network")

Lookup = Callable[..., Sequence[tuple[Any, ...]]]
"""As ``socket.getaddrinfo``."""
NameOf = Callable[[tuple[Any, ...], int], tuple[str, str]]
"""As ``socket.getnameinfo``."""

FAMILIES: dict[str, int | None] = {"any": None, "v4": socket.AF_INET, "v6": socket.AF_INET6}
"""The values of ``broker.address.family``."""
THREADS = 2
"""More than one, because a name server that does not answer must not delay the next bootstrap server."""


class Resolution:
    """The answer of a look-up.  A helper thread writes it once, ``done`` last; after that any thread reads it."""

    __slots__ = ("addresses", "done", "error", "host", "names", "port")

    def __init__(self, host: str, port: int) -> None:
        self.host: str = host
        self.port: int = port
        self.addresses: tuple[Address, ...] = ()
        """All addresses of the name (``use_all_dns_ips``), in the system's order."""
        self.names: tuple[str, ...] = ()
        """Of ``canonical``: the names of all addresses, in order, each once."""
        self.error: KafkaError | None = None
        self.done: bool = False

    def __repr__(self) -> str:
        state = "pending" if not self.done else self.error or [*map(str, self.addresses), *self.names]
        return f"<Resolution of {self.host}:{self.port}: {state}>"


class NameResolver(Protocol):
    """What the network client needs of a resolver."""

    def resolve(self, host: str, port: int, ticket_wake: Callable[[], None]) -> Resolution:
        """Looks up ``host``; any thread calls ``ticket_wake`` once it is done, unless it is done on return."""
        ...

    def canonical(self, host: str, port: int, ticket_wake: Callable[[], None]) -> Resolution:
        """Looks up the canonical names of all addresses of ``host``."""
        ...

    def close(self) -> None:
        """Ends the resolver; look-ups without an answer end with an error."""
        ...


def addresses_of(host: str, port: int, lookup: Lookup, flags: int = 0) -> tuple[Address, ...]:
    """The stream addresses of ``host``, of both families, each once, in the system's order.  Blocks.

    Raises:
        OSError: the name is unknown, or the name server did not answer.
        UnicodeError: it cannot be a host name.
    """
    found: dict[Address, None] = {}
    for family, _kind, _protocol, _canonical, sockaddr in lookup(host, port, type=socket.SOCK_STREAM, flags=flags):
        if family in (socket.AF_INET, socket.AF_INET6):
            found[Address(int(family), sockaddr)] = None
    return tuple(found)


def canonical_names(host: str, port: int, lookup: Lookup, name_of: NameOf) -> tuple[str, ...]:
    """The names of all addresses of ``host`` by reverse look-up; the address itself where there is none.  Blocks.

    For ``client.dns.lookup=resolve_canonical_bootstrap_servers_only`` (Kerberos names).

    Raises:
        OSError: as ``addresses_of``.
    """
    names: dict[str, None] = {}
    for address in addresses_of(host, port, lookup):
        try:
            name, _service = name_of(address.sockaddr, 0)
        except OSError:
            name = str(address.sockaddr[0])  # no reverse entry: Java falls back to the address, too
        names[name] = None
    return tuple(names)


def system_lookup(host: str, port: int, *, type: int, flags: int) -> list[Any]:
    """``getaddrinfo``; ASCII names go as bytes, because text loads the slow codec of international names."""
    return _socket.getaddrinfo(host.encode() if host.isascii() else host, port, type=type, flags=flags)


class Resolver:
    """Resolves on helper threads.

    Args:
        lookup: ``socket.getaddrinfo`` or its like.
        name_of: ``socket.getnameinfo`` or its like.
        threads: how many look-ups may block at a time.
    """

    def __init__(
        self,
        lookup: Lookup = system_lookup,
        name_of: NameOf = _socket.getnameinfo,
        threads: int = THREADS,
    ) -> None:
        self._lookup = lookup
        self._name_of = name_of
        self._closed = False
        # The threads refer to the queue and not to this object, so that it can be collected and end them.
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._threads = threads
        try:
            for number in range(threads):
                start_thread(_work, f"forebay-resolver-{number}", self._tasks)
        except BaseException:
            self.close()  # not left to __del__: the error's traceback keeps this object, and so the started threads
            raise

    def resolve(self, host: str, port: int, ticket_wake: Callable[[], None]) -> Resolution:
        """See ``NameResolver.resolve``.  Never raises for a host: the error is in the resolution."""
        resolution = Resolution(host, port)
        try:
            resolution.addresses = addresses_of(host, port, self._lookup, flags=socket.AI_NUMERICHOST)
            resolution.done = True
            return resolution
        except (OSError, UnicodeError):
            pass  # a name, not a number
        lookup = self._lookup

        def fill() -> None:
            resolution.addresses = addresses_of(host, port, lookup)
            if not resolution.addresses:
                raise OSError("it has no IPv4 or IPv6 address")

        return self._begin(_Task(resolution, fill, ticket_wake))

    def canonical(self, host: str, port: int, ticket_wake: Callable[[], None]) -> Resolution:
        """See ``NameResolver.canonical``: the answer is in ``names``."""
        resolution = Resolution(host, port)
        lookup, name_of = self._lookup, self._name_of

        def fill() -> None:
            resolution.names = canonical_names(host, port, lookup, name_of)

        return self._begin(_Task(resolution, fill, ticket_wake))

    def close(self) -> None:
        """Ends the helper threads once they are idle; does not wait for a blocked look-up."""
        if self._closed:
            return
        self._closed = True
        for task in _waiting(self._tasks):
            task.finish(NetworkError(f"cannot resolve {task.resolution.host!r}: the resolver is closed"))
        self._end_threads()

    def __del__(self) -> None:
        # May run on any thread at any moment, so it calls no callback and leaves the rest to the threads.
        if not getattr(self, "_closed", True):
            self._end_threads()

    def _end_threads(self) -> None:
        for _ in range(self._threads):
            self._tasks.put(None)

    def _begin(self, task: _Task) -> Resolution:
        if self._closed:
            task.finish(NetworkError(f"cannot resolve {task.resolution.host!r}: the resolver is closed"))
        else:
            self._tasks.put(task)
        return task.resolution


class _Task:
    """One look-up: ``fill`` blocks and writes the answer into the resolution."""

    __slots__ = ("fill", "resolution", "wake")

    def __init__(self, resolution: Resolution, fill: Callable[[], None], wake: Callable[[], None]) -> None:
        self.resolution = resolution
        self.fill = fill
        self.wake = wake

    def run(self) -> None:
        """On a helper thread."""
        try:
            self.fill()
        except (OSError, UnicodeError) as error:  # UnicodeError: it cannot be a name at all
            self.finish(NetworkError(f"cannot resolve {self.resolution.host!r}: {_reason(error)}"))
        except Exception as error:
            # The thread must not end: later look-ups would get no answer.
            log.exception("resolving %s failed", self.resolution.host)
            self.finish(NetworkError(f"cannot resolve {self.resolution.host!r}: {error!r}"))
        else:
            self.finish(None)

    def finish(self, error: KafkaError | None) -> None:
        self.resolution.error = error
        self.resolution.done = True
        try:
            self.wake()
        except Exception:
            log.exception("the wake-up after resolving %s failed", self.resolution.host)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _waiting(tasks: SimpleQueue[_Task | None]) -> list[_Task]:
    found: list[_Task] = []
    try:
        while True:
            task = tasks.get_nowait()
            if task is not None:
                found.append(task)
    except Empty:
        return found


def _work(tasks: SimpleQueue[_Task | None]) -> None:
    while (task := tasks.get()) is not None:
        task.run()
        del task  # an idle thread keeps no callback alive
