"""The private keys of a PKCS12 store by alias.

The package cryptography gives the first key alone, and says nothing of others.  Aliases and encrypted keys stand in the
store's outer part, which is read here; a key itself is opened by that package.
"""

from __future__ import annotations

from typing import Any

from forebay._network.pem import DamagedError, StoreError, Value, values

_DATA = bytes.fromhex("2a864886f70d010701")
_KEY_BAG, _SHROUDED_KEY_BAG = (bytes.fromhex(f"2a864886f70d010c0a010{number}") for number in (1, 2))
_FRIENDLY_NAME = bytes.fromhex("2a864886f70d010914")
_OCTETS, _SEQUENCE, _SET, _CONTENT = 0x04, 0x30, 0x31, 0xA0
MOST = 100
"""Keys that are looked at, and certificates of a chain."""


def key_names(data: bytes) -> dict[str, bytes]:
    """The keys by alias (``key 1`` for one without), each in DER and mostly encrypted.

    Empty where the store has none, or none where they can be seen without its password.
    """
    try:
        return _keys(data)
    except (DamagedError, IndexError, UnicodeDecodeError):
        return {}


def open_key(der: bytes, password: bytes | None) -> Any:
    """A key of ``key_names``.

    Raises:
        StoreError: the password is another one.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    try:
        return load_der_private_key(der, password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise StoreError("is a PKCS12 store, and one of its keys has another password") from None


def chain_of(own: Any, every: list[Any]) -> list[Any]:
    """A certificate and its issuers, as far as they are among ``every``."""
    found = [own]
    while len(found) < MOST and found[-1].issuer != found[-1].subject:
        issuer = next((one for one in every if one.subject == found[-1].issuer and one not in found), None)
        if issuer is None:
            break
        found.append(issuer)
    return found


def _keys(data: bytes) -> dict[str, bytes]:
    store = values(_only(values(data), _SEQUENCE))
    safe = _content_of(store[1])
    found: dict[str, bytes] = {}
    for _tag, content, _whole in values(_only(values(safe), _SEQUENCE)):
        parts = values(content)
        if parts[0][1] != _DATA:
            continue  # encrypted: the certificates, mostly
        inside = _only(values(_only(values(parts[1][1]), _OCTETS)), _SEQUENCE)
        for _tag, bag, _whole in values(inside):
            kind, value, *more = values(bag)
            if kind[1] in (_KEY_BAG, _SHROUDED_KEY_BAG) and len(found) < MOST:
                found[_alias(more) or f"key {len(found) + 1}"] = values(value[1])[0][2]
    return found


def _content_of(info: Value) -> bytes:
    kind, content = values(info[1])
    if kind[1] != _DATA or content[0] != _CONTENT:
        raise DamagedError
    return _only(values(content[1]), _OCTETS)


def _alias(attributes: list[Value]) -> str | None:
    for tag, inside, _whole in attributes:
        for _tag, pair, _whole in values(inside) if tag == _SET else ():
            name, content = values(pair)
            if name[1] == _FRIENDLY_NAME:
                return values(content[1])[0][1].decode("utf-16-be")
    return None


def _only(found: list[Value], tag: int) -> bytes:
    if len(found) != 1 or found[0][0] != tag:
        raise DamagedError
    return found[0][1]
