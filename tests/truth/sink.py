"""A broker that answers when the model says so, as a process of its own: it judges the client's half of a prediction.

It shares the model of the broker with the simulation, so it is a regression test and no truth.  ``python -m
tests.truth.sink`` with the fields of a Broker as JSON prints its port, and serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from forebay._protocol.versions import ApiKey
from forebay.tune import Broker
from forebay.tune._sink import Sink
from forebay.tune._world import peer


class PacedSink(Sink):
    """One connection, which is served one request at a time.

    Args:
        broker: how long a request takes.
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker = broker
        self._line_free = 0.0
        self._loop = asyncio.get_running_loop()

    def take(self, requests: Sequence[peer.Request]) -> None:
        """Answers each request at its time."""
        for request in requests:
            self._loop.call_at(self._due(request), self.write, self.answer(request))

    def _due(self, request: peer.Request) -> float:
        """Seconds of the loop's clock."""
        half = self._broker.rtt_ms / 2000
        work = 0.0
        if request.api_key == ApiKey.PRODUCE:
            work = (self._broker.service_ms(request.size) + self._broker.replication_ms) / 1000
        self._line_free = max(self._loop.time() + half, self._line_free) + work
        return self._line_free + half


async def serve(broker: Broker) -> None:
    """Until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: PacedSink(broker), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


@contextlib.contextmanager
def paced(broker: Broker) -> Iterator[str]:
    """The address of a sink that is as fast as the broker."""
    fields = json.dumps({**asdict(broker), "others": {}})
    with subprocess.Popen(
        [sys.executable, "-m", "tests.truth.sink", fields], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        yield f"127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()


if __name__ == "__main__":
    asyncio.run(serve(Broker(**json.loads(sys.argv[1]))))
