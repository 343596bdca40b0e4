"""Key and trust stores, told apart by their first bytes: PEM, JKS and PKCS12; all become PEM.

``ssl.keystore.type`` and ``ssl.truststore.type`` are not asked: Java's keytool writes PKCS12 into files named
``.jks``, and nobody notices there.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from typing import NamedTuple

from forebay.errors import ConfigError

PEM_MARK = b"-----BEGIN"
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


class StoreError(ConfigError):
    """A store that cannot be read; the message does not name the option, its reader adds that."""


def is_pem(data: bytes) -> bool:
    """Whether this is text with certificates or keys."""
    return PEM_MARK in data


def read_store(data: bytes, password: str | None, key_password: str | None = None) -> Store:
    """Reads a JKS or a PKCS12 store.

    Args:
        password: of the store; None: what it holds is not checked against tampering.
        key_password: of the key in it (JKS); the store's if None.

    Raises:
        StoreError: it is neither, damaged, or the password is wrong.
    """
    if data.startswith(JKS_MAGIC):
        try:
            return _read_jks(data, password, key_password or password)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise StoreError(f"is a damaged JKS store: {error}") from error
    if data.startswith(_SEQUENCE):
        return _read_pkcs12(data, password)
    raise StoreError(f"is neither PEM nor JKS nor PKCS12; it begins {data[:8]!r}")


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


def _read_jks(data: bytes, password: str | None, key_password: str | None) -> Store:
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
            raise StoreError("is a JKS store, and its password is another one (or the file is damaged)")
    opened = tuple(entry._replace(key=_open_jks_key(entry.key, key_password)) for entry in keys)
    return Store(opened, tuple(certificates))


def _open_jks_key(sealed: bytes, password: str | None) -> bytes:
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
        raise StoreError("is a JKS store, and the password of its key is another one")
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


def _read_pkcs12(data: bytes, password: str | None) -> Store:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        raise StoreError(
            "is a PKCS12 store, which needs a package: pip install 'forebay[pkcs12]'; or make it PEM: "
            "openssl pkcs12 -in STORE -out store.pem"
        ) from error
    try:
        found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise StoreError(
            f"is no PKCS12 store that can be read, or its password is another one (cryptography: {error})"
        ) from error
    der = serialization.Encoding.DER
    others = tuple(entry.certificate.public_bytes(der) for entry in found.additional_certs)
    if found.key is None:
        own = () if found.cert is None else (found.cert.certificate.public_bytes(der),)
        return Store((), own + others)
    key = found.key.private_bytes(der, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    chain = () if found.cert is None else (found.cert.certificate.public_bytes(der),)
    alias = (found.cert.friendly_name or b"").decode("utf-8", "replace") if found.cert is not None else ""
    return Store((KeyEntry(alias, key, chain + others),), ())


def pem(der: bytes, label: str) -> str:
    """DER as PEM."""
    text = base64.encodebytes(der).decode().replace("\n", "")
    lines = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"
