"""Host names to numeric addresses, off the sender's thread.

``getaddrinfo`` blocks for seconds if a name server does not answer, so helper threads do the look-ups.  All resolvers
of a process share them.  The first two start with the first resolver and not at the first look-up, because no thread
can be started while the interpreter exits.  A caller gets a ``Resolution`` at once and reads ``done``; a numeric host
is done from the start and needs no thread.
"""

from __future__ import annotations

import _socket  # never replaced by gevent
import logging
import os
import socket
import weakref
from _queue import SimpleQueue
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from forebay._network.transport import Address
from forebay._runtime.threads import run_apart, start_thread
from forebay._runtime.ticket import Latch
from forebay.errors import KafkaError, NetworkError

log = logging.getLogger("forebay.network")

Lookup = Callable[..., Sequence[tuple[Any, ...]]]
"""As ``socket.getaddrinfo``."""
NameOf = Callable[[tuple[Any, ...], int], tuple[str, str]]
"""As ``socket.getnameinfo``."""

FAMILIES: dict[str, int | None] = {"any": None, "v4": socket.AF_INET, "v6": socket.AF_INET6}
"""The values of ``broker.address.family``."""
THREADS = 2
"""At least; more than one, because a name server that does not answer must not delay the next bootstrap server."""


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


def name_of_address(host: str, lookup: Lookup | None = None, name_of: NameOf = _socket.getnameinfo) -> str:
    """The name of an address, for Kerberos; of anything else the text itself.  Blocks.

    As in Java a name counts only if it leads to that address again.  Without such a name the address stays.
    """
    lookup = lookup or system_lookup
    try:
        asked = addresses_of(host, 0, lookup, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return host  # no address
    try:
        name, _service = name_of(asked[0].sockaddr, socket.NI_NAMEREQD)
        back = addresses_of(name, 0, lookup)
    except (OSError, UnicodeError):
        return host
    return name if asked[0].sockaddr[0] in {address.sockaddr[0] for address in back} else host


def system_lookup(host: str, port: int, *, type: int, flags: int) -> list[Any]:
    """``getaddrinfo``; ASCII names go as bytes, because text loads the slow codec of international names."""
    return _socket.getaddrinfo(host.encode() if host.isascii() else host, port, type=type, flags=flags)


NOT_FOUND = "its host name was not found in time"


def addresses_within(host: str, port: int, limit_ms: float, lookup: Lookup | None = None) -> tuple[Address, ...]:
    """The addresses of ``host``, for a thread that may block, but not for ever.

    Raises:
        OSError: as ``addresses_of``; a TimeoutError if the system has no answer within ``limit_ms``.
    """
    found: list[tuple[Address, ...] | OSError] = []
    done = Latch()
    arguments = (host, port, lookup or system_lookup, found, done)
    try:
        run_apart(_look_up_apart, *arguments)
    except RuntimeError:  # at exit: without a limit rather than not at all
        _look_up_apart(*arguments)
    if not done.wait(limit_ms):
        raise TimeoutError(NOT_FOUND)
    if isinstance(found[0], OSError):
        raise found[0]
    return found[0]


def _look_up_apart(host: str, port: int, lookup: Lookup, found: list[Any], done: Latch) -> None:
    try:
        found.append(addresses_of(host, port, lookup))
    except (OSError, UnicodeError) as error:
        found.append(error if isinstance(error, OSError) else OSError(f"no host name: {error}"))
    finally:
        done.set()


class Helpers:
    """Threads that look up, for any number of resolvers; they end with this object.

    A look-up for which no thread is free gets one more, up to ``threads`` for each resolver.  So no resolver waits for
    another's name server.  The road not taken: two threads for each resolver.  To start them is a large part of what a
    producer costs, and most never look a name up twice.
    """

    def __init__(self, threads: int = THREADS) -> None:
        # The threads refer to the work and not to this object, so that it can be collected and end them.
        self._work = _Work(threads)
        try:
            for number in range(threads):
                start_thread(self._work.serve, f"forebay-resolver-{number}")
        except BaseException:
            self._work.end()  # not left to __del__: the error's traceback keeps this object, and so the started threads
            raise

    def join(self, user: Resolver) -> None:
        """A resolver begins to use them."""
        self._work.users.add(id(user))

    def leave(self, user: Resolver) -> None:
        """A resolver does not use them any more."""
        self._work.users.discard(id(user))

    def do(self, task: _Task) -> None:
        """Has a thread run it."""
        self._work.add(task)

    def __del__(self) -> None:
        # May run on any thread at any moment: it takes no lock of ours.
        if hasattr(self, "_work"):
            self._work.end()


class _Work:
    """What is to be looked up, and how many threads there are for it.

    There is no lock: a signal handler may interrupt a thread here and wait for a sender that adds a task.  Each step
    is one call of a set or a list.  Two that meet may start a thread too many, which ends when it is idle.
    """

    def __init__(self, threads: int) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._least = threads
        self._more: list[None] = []
        """One for each thread above the least; who takes one out may end."""
        self.users: set[int] = set()
        """Resolvers, by their ``id``."""
        self._open: set[_Task] = set()
        """Tasks that are not done."""

    def add(self, task: _Task) -> None:
        self._open.add(task)
        more = self._least + len(self._more) < min(len(self._open), self._least * len(self.users))
        if more:
            self._more.append(None)
        self._tasks.put(task)
        if more:
            try:
                run_apart(self.serve)
            except RuntimeError:
                self._is_one_less()  # the interpreter exits, or the system has a limit: the task waits for its turn

    def serve(self) -> None:
        """What a thread does."""
        while (task := self._tasks.get()) is not None:
            task.run()
            self._open.discard(task)
            del task  # an idle thread keeps no callback alive
            if self._least + len(self._more) > len(self._open) and self._is_one_less():
                return
        self.end()  # the next one, too

    def _is_one_less(self) -> bool:
        try:
            self._more.pop()
        except IndexError:
            return False
        return True

    def end(self) -> None:
        self._tasks.put(None)


_of_process: weakref.ref[Helpers] | None = None


def helpers_of_process() -> Helpers:
    """The helpers that all resolvers share, started if there are none."""
    global _of_process
    found = None if _of_process is None else _of_process()
    if found is None:
        # Two threads, or a signal handler in between, may make two: each keeps its own.
        found = Helpers()
        _of_process = weakref.ref(found)
    return found


def _forget_in_child() -> None:
    # A forked child has no threads.
    global _of_process
    _of_process = None


os.register_at_fork(after_in_child=_forget_in_child)


class Resolver:
    """Resolves on helper threads.

    Args:
        lookup: ``socket.getaddrinfo`` or its like.
        name_of: ``socket.getnameinfo`` or its like.
        helpers: the threads; None for those of the process.
    """

    def __init__(
        self,
        lookup: Lookup = system_lookup,
        name_of: NameOf = _socket.getnameinfo,
        helpers: Helpers | None = None,
    ) -> None:
        self._lookup = lookup
        self._name_of = name_of
        self._helpers: Helpers | None = helpers or helpers_of_process()
        self._helpers.join(self)
        self._waiting: set[_Task] = set()
        """Tasks that no thread has begun.  Who removes one has it: a thread, or ``close``."""

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

        return self._begin(resolution, fill, ticket_wake)

    def canonical(self, host: str, port: int, ticket_wake: Callable[[], None]) -> Resolution:
        """See ``NameResolver.canonical``: the answer is in ``names``."""
        resolution = Resolution(host, port)
        lookup, name_of = self._lookup, self._name_of

        def fill() -> None:
            resolution.names = canonical_names(host, port, lookup, name_of)

        return self._begin(resolution, fill, ticket_wake)

    def close(self) -> None:
        """Ends what waits; does not wait for a blocked look-up.  The last of the resolvers ends idle threads."""
        helpers, self._helpers = self._helpers, None
        if helpers is not None:
            helpers.leave(self)
        for task in list(self._waiting):
            task.refuse()

    def _begin(self, resolution: Resolution, fill: Callable[[], None], wake: Callable[[], None]) -> Resolution:
        task, helpers = _Task(resolution, fill, wake, self._waiting), self._helpers
        self._waiting.add(task)
        if helpers is None:
            task.refuse()
        else:
            helpers.do(task)
        return resolution


class _Task:
    """One look-up: ``fill`` blocks and writes the answer into the resolution."""

    __slots__ = ("_fill", "_resolution", "_waiting", "_wake")

    def __init__(
        self, resolution: Resolution, fill: Callable[[], None], wake: Callable[[], None], waiting: set[_Task]
    ) -> None:
        self._resolution = resolution
        self._fill = fill
        self._wake = wake
        self._waiting = waiting

    def run(self) -> None:
        """On a helper thread."""
        if not self._take():
            return
        try:
            self._fill()
        except (OSError, UnicodeError) as error:  # UnicodeError: it cannot be a name at all
            self._finish(NetworkError(f"cannot resolve {self._resolution.host!r}: {_reason(error)}"))
        except Exception as error:
            # The thread must not end: later look-ups would get no answer.
            log.exception("resolving %s failed", self._resolution.host)
            self._finish(NetworkError(f"cannot resolve {self._resolution.host!r}: {error!r}"))
        else:
            self._finish(None)

    def refuse(self) -> None:
        """The resolver is closed."""
        if self._take():
            self._finish(NetworkError(f"cannot resolve {self._resolution.host!r}: the resolver is closed"))

    def _take(self) -> bool:
        try:
            self._waiting.remove(self)
        except KeyError:
            return False
        return True

    def _finish(self, error: KafkaError | None) -> None:
        self._resolution.error = error
        self._resolution.done = True
        try:
            self._wake()
        except Exception:
            log.exception("the wake-up after resolving %s failed", self._resolution.host)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
