"""PEM as people have it: on one line, indented, with backslashes at the ends of lines, with comments in any encoding.

What stands between BEGIN and END is taken out and wrapped anew, because OpenSSL takes lines of its own form alone and
Java takes nearly all.  All options that take PEM are read here.  What is no PEM is named (``what_is``).
"""

from __future__ import annotations

import base64
import binascii
import re
from calendar import timegm
from collections import Counter
from typing import NamedTuple

from forebay.errors import ConfigError

MARK = b"-----BEGIN"
CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
KEYS = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY")
LISTS = ("X509 CRL",)
_LINE = 64
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]{1,60})-----(.*?)(?:-----END \1-----|(?=-----BEGIN )|\Z)", re.DOTALL)
_ENCRYPTED = re.compile(
    rb"\s*Proc-Type:\s*4\s*,\s*ENCRYPTED\s*DEK-Info:\s*"
    rb"(?:(DES[A-Za-z0-9-]*)\s*,\s*([0-9A-Fa-f]{16})|([A-Za-z0-9-]+)\s*,\s*([0-9A-Fa-f]{32}))\s*",
    re.ASCII,
)
"""The head of a key that OpenSSL encrypted in its old form."""
_SPACES = re.compile(rb"\\[nrt]|[\\\s\x00]+")


class StoreError(ConfigError):
    """What cannot be read; the message is a clause that lacks the option and the path, which its reader adds."""


class Block(NamedTuple):
    """One block; its body is checked base64 without blanks."""

    label: str
    body: bytes
    head: bytes = b""

    def __repr__(self) -> str:
        return f"<{self.label}>"

    def text(self) -> bytes:
        """As OpenSSL reads it."""
        lines = [self.body[at : at + _LINE] for at in range(0, len(self.body), _LINE)]
        name = self.label.encode()
        return b"\n".join((b"-----BEGIN " + name + b"-----" + self.head, *lines, b"-----END " + name + b"-----\n"))

    def der(self) -> bytes:
        return base64.b64decode(self.body)


def is_pem(data: bytes) -> bool:
    """Whether this is text with certificates or keys."""
    return MARK in data


def blocks(data: bytes) -> list[Block]:
    """All blocks of a text.

    Raises:
        StoreError: it has none, or one without its end, or one that is no base64; nothing of it is shown.
    """
    found = []
    for number, match in enumerate(_BLOCK.finditer(data), 1):
        label, body, head = match.group(1).decode(), match.group(2), b""
        where = f"its block {number}, a {label}"
        if not match.group().endswith(b"-----END " + match.group(1) + b"-----"):
            raise StoreError(f"{where}, has no -----END {label}----- (is it cut off?)")
        old = _ENCRYPTED.match(_SPACES.sub(b" ", body))
        if old is not None:
            cipher, start = old.group(1) or old.group(3), old.group(2) or old.group(4)
            head = b"\nProc-Type: 4,ENCRYPTED\nDEK-Info: " + cipher + b"," + start + b"\n"
            body = _SPACES.sub(b" ", body)[old.end() :]
        body = _SPACES.sub(b"", body)
        try:
            base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            raise StoreError(f"{where}, is damaged: it is no base64") from None
        if not body:
            raise StoreError(f"{where}, is empty")
        found.append(Block(label, body, head))
    if not found:
        raise StoreError(f"is not PEM: {what_is(data)}")
    return found


def chosen(data: bytes, labels: tuple[str, ...], what: str) -> bytes:
    """The blocks of some kinds, as OpenSSL reads them.

    Args:
        what: is wanted, for the message.

    Raises:
        StoreError: as ``blocks``, or there is none of these kinds.
    """
    every = blocks(data)
    found = [block.text() for block in every if block.label in labels]
    if not found:
        raise StoreError(f"has no {what} in it, only {listed(every)}")
    return b"".join(found)


def listed(every: list[Block]) -> str:
    """What kinds of blocks there are, and how many."""
    return " and ".join(f"{count} {label}" for label, count in Counter(block.label for block in every).items())


