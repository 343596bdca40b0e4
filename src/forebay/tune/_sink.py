"""A broker that only acknowledges, as a process of its own: what the client's own costs are measured against.

``python -m forebay.tune._sink`` prints its port and serves one topic until its standard input ends.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import cast

from forebay._protocol.primitives import UUID_SIZE
from forebay._protocol.versions import ApiKey
from forebay.model import Node
from forebay.tune._world import peer

TOPIC = "forebay-tune"
PARTITIONS = 64
NODE = 1
PRODUCER_ID = 1


class Sink(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._transport: asyncio.Transport | None = None
        self._port = 0
        self._offset = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As ``asyncio.Protocol.connection_made``."""
        self._transport = cast(asyncio.Transport, transport)
        self._port = transport.get_extra_info("sockname")[1]

    def data_received(self, data: bytes) -> None:
        """Takes what is whole."""
        self._data += data
        at = 0
        while len(self._data) - at >= 4:
            size = 4 + int.from_bytes(self._data[at : at + 4], "big")
            if len(self._data) - at < size:
                break
            at += size
        whole = bytes(self._data[:at])
        del self._data[:at]
        self.take([*peer.requests_in(whole)])

    def take(self, requests: Sequence[peer.Request]) -> None:
        """Answers requests that came together; in one write, so that the client reads it in one turn."""
        self.write(b"".join(self.answer(request) for request in requests))

    def write(self, answer: bytes) -> None:
        """To the client."""
        assert self._transport is not None
        self._transport.write(answer)

    def answer(self, request: peer.Request) -> bytes:
        """The bytes of the response."""
        if request.api_key == ApiKey.PRODUCE:
            answers = []
            for part in peer.parts_of(request)[1]:
                answers.append(peer.PartAnswer(part, 0, self._offset))
                self._offset += part.records
            return peer.answer(request, peer.produced(answers, 0))
        if request.api_key == ApiKey.METADATA:
            topic = peer.TopicAnswer(TOPIC, TOPIC.encode().ljust(UUID_SIZE), [(NODE, 0)] * PARTITIONS)
            asked = peer.topics_asked_for(request)
            topics = [topic if name == TOPIC else name for name in ([TOPIC] if asked is None else asked)]
            return peer.answer(request, peer.metadata([Node(NODE, "127.0.0.1", self._port)], topics))
        if request.api_key == ApiKey.INIT_PRODUCER_ID:
            return peer.answer(request, peer.init_producer_id(PRODUCER_ID))
        return peer.answer(request, peer.api_versions())


async def serve() -> None:
    """Until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Sink, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
