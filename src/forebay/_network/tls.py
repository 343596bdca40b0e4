"""TLS as a filter between a descriptor's bytes and a stream: Python's ``ssl`` with its buffers in memory.

The selector moves the encrypted bytes as it moves any others, without the GIL.  The roads not taken: ``ssl.SSLSocket``
(it gives up the GIL for every record, and mixes its errors with the socket's), OpenSSL of our own (its security
updates would be ours to make, and a user's ``SSLContext`` could not be used), and TLS in the kernel (few have it).
"""

from __future__ import annotations

# Python's ssl uses this codec with the first connection.  An import there would wait for the lock of imports, which the
# main thread may hold while a signal handler waits for the sender's thread.
import encodings.idna  # noqa: F401
import ssl
from calendar import timegm
from collections.abc import Callable
from typing import Any

from forebay._network import tls_words

FIRST = 4
"""The first bytes of an answer, which show whether it is TLS."""
SILENT = "connected, but nothing answers the TLS handshake; a listener without TLS may be there (security.protocol)"
Expiry = Callable[[str, float], None]
"""(host, Unix seconds at which its certificate ends): called after each handshake."""


class TlsFilter:
    """One connection's ``StreamFilter``.

    Args:
        context: the user's, or made of the options ``ssl.*``.
        name: the broker's host name; it goes into the request (SNI), and the certificate has to name it.
        store: what the broker's certificate is judged by, in words.
        on_expiry: gets the time at which the broker's certificate ends; or None.
    """

    def __init__(self, context: ssl.SSLContext, name: str, store: str, on_expiry: Expiry | None = None) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._name = name
        self._store = store
        self._on_expiry = on_expiry
        self._context = context
        self._own = getattr(context, "own", tls_words.UNKNOWN)
        self._tls: Any = None
        self._version: str | None = None
        """Of TLS, once the handshake is over: a connection that has failed tells none."""
        self._first = b""
        """The first bytes that came; if they are not TLS, the error names what they are."""

    def start(self) -> None:
        try:
            self._tls = self._context.wrap_bio(self._incoming, self._outgoing, server_hostname=self._name)
        except ValueError as error:
            raise tls_words.bad_name(self._name, error) from error
        self.shake_hands()

    def feed(self, data: memoryview) -> None:
        if len(self._first) < FIRST:
            self._first += data[:FIRST]
        self._incoming.write(data)

    def shake_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            found = tls_words.no_tls(self._first, self._name)
            raise found or tls_words.refusal(error, self._name, self._store, self._peer(), self._own) from error
        self._version = self._tls.version()
        if self._on_expiry is not None:
            self._tell_expiry(self._on_expiry)
        return True

    def receive(self, into: memoryview) -> int:
        if not self._incoming.pending and not self._tls.pending():
            return 0
        try:
            return self._tls.read(len(into), into) or -1
        except ssl.SSLWantReadError:
            return 0
        except ssl.SSLZeroReturnError:
            return -1
        except ssl.SSLError as error:
            # TLS 1.3 judges the client's certificate after the handshake: the refusal is the first thing to be read.
            raise tls_words.lost(error, self._name, self._store, self._version, self._own) from error

    def send(self, buffers: list[memoryview]) -> bytes:
        # One call for all: each is a record of its own, and gives up the GIL once.
        data: Any = buffers[0] if len(buffers) == 1 else b"".join(buffers)
        if len(data):
            try:
                self._tls.write(data)
            except ssl.SSLError as error:
                data, buffers = b"", []  # it may be a login, which an error's frame would show
                raise tls_words.lost(error, self._name, self._store, self._version, self._own) from error
        return self._outgoing.read()

    def outgoing(self) -> bytes:
        return self._outgoing.read()

    def end(self) -> bytes:
        try:
            self._tls.unwrap()
        except (ssl.SSLError, ValueError):
            pass  # the peer's own end is not waited for
        return self._outgoing.read()

    def cut_off(self) -> str:
        found = tls_words.no_tls(self._first, self._name)
        return tls_words.CUT_OFF if found is None else found.message

    def silence(self) -> str:
        """What a peer has not answered; nothing while the connection itself is not there."""
        return "" if self._tls is None else SILENT

    def _peer(self) -> Any:
        """The broker's certificate, although it was not accepted; None if none came, or this Python cannot tell."""
        try:
            chain = self._tls._sslobj.get_unverified_chain()
            return chain[0].get_info() if chain else None
        except (AttributeError, ValueError, ssl.SSLError):
            return None

    def _tell_expiry(self, tell: Expiry) -> None:
        certificate: Any = self._tls.getpeercert()
        if certificate and "notAfter" in certificate:
            tell(self._name, unix_time(certificate["notAfter"]))


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def unix_time(text: str) -> int:
    """The seconds of a certificate's time, such as ``Jan  5 09:34:43 2018 GMT``.

    Not by ``ssl.cert_time_to_seconds``, which takes the lock of ``strptime``: a signal handler may have interrupted
    ``strptime`` in the main thread, and wait for the sender's thread.
    """
    month, day, clock, year, _zone = text.split()
    hour, minute, second = map(int, clock.split(":"))
    return timegm((int(year), MONTHS.index(month) + 1, int(day), hour, minute, second))
