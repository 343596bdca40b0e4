"""Certificates of trustme as files that Java's brokers read, for tests and benches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import trustme


class Identity(NamedTuple):
    """Files of PEM: certificates, key (PKCS#8), and both in one."""

    chain: Path
    key: Path
    both: Path


def pkcs8(pem: bytes) -> bytes:
    """A private key in the one form that Java's PEM reader takes."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(pem, None)
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def identity(folder: Path, name: str, issued: trustme.LeafCert) -> Identity:
    """Writes a certificate's files."""
    made = Identity(folder / f"{name}.crt", folder / f"{name}.key", folder / f"{name}.pem")
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    key = pkcs8(issued.private_key_pem.bytes())
    made.chain.write_bytes(chain)
    made.key.write_bytes(key)
    made.both.write_bytes(key + chain)
    return made
