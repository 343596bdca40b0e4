"""SASL SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), as Kafka's brokers do it.

Neither side prepares names or passwords (SASLprep): Kafka takes their UTF-8 bytes as they are.  The salted password is
kept, so that a reconnection costs no iterations.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from typing import Any, NamedTuple

from forebay._network.sasl.login import Login
from forebay._network.sasl.mechanism import Blocking, Exchange, Mechanism
from forebay.errors import SaslAuthenticationError

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
LEAST_ITERATIONS = 4096
"""Java's least; with fewer, a password is cheap to guess from its stolen hash."""
MOST_ITERATIONS = 1_000_000
"""With more, a broker could keep a processor busy for seconds."""
MOST_AT_ONCE = 16_384
"""Kafka's own maximum.  More are iterated on the helper thread, so that the sender's thread is not held up."""
MAX_MESSAGE = 8192
MAX_SHOWN = 200
NONCE_BYTES = 24
HEADER = "n,,"
"""No channel binding, no other identity."""


class ServerFirst(NamedTuple):
    """The broker's first message."""

    nonce: str
    salt: bytes
    iterations: int


class Scram(Mechanism):
    """One user of one mechanism; sender's thread.

    Args:
        name: a key of ``HASHES``.
        login: who it is.
        nonce: gives so many random bytes.
    """

    def __init__(self, name: str, login: Login, nonce: Callable[[int], bytes]) -> None:
        self.name = name
        self.login = login
        self._hash = HASHES[name]
        self._nonce = nonce
        self._salted: _Salted | None = None

    @property
    def who(self) -> str:
        return f"user {self.login.who}"

    def __repr__(self) -> str:
        return f"<Scram {self.name} {self.who}>"

    def exchange(self, host: str) -> Exchange:
        """Two tokens of ours; the broker's second one has to prove that it knows the password, too."""
        named = yield from self.login.now()
        own = base64.b64encode(self._nonce(NONCE_BYTES)).decode().replace(",", "")
        bare = f"n={escaped(named.username)},r={own}" + (",tokenauth=true" if named.token else "")
        first = yield (HEADER + bare).encode()
        server_first = _text(first)
        server = parse_server_first(server_first, own)
        final = f"c={base64.b64encode(HEADER.encode()).decode()},r={server.nonce}"
        message = f"{bare},{server_first},{final}".encode()
        kept = self._kept(named.password, server)
        if kept.salted is None and server.iterations > MOST_AT_ONCE:
            yield Blocking(f"the salted password ({server.iterations} iterations)", kept.derive)
        elif kept.salted is None:
            kept.derive()
        proof, expected = kept.prove(message)
        last = yield f"{final},p={base64.b64encode(proof).decode()}".encode()
        check_server_final(_text(last), expected)

    def _kept(self, password: Any, server: ServerFirst) -> _Salted:
        # By the password too, because it may change.
        wanted = _Salted(self._hash, password, server.salt, server.iterations)
        if self._salted is None or self._salted != wanted:
            self._salted = wanted
        return self._salted


class _Salted:
    """A password with its salt and iterations; what follows from them is computed once.  It does not show itself."""

    __slots__ = ("_hash", "_iterations", "_password", "_salt", "salted")

    def __init__(self, hash_name: str, password: Any, salt: bytes, iterations: int) -> None:
        self._hash = hash_name
        self._password = password
        self._salt = salt
        self._iterations = iterations
        self.salted: bytes | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Salted) and self._made_of() == other._made_of()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<a salted password>"

    def derive(self) -> None:
        """Iterates; without the GIL, on the sender's thread or the helper's."""
        text = self._password.reveal().encode()
        self.salted = hashlib.pbkdf2_hmac(self._hash, text, self._salt, self._iterations)

    def prove(self, message: bytes) -> tuple[bytes, bytes]:
        """The client's proof, and the signature that the broker has to give."""
        salted = self.salted or b""
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), message)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        return proof, self._hmac(self._hmac(salted, b"Server Key"), message)

    def _made_of(self) -> tuple[str, Any, bytes, int]:
        return self._hash, self._password, self._salt, self._iterations

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def escaped(name: str) -> str:
    """A name for a SCRAM message: ``,`` and ``=`` are its own signs."""
    return name.replace("=", "=3D").replace(",", "=2C")


def parse_server_first(text: str, own_nonce: str) -> ServerFirst:
    """Reads ``r=nonce,s=salt,i=iterations``.

    Raises:
        SaslAuthenticationError: an error of the broker's, a nonce that is not an extension of ours, no salt, or a
            number of iterations outside of what is safe.
    """
    fields = _fields(text)
    if "e" in fields:
        raise _wrong(f"the broker says {fields['e'][:MAX_SHOWN]!r}")
    if "m" in fields:
        raise _wrong("the broker asks for an extension that is not known here")
    missing = [name for name in ("r", "s", "i") if name not in fields]
    if missing:
        raise _wrong(f"its first message lacks {', '.join(missing)}")
    nonce = fields["r"]
    if not nonce.startswith(own_nonce) or len(nonce) == len(own_nonce):
        raise _wrong("its nonce does not continue ours")
    salt = _decoded(fields["s"], "salt")
    if not salt:
        raise _wrong("its salt is empty")
    iterations = int(fields["i"]) if fields["i"].isascii() and fields["i"].isdigit() and len(fields["i"]) < 10 else -1
    if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise _wrong(f"{fields['i'][:20]} iterations, allowed are {LEAST_ITERATIONS} to {MOST_ITERATIONS}")
    return ServerFirst(nonce, salt, iterations)


def check_server_final(text: str, expected: bytes) -> None:
    """Checks ``v=signature``.

    Raises:
        SaslAuthenticationError: the broker's error, or it does not know the password.
    """
    fields = _fields(text)
    if "e" in fields:
        raise _wrong(f"the broker says {fields['e'][:MAX_SHOWN]!r}")
    if not hmac.compare_digest(_decoded(fields.get("v", ""), "signature"), expected):
        raise _wrong("its signature is wrong: the broker does not know the password, and may be an impostor")


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, sign, value = part.partition("=")
        if len(name) != 1 or not sign or name in fields:
            raise _wrong("its message is no list of name=value")
        fields[name] = value
    return fields


def _decoded(value: str, what: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong(f"its {what} is not base64") from None


def _text(token: bytes) -> str:
    if len(token) > MAX_MESSAGE:
        raise _wrong(f"a message of {len(token)} bytes")
    try:
        return token.decode()
    except UnicodeDecodeError:
        raise _wrong("its message is not UTF-8") from None


def _wrong(what: str) -> SaslAuthenticationError:
    return SaslAuthenticationError(f"SCRAM: the broker's answer was not accepted: {what}")
