"""One listening address in front of another: the mock picks its own ports, a developer wants his."""

from __future__ import annotations

import socket
import threading

from forebay.testing.broker import EmbeddedBrokerError

CHUNK = 1 << 18


class Forwarder:
    """Passes every connection to (``host``, ``port``) on to ``target``, both ways, until :meth:`close`.

    Three daemon threads a connection at most; nothing is looked at.  Raises :class:`EmbeddedBrokerError` when
    it cannot listen there.  ``port`` 0 takes a free one, see :attr:`address`.
    """

    def __init__(self, host: str, port: int, target: tuple[str, int]) -> None:
        if not 0 <= port <= 65535:
            raise EmbeddedBrokerError(f"cannot listen on {host}:{port}: a port is 0 to 65535")
        self._target = target
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
            self._listener = socket.create_server((host, port), family=family)
        except OSError as error:
            raise EmbeddedBrokerError(f"cannot listen on {host}:{port}: {error}") from error
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        # Guards the set and the flag: the accepting thread adds, close() empties.  Re-entrant, as a signal handler that
        # closes may come amid close().
        self._lock = threading.RLock()
        self._open: set[socket.socket] = set()
        self._closed = False
        threading.Thread(target=self._accept, name=f"forward {self.address[1]}", daemon=True).start()

    def close(self) -> None:
        """Stops listening and cuts every connection."""
        with self._lock:
            self._closed = True
            ends = [self._listener, *self._open]
        for end in ends:
            _shut(end)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
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
                _pump(client, broker)
                back.join()
                with self._lock:
                    self._open -= {client, broker}


def _pump(source: socket.socket, sink: socket.socket) -> None:
    for end in (source, sink):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = memoryview(bytearray(CHUNK))
    try:
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
