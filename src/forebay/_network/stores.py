"""Key and trust stores, told apart by their first bytes: PEM, JKS and PKCS12; all become PEM.

``ssl.keystore.type`` and ``ssl.truststore.type`` are not asked: Java's keytool writes PKCS12 into files named
``.jks``, and nobody notices there.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from forebay._network import pkcs12_keys
from forebay._network.pem import StoreError, what_is

JKS_MAGIC = b"\xfe\xed\xfe\xed"
_JKS_DIGEST_SIZE = 20
_JKS_SALT = b"Mighty Aphrodite"
_JKS_KEY_TAG = 1
_SEQUENCE = b"\x30"


class KeyEntry(NamedTuple):
    """A private key (PKCS#8, DER) and its certificates, the key's own first."""

    alias: str
    key: bytes
    chain: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"<KeyEntry {self.alias!r} with {len(self.chain)} certificates>"


class Store(NamedTuple):
    """What a store holds, as DER."""

    keys: tuple[KeyEntry, ...]
    certificates: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"<Store of {len(self.keys)} keys and {len(self.certificates)} certificates>"


def read_store(
    data: bytes,
    password: str | None,
    key_password: str | None = None,
    *,
    alias: str | None = None,
    for_trust: bool = False,
) -> Store:
    """Reads a JKS or a PKCS12 store: its one key, or whom it trusts.

    Args:
        password: of the store; None: what it holds is not checked against tampering.
        key_password: of the key in it (JKS); the store's if None.
        alias: of the key that is meant; without it there must be one.
        for_trust: its keys stay closed.  Of each key's chain the first certificate is given alone, as Java trusts it.

    Raises:
        StoreError: it is neither, damaged, has not one key, or the password is wrong.
    """
    if data.startswith(JKS_MAGIC):
        try:
            return _read_jks(data, password, key_password, alias, for_trust)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise StoreError(f"is a damaged JKS store: {error}") from None
    if data.startswith(_SEQUENCE):
        return _read_pkcs12(data, password, alias, for_trust)
    raise StoreError(f"is neither PEM nor JKS nor PKCS12: {what_is(data)}")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 4  # after the magic

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise IndexError(f"{size} bytes at {self.at} of {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form: str) -> int:
        value: int = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def text(self) -> str:
        return self.take(self.number(">H")).decode("utf-8", "replace")

    def block(self) -> bytes:
        return self.take(self.number(">i"))

    def certificate(self, version: int) -> bytes:
        if version == 2:
            self.text()  # its type, X.509
        return self.block()


def _read_jks(
    data: bytes, password: str | None, key_password: str | None, wanted: str | None, for_trust: bool
) -> Store:
    reader = _Reader(data)
    version = reader.number(">i")
    keys: list[KeyEntry] = []
    certificates: list[bytes] = []
    for _ in range(reader.number(">i")):
        tag, alias = reader.number(">i"), reader.text()
        reader.take(8)  # when it was added
        if tag == _JKS_KEY_TAG:
            sealed = reader.block()
            chain = tuple(reader.certificate(version) for _ in range(reader.number(">i")))
            keys.append(KeyEntry(alias, sealed, chain))
        else:
            certificates.append(reader.certificate(version))
    digest = reader.take(_JKS_DIGEST_SIZE)
    if password is not None:
        expected = hashlib.sha1(password.encode("utf-16-be") + _JKS_SALT + data[: -len(digest)]).digest()
        if not hmac.compare_digest(digest, expected):
            raise StoreError("is a JKS store and has another password, or is damaged")
    if for_trust:
        return Store(tuple(entry._replace(chain=entry.chain[:1]) for entry in keys), tuple(certificates))
    entry = one_of({entry.alias: entry for entry in keys}, wanted)
    which = "ssl.keystore.password" if key_password is None else "ssl.key.password"
    return Store((entry._replace(key=_open_jks_key(entry.key, key_password or password, which)),), ())


def _open_jks_key(sealed: bytes, password: str | None, which: str) -> bytes:
    """A key out of Sun's KeyProtector: a stream of SHA-1 sums of password and salt."""
    if password is None:
        raise StoreError("is a JKS store with a key, which needs its password")
    body = _octets_of(sealed)
    salt, body, check = body[:20], body[20:-20], body[-20:]
    secret = password.encode("utf-16-be")
    stream = b""
    link = salt
    while len(stream) < len(body):
        link = hashlib.sha1(secret + link).digest()
        stream += link
    key = bytes(one ^ other for one, other in zip(body, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise StoreError(f"is a JKS store, and the password of its key ({which}) is another one")
    return key


def _octets_of(der: bytes) -> bytes:
    """The octet string of an EncryptedPrivateKeyInfo: a sequence of an algorithm and the octets."""
    at, _ = _content(der, 0)
    _, algorithm_end = _content(der, at)
    begin, end = _content(der, algorithm_end)
    return der[begin:end]


def _content(der: bytes, at: int) -> tuple[int, int]:
    """Begin and end of the content of the DER value at ``at``."""
    size = der[at + 1]
    begin = at + 2
    if size >= 0x80:
        count = size & 0x7F
        size = int.from_bytes(der[begin : begin + count], "big")
        begin += count
    return begin, begin + size


def _read_pkcs12(data: bytes, password: str | None, alias: str | None, for_trust: bool) -> Store:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        raise StoreError(
            "is a PKCS12 store, which needs a package: pip install 'forebay[pkcs12]'; or make it PEM: "
            "openssl pkcs12 -in STORE -out store.pem"
        ) from error
    secret = None if password is None else password.encode()
    try:
        found = pkcs12.load_pkcs12(data, secret)
    except ValueError:
        raise _unreadable(data, password) from None
    der = serialization.Encoding.DER
    every = [] if found.cert is None else [found.cert.certificate]
    every += [entry.certificate for entry in found.additional_certs]
    names = pkcs12_keys.key_names(data)
    if found.key is None and not names:
        return Store((), tuple(one.public_bytes(der) for one in every))
    if for_trust:
        keys = [found.key] if len(names) < 2 else [pkcs12_keys.open_key(each, secret) for each in names.values()]
        own = [one for one in every for key in keys if key is not None and _same_key(one, key)]
        chained = [one for each in own for one in pkcs12_keys.chain_of(each, every)]
        entries = tuple(KeyEntry("", b"", (one.public_bytes(der),)) for one in own)
        return Store(entries, tuple(one.public_bytes(der) for one in every if one not in chained))
    if len(names) > 1:
        key = pkcs12_keys.open_key(one_of(names, alias), secret)
    else:
        key = found.key
        if names and alias is not None:
            one_of(names, alias)
    own = [one for one in every if _same_key(one, key)]
    bare_key = key.private_bytes(der, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    chain = pkcs12_keys.chain_of(own[0], every) if own else []
    name = next(iter(names)) if len(names) == 1 else alias or ""
    return Store((KeyEntry(name, bare_key, tuple(one.public_bytes(der) for one in chain)),), ())


def _unreadable(data: bytes, password: str | None) -> StoreError:
    why = what_is(data)
    if "PKCS12" not in why:
        return StoreError(f"is no store: {why}")
    return StoreError(f"is a PKCS12 store and {_OTHER if password is not None else 'needs its password'}")


_OTHER = "has another password, or is damaged"


def _same_key(certificate: Any, key: Any) -> bool:
    return bool(certificate.public_key() == key.public_key())


def one_of(keys: Mapping[str, Any], alias: str | None) -> Any:
    """The one key that is meant.

    Raises:
        StoreError: there are more than one, or none of that name; tells their aliases.
    """
    shown = ", ".join(map(repr, sorted(keys))) or "none"
    if alias is not None:
        for name, value in keys.items():
            if name.lower() == alias.lower():  # Java's stores know no case
                return value
        raise StoreError(f"has no key with the alias of ssl.keystore.alias={alias}; it has {shown}")
    if len(keys) != 1:
        raise StoreError(f"must hold one private key, it has {len(keys)}: {shown}; name one with ssl.keystore.alias")
    return next(iter(keys.values()))
