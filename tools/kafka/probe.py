"""One Metadata question to one node, by hand: no client library would tell a node that is not ready quickly."""

from __future__ import annotations

import socket
import struct

METADATA = 3
VERSION = 1
TIMEOUT_S = 2.0


def nodes_in_metadata(host: str, port: int) -> set[int]:
    """The ids of the brokers that this node names; empty while it does not answer."""
    try:
        with socket.create_connection((host, port), TIMEOUT_S) as connection:
            connection.settimeout(TIMEOUT_S)
            # Header v1 (api, version, correlation id, client id) and no topics at all.
            request = struct.pack(">hhih5si", METADATA, VERSION, 7, 5, b"probe", 0)
            connection.sendall(struct.pack(">i", len(request)) + request)
            size, correlation_id = struct.unpack(">ii", _exactly(connection, 8))
            return _broker_ids(_exactly(connection, size - 4)) if correlation_id == 7 else set()
    except (OSError, struct.error):
        # Not listening yet, or it closed the connection while starting: ask again.
        return set()


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        part = connection.recv(count - len(received))
        if not part:
            raise ConnectionResetError("closed within an answer")
        received += part
    return received


def _broker_ids(body: bytes) -> set[int]:
    (count,) = struct.unpack_from(">i", body, 0)
    position = 4
    found = set()
    for _ in range(count):
        node, length = struct.unpack_from(">ih", body, position)
        position += 6 + length + 4
        (rack,) = struct.unpack_from(">h", body, position)
        position += 2 + max(rack, 0)
        found.add(node)
    return found