def end_of(certificate: bytes) -> float | None:
    """The Unix seconds at which a certificate in DER ends; None if that cannot be read."""
    try:
        fields = values(values(values(certificate)[0][1])[0][1])
        validity = fields[4 if fields[0][0] == 0xA0 else 3]  # the version may be left out
        tag, text, _whole = values(validity[1])[1]
        digits = text.decode("ascii")
        if tag == 0x17:  # UTCTime has two digits of the year (RFC 5280, 4.1.2.5.1)
            digits = ("20" if digits < "50" else "19") + digits
        parts = [int(digits[:4]), *(int(digits[at : at + 2]) for at in range(4, 14, 2))]
        return float(timegm((parts[0], parts[1], parts[2], parts[3], parts[4], parts[5])))
    except (DamagedError, IndexError, ValueError):
        return None


Value = tuple[int, bytes, bytes]
"""Tag, content, and the whole value with its head."""


class DamagedError(ValueError):
    """Bytes that are no DER."""


def values(data: bytes) -> list[Value]:
    """The DER values that stand one behind the other.

    Raises:
        DamagedError: they are none.
        IndexError: they are cut off.
    """
    found = []
    at = 0
    while at < len(data):
        size, begin = data[at + 1], at + 2
        if size >= 0x80:
            count = size & 0x7F
            size = int.from_bytes(data[begin : begin + count], "big")
            begin += count
            if not 0 < count <= 4:
                raise DamagedError  # of no fixed length, which BER allows
        end = begin + size
        if end > len(data):
            raise DamagedError
        found.append((data[at], data[begin:end], data[at:end]))
        at = end
    return found


_OID = b"\x06"
_INTEGER_0, _INTEGER_3 = b"\x02\x01\x00", b"\x02\x01\x03"
_SEQUENCE = b"\x30"
_BEGINS = (
    (b"\xfe\xed\xfe\xed", "a JKS store"),
    (b"\xce\xce\xce\xce", "a JCEKS store, which is not read here: keytool -importkeystore makes it PKCS12"),
    (b"\x05\x02", "a Kerberos keytab"),
    (b"\x05\x01", "a Kerberos keytab"),
    (b"PK\x03\x04", "a zip or jar file"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x7fELF", "a program"),
    (b"openssh-key-v1", "a key of OpenSSH"),
    (b"ssh-", "a public key of OpenSSH"),
    (b"<", "XML or HTML"),
    (b"{", "JSON"),
)


def what_is(data: bytes) -> str:
    """What a file is, by its first bytes, in words."""
    if not data.strip():
        return "it is empty"
    for begin, name in _BEGINS:
        if data.lstrip().startswith(begin):
            return f"it is {name}"
    if data[:1] == _SEQUENCE and len(data) > 8:
        return f"it is {_der_kind(data)}"
    if re.fullmatch(rb"[A-Za-z0-9+/=\s]{40,}", data):
        return "it is base64 without the lines -----BEGIN ...----- and -----END ...-----"
    if all(sign >= 0x20 or sign in b"\t\r\n\f" for sign in data[:1000]):
        return "it is other text"
    return f"its first bytes are {data[:8].hex(' ')}"


def _der_kind(data: bytes) -> str:
    inside = data[_head(data) :]
    if inside.startswith(_INTEGER_3):
        return "a PKCS12 store"
    if inside.startswith(_INTEGER_0):
        rest = inside[3:4]
        return (
            "a private key in DER: openssl pkcs8 makes it PEM" if rest in (_SEQUENCE, b"\x02") else "DER of some kind"
        )
    if inside.startswith(_OID):
        return "a PKCS7 file: openssl pkcs7 -print_certs makes it PEM"
    if inside.startswith(_SEQUENCE):
        within = inside[_head(inside) :]
        if within.startswith(_OID):
            return "an encrypted private key in DER: openssl pkcs8 makes it PEM"
        if within.startswith(b"\xa0"):
            return "a certificate in DER: openssl x509 -inform DER makes it PEM"
        return "a revocation list or an old certificate in DER: openssl crl or openssl x509, -inform DER, makes it PEM"
    return "DER of some kind"


def _head(der: bytes) -> int:
    """The bytes before the content of a DER value."""
    return 2 if len(der) < 2 or der[1] < 0x80 else 2 + (der[1] & 0x7F)


def wrapped(der: bytes, label: str) -> str:
    """DER as PEM."""
    return Block(label, base64.b64encode(der)).text().decode()
