"""aiokafka's helper for TLS."""

from __future__ import annotations

from os import PathLike
from ssl import Purpose, SSLContext, create_default_context
from typing import Any

from forebay.config._door import door

__all__ = ["create_ssl_context"]

Path = str | bytes | PathLike[str] | PathLike[bytes]


@door(OSError, ValueError, wrap=False)
def create_ssl_context(
    *,
    cafile: Path | None = None,
    capath: Path | None = None,
    cadata: str | bytes | None = None,
    certfile: Path | None = None,
    keyfile: Path | None = None,
    password: Any = None,
) -> SSLContext:
    """A context for connections to brokers, whose certificate and name it checks.

    Args:
        cafile: PEM file of the trusted certificates; without any of the first three the system's are trusted.
        capath: folder of them.
        cadata: the certificates themselves, as PEM (str) or DER (bytes).
        certfile: PEM file of the client's certificates.
        keyfile: PEM file of the client's key, if it is not in ``certfile``.
        password: of the key, or a function that gives it.

    Raises:
        OSError: a file cannot be read.
        ssl.SSLError: a certificate or key makes no sense.
    """
    context = create_default_context(Purpose.SERVER_AUTH, cafile=cafile, capath=capath, cadata=cadata)
    if certfile is not None:
        context.load_cert_chain(certfile, keyfile, password)
    return context
