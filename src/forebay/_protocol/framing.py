"""Requests and responses on the wire: the length before each, and the headers.

Every request and response is an int32 length and that many bytes.  Bodies pass through as they are: nothing joins or
copies them.  A length is checked before memory is allocated for it.  A bad one raises a ``ProtocolError`` that guesses
what listens there instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

import cython
from cython.cimports.forebay._runtime.memory import new_bytearray
from cython.cimports.forebay._runtime.primitives import (
    bytearray_pointer,
    bytes_pointer,
    put_int8,
    put_int16,
    put_int32,
    put_raw,
)

from forebay._protocol.versions import api_name, is_flexible, request_header_version, response_header_version
from forebay.errors import IllegalArgumentError, ProtocolError

SIZE_BYTES = 4
"""Bytes of the length before each message."""

MAX_INT16 = cython.declare(cython.Py_ssize_t, 0x7FFF)
MAX_INT32 = 0x7FFFFFFF

MAX_RESPONSE_SIZE = 100 << 20
"""The bound for ``frame_size``: far above any metadata, below the lengths that text of other protocols would give."""

_SIZE = Struct(">i")
# api key, version, correlation id, client id's length (-1: null)
_HEADER = Struct(">hhih")

# The first bytes of other protocols, for the error message only.
_STRANGERS = (
    (b"HTTP", "an HTTP server"),
    (b"SSH-", "an SSH server"),
    (b"220 ", "a mail or FTP server"),
    (b"220-", "a mail or FTP server"),
    (b"-ERR", "a Redis or mail server"),
    (b"\x15\x03", "a TLS listener (security.protocol there is not PLAINTEXT)"),
    (b"\x16\x03", "a TLS listener (security.protocol there is not PLAINTEXT)"),
)


def request_header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A request's header in the form its API and version ask for; ``client_id`` None is sent as null."""
    name = b"" if client_id is None else client_id.encode()
    head = _HEADER.pack(api_key, version, correlation_id, -1 if client_id is None else len(name))
    # The client id keeps its old two-byte length even in header v2: brokers read it before they know the API.
    return head + name + b"\0" if request_header_version(api_key, version) == 2 else head + name


def request_frame(
    api_key: int, version: int, correlation_id: int, client_id: str | None, body: Sequence[Any]
) -> list[Any]:
    """The buffers for the socket: length and header, then those of ``body``.

    Args:
        body: bytes-like objects whose ``len`` is their size in bytes.

    Raises:
        IllegalArgumentError: the request is longer than an int32 can say, or the client id than an int16.
    """
    name = None if client_id is None else client_id.encode()
    return framed(api_key, version, is_flexible(api_key, version), correlation_id, name, list(body))


@cython.cfunc
def framed(
    api_key: cython.int,
    version: cython.int,
    flexible: cython.bint,
    correlation_id: cython.int,
    name: bytes | None,
    body: list[Any],
) -> list[Any]:
    """As ``request_frame``, with ``flexible`` looked up and the client id encoded by the caller."""
    if name is not None and len(name) > MAX_INT16:
        raise IllegalArgumentError(f"client.id of {len(name)} bytes, at most {MAX_INT16} are allowed: {name[:40]!r}...")
    at: cython.Py_ssize_t = 14 + (0 if name is None else len(name)) + (1 if flexible else 0)
    head: bytearray = new_bytearray(at)
    size: cython.longlong = at - 4
    for piece in body:
        size += len(piece)
    if size > MAX_INT32:
        raise IllegalArgumentError(f"{api_name(api_key)} request of {size} bytes; a request has at most {MAX_INT32}")
    to: cython.p_uchar = bytearray_pointer(head)
    put_int32(to, 0, size)
    put_int16(to, 4, api_key)
    put_int16(to, 6, version)
    put_int32(to, 8, correlation_id)
    if name is None:
        put_int16(to, 12, -1)
    else:
        put_int16(to, 12, len(name))
        put_raw(to, 14, bytes_pointer(name), len(name))
    if flexible:
        put_int8(to, at - 1, 0)  # no tagged fields
    return [head, *body]


def frame_size(received: Any, max_size: int) -> int:
    """Size in bytes of the response that begins ``received``, its four length bytes excluded.

    Returns:
        -1 while fewer than four bytes are there.

    Raises:
        ProtocolError: the length is negative, too small for a header, or above ``max_size``.
    """
    if len(received) < SIZE_BYTES:
        return -1
    size: int = _SIZE.unpack_from(received)[0]
    if SIZE_BYTES <= size <= max_size:
        return size
    first = bytes(received[:SIZE_BYTES])
    guess = stranger(first)
    hint = f"; it looks like {guess}" if guess else ""
    raise ProtocolError(
        f"The peer does not speak the Kafka protocol: response length {size} (bytes {first!r}), "
        f"allowed are {SIZE_BYTES} to {max_size}{hint}"
    )


def stranger(first: bytes) -> str | None:
    """The name of another protocol whose messages begin with ``first``; None if it is not known."""
    return next((name for start, name in _STRANGERS if first.startswith(start)), None)


def correlation_id(frame: Any) -> int:
    """The correlation id of a response, which has the same place in every header version.

    Raises:
        ProtocolError: fewer than four bytes.
    """
    if len(frame) < 4:
        raise ProtocolError(f"Response header of {len(frame)} bytes, at least 4 are needed")
    found: int = _SIZE.unpack_from(frame)[0]
    return found


def response_header(api_key: int, version: int, frame: Any) -> tuple[int, int]:
    """Read a response's header.

    Args:
        frame: the response without its four length bytes.

    Returns:
        The correlation id, and the position where the body starts.

    Raises:
        ProtocolError: the header is cut short.
    """
    found = correlation_id(frame)
    if response_header_version(api_key, version) == 0:
        return found, 4
    if len(frame) > 4 and frame[4] == 0:
        return found, 5
    from forebay._protocol.primitives import Reader

    reader = Reader(frame, what=f"{api_name(api_key)} v{version} response header", flexible=True, at=4)
    reader.tags()
    return found, reader.position
