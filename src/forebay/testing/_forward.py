"""Listening addresses in front of a mock broker, which picks its own port and listens on 127.0.0.1 alone.

Imports nothing of the package: the embedded broker's own process loads it, too.
"""

from __future__ import annotations

import errno
import socket
import struct
import threading
from collections.abc import Callable, Sequence

CHUNK = 1 << 18
API_VERSIONS, NEWEST_API_VERSIONS, UNSUPPORTED_VERSION = 18, 2, 35
#: Size, API key, version, correlation id: how every request begins.
REQUEST = struct.Struct(">ihhi")
#: ApiVersions v0, with the one range that it is to be asked by instead (KIP-511).
REFUSAL = struct.Struct(">iihihhh")
LONGEST_HELLO = 1 << 16
#: How an address that this machine does not have fails: IPv6 may be switched off.
ABSENT = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT})
ATTEMPTS = 20


class Forwarder:
    """Passes every connection to ``port`` of ``hosts`` on to ``target``, both ways, until :meth:`close`.

    Three daemon threads a connection at most.  Nothing is looked at but a connection's first requests: ApiVersions
    newer than the mock's is refused here, because what the mock says to it cannot be read (kafka-python gives up).

    ``port`` 0 takes one that is free on all of ``hosts``, see :attr:`port`.  A host beyond the first is left out where
    the machine has no such address.  Raises OSError when it cannot listen.
    """

    def __init__(self, hosts: Sequence[str], port: int, target: tuple[str, int]) -> None:
        self._target = target
        self._listeners = _listen_on_all(hosts, port)
        self.port: int = self._listeners[0].getsockname()[1]
        # Guards the set and the flag: the accepting threads add, close() empties.  Re-entrant, because a signal handler
        # that closes may interrupt close().
        self._lock = threading.RLock()
        self._open: set[socket.socket] = set()
        self._closed = False
        for listener in self._listeners:
            threading.Thread(target=self._accept, args=(listener,), name=f"forward {self.port}", daemon=True).start()

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where it listens."""
        return [listener.getsockname()[:2] for listener in self._listeners]

    def close(self) -> None:
        """Stops listening and cuts every connection."""
        with self._lock:
            self._closed = True
            ends = [*self._listeners, *self._open]
        for end in ends:
            _shut(end)
        for listener in self._listeners:
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                # Closed by close(): there is no other way to wake an accept.
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client:
            try:
                broker = socket.create_connection(self._target)
            except OSError:
                # The node is down: the client sees its connection end, as it would see that of the node.
                return
            with broker:
                with self._lock:
                    if self._closed:
                        return
                    self._open |= {client, broker}
                back = threading.Thread(target=_pump, args=(broker, client), daemon=True)
                back.start()
                _pump(client, broker, _refuse_newer_api_versions)
                back.join()
                with self._lock:
                    self._open -= {client, broker}


def _listen_on_all(hosts: Sequence[str], port: int) -> list[socket.socket]:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _listen(hosts, port)
        except OSError as error:
            # A port that was free on the first address may be taken on the next.
            if port or error.errno != errno.EADDRINUSE or attempt == ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def _listen(hosts: Sequence[str], port: int) -> list[socket.socket]:
    listeners: list[socket.socket] = []
    try:
        for family, address in _addresses(hosts):
            try:
                listeners.append(socket.create_server((address, port), family=family))
            except OSError as error:
                if not listeners or error.errno not in ABSENT:
                    raise
            port = listeners[0].getsockname()[1]
    except BaseException:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def _addresses(hosts: Sequence[str]) -> list[tuple[int, str]]:
    """Family and number of every address of ``hosts``, each once."""
    found = [row for host in hosts for row in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    return list(dict.fromkeys((int(row[0]), str(row[4][0])) for row in found))


def _refuse_newer_api_versions(client: socket.socket) -> bytes:
    """Answers ApiVersions requests that are too new for the mock; gives what it has read of the first other request."""
    while True:
        start = client.recv(REQUEST.size, socket.MSG_WAITALL)
        if len(start) < REQUEST.size:
            return start
        size, api_key, version, correlation = REQUEST.unpack(start)
        rest = 4 + size - REQUEST.size
        if api_key != API_VERSIONS or version <= NEWEST_API_VERSIONS or not 0 <= rest <= LONGEST_HELLO:
            return start
        client.recv(rest, socket.MSG_WAITALL)
        refusal = (correlation, UNSUPPORTED_VERSION, 1, API_VERSIONS, 0, NEWEST_API_VERSIONS)
        client.sendall(REFUSAL.pack(REFUSAL.size - 4, *refusal))


def _pump(
    source: socket.socket, sink: socket.socket, begin: Callable[[socket.socket], bytes] = lambda source: b""
) -> None:
    for end in (source, sink):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = memoryview(bytearray(CHUNK))
    try:
        sink.sendall(begin(source))
        while count := source.recv_into(buffer):
            sink.sendall(buffer[:count])
    except OSError:
        # Reset by either side: the end of this connection, as below.
        pass
    _shut(source)
    _shut(sink)


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        # Ended already.
        pass
