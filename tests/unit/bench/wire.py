"""Kafka's bytes for test_arrival: requests of which only the header counts, and answers to produce requests."""

from __future__ import annotations

import socket
from struct import pack

PRODUCE = 0


def framed(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


def request(correlation: int, version: int = 3, key: int = PRODUCE) -> bytes:
    return framed(pack(">hhi", key, version, correlation) + b"client, records")


def answer(correlation: int, *places: tuple[int, int], error: int = 0, topic: bytes = b"t") -> bytes:
    """To a request of v3; a place is a partition and the base offset of what was written there."""
    out = pack(">iih", correlation, 1, len(topic)) + topic + pack(">i", len(places))
    for partition, base in places:
        out += pack(">ihqq", partition, error, base, -1)
    return framed(out + pack(">i", 0))


def flexible_answer(correlation: int, partition: int, base: int, header_tags: int = 0) -> bytes:
    """To a request of v9, about topic "t"."""
    fields = pack(">ihqqq", partition, 0, base, -1, 0) + b"\x01\x00\x00"
    body = b"\x02" + b"\x02t" + b"\x02" + fields + b"\x00" + pack(">i", 0) + b"\x00"
    return framed(pack(">i", correlation) + bytes([header_tags]) + body)


def answer_by_id(correlation: int, topic_id: bytes, partition: int, base: int) -> bytes:
    """To a request of v13."""
    fields = pack(">ihqqq", partition, 0, base, -1, 0) + b"\x01\x00\x00"
    body = b"\x02" + topic_id + b"\x02" + fields + b"\x00" + pack(">i", 0) + b"\x00"
    return framed(pack(">ib", correlation, 0) + body)


def metadata_answer(correlation: int, topic_id: bytes) -> bytes:
    """To a request of v12: no brokers, and topic "t" without partitions."""
    topic = pack(">h", 0) + b"\x02t" + topic_id + b"\x00" + b"\x01" + pack(">i", 0) + b"\x00"
    body = pack(">i", 0) + b"\x01" + b"\x00" + pack(">i", -1) + b"\x02" + topic + b"\x00"
    return framed(pack(">ib", correlation, 0) + body)


def connected() -> tuple[socket.socket, socket.socket]:
    """Two ends over TCP, whose bytes the system stamps, unlike those of a socket pair; the first does not block."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    near.setblocking(False)
    return near, far
