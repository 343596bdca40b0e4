"""The sink that only acknowledges: what it answers, however its bytes come."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from forebay._network.connection import Connection
from forebay._network.inflight import ClientRequest
from forebay._protocol.metadata import decode_metadata, encode_metadata
from forebay._protocol.versions import ApiKey
from forebay.model import Node
from forebay.tune._sink import PARTITIONS, TOPIC, Sink


class Transport(asyncio.Transport):
    """Keeps what was written."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 4711)})
        self.written: list[bytes] = []

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))


def metadata_request(*topics: str) -> bytes:
    connection = Connection(Node(1, "host", 9001), "client")
    request = ClientRequest(
        1,
        ApiKey.METADATA,
        13,
        13,
        lambda version: encode_metadata(version, list(topics)),
        decode_metadata,
        timeout_ms=1000,
        on_complete=lambda response: None,
    )
    return b"".join(connection.encode(request, 7, 0.0))


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_requests_in_pieces_are_answered_once(size: int) -> None:
    sink, transport = Sink(), Transport()
    sink.connection_made(transport)
    data = metadata_request(TOPIC, "other") * 2
    for at in range(0, len(data), size):
        sink.data_received(data[at : at + size])
    written = b"".join(transport.written)
    length = 4 + int.from_bytes(written[:4], "big")
    assert len(written) == 2 * length
    answer = decode_metadata(13, written[9:length])
    known, other = answer.topics
    assert (known.name, len(known.partitions), known.error_code) == (TOPIC, PARTITIONS, 0)
    assert (other.name, other.error_code) == ("other", 3)
    assert [(node.host, node.port) for node in answer.brokers] == [("127.0.0.1", 4711)]


def test_what_came_together_is_answered_together() -> None:
    sink, transport = Sink(), Transport()
    sink.connection_made(transport)
    sink.data_received(metadata_request(TOPIC) * 3)
    assert len(transport.written) == 1
