"""A TCP proxy before a Kafka cluster that delays, holds, cuts and rewrites what goes through it.

Every broker that an answer names gets a listener of its own on 127.0.0.1, and its address is rewritten to that,
so clients that start at :attr:`KafkaProxy.bootstrap_servers` stay behind the proxy.  One thread with an event
loop moves the bytes; the methods may be called from any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from tests.support.rewrite import Address, Answer, Hook, translate_addresses

CALL_TIMEOUT_S = 10.0

T = TypeVar("T")


class ProxiedRequest(NamedTuple):
    """One request as a client sent it: its header, its size in bytes, and the broker it went to."""

    api_key: int
    version: int
    correlation_id: int
    size: int
    node: Address


class KafkaProxy:
    """Stands before the brokers of ``bootstrap_servers`` until :meth:`close`.

    ``hooks`` see every answer in turn, each what the one before returned.  An exception of a hook cuts the
    connection and is raised again by :meth:`close`.
    """

    def __init__(self, bootstrap_servers: str, *, hooks: Sequence[Hook] = ()) -> None:
        #: Milliseconds by which every answer is late.
        self.delay_ms = 0.0
        #: Every request seen, in order of arrival; appended to by the proxy's thread.
        self.requests: list[ProxiedRequest] = []
        self._hooks = (translate_addresses(self._translate), *hooks)
        # All of what follows belongs to the loop's thread.
        self._addresses: dict[Address, Address] = {}
        self._servers: dict[Address, asyncio.Server] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self._lost: Counter[int] = Counter()
        self._error: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._answers_flow = asyncio.Event()
        self._requests_flow = asyncio.Event()
        self._answers_flow.set()
        self._requests_flow.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kafka-proxy", daemon=True)
        self._thread.start()
        addresses = [_address(server) for server in bootstrap_servers.split(",")]
        moved = self._on_loop(lambda: [self._translate(*address) for address in addresses])
        self.bootstrap_servers = ",".join(f"{host}:{port}" for host, port in moved)

    # -- faults -----------------------------------------------------------------------------------------------

    def stall(self, *, answers: bool = True, requests: bool = False) -> None:
        """Holds back what goes in these directions, connections open, until :meth:`resume`."""
        if answers:
            self._on_loop(self._answers_flow.clear)
        if requests:
            self._on_loop(self._requests_flow.clear)

    def resume(self) -> None:
        """Lets everything flow that :meth:`stall` held back."""
        self._on_loop(self._answers_flow.set)
        self._on_loop(self._requests_flow.set)

    def cut(self) -> None:
        """Closes every connection; clients may connect again."""
        self._on_loop(self._cancel_connections)

    def lose_answers(self, api_key: int, count: int = 1) -> None:
        """Cuts the connection in place of the next ``count`` answers of this API: the broker did the work."""
        self._on_loop(lambda: self._lost.update({api_key: count}))

    def refuse(self) -> None:
        """Closes every connection and takes no new ones (connection refused) until :meth:`accept`."""
        self._on_loop(self._close_listeners)

    def accept(self) -> None:
        """Listens again on the same ports after :meth:`refuse`."""
        self._on_loop(self._open_listeners)

    @property
    def connections(self) -> int:
        """Connections open now."""
        return self._on_loop(lambda: len(self._connections))

    # -- life -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends all connections; raises what a hook raised, if one did."""
        if self._loop.is_closed():
            return
        self._on_loop(self._close_listeners)
        self._run(self._settled())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _settled(self) -> None:
        await asyncio.gather(*self._connections, return_exceptions=True)

    # -- listeners (loop's thread) ----------------------------------------------------------------------------

    def _translate(self, host: str, port: int) -> Address:
        upstream = (host, port)
        if upstream not in self._addresses:
            self._listen(upstream, 0)
        return self._addresses[upstream]

    def _listen(self, upstream: Address, port: int) -> None:
        # Bound here and now, because the answer that names it is being written; served a turn later.
        listener = socket.create_server(("127.0.0.1", port))
        self._addresses[upstream] = listener.getsockname()[:2]
        task = self._loop.create_task(self._serve(upstream, listener))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _serve(self, upstream: Address, listener: socket.socket) -> None:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._connections.add(task)
            try:
                await self._pass(upstream, reader, writer)
            except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                # An end of either side, or a cut: the proxy's daily bread.
                pass
            except Exception as error:  # noqa: BLE001 -- a hook's; close() raises it
                self._error = self._error or error
            finally:
                self._connections.discard(task)

        self._servers[upstream] = await asyncio.start_server(connected, sock=listener)

    def _close_listeners(self) -> None:
        for server in self._servers.values():
            server.close()
        self._servers.clear()
        self._cancel_connections()

    def _open_listeners(self) -> None:
        for upstream, (_, port) in self._addresses.items():
            if upstream not in self._servers:
                self._listen(upstream, port)

    def _cancel_connections(self) -> None:
        for task in self._connections:
            task.cancel()

    # -- bytes (loop's thread) --------------------------------------------------------------------------------

    async def _pass(self, node: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(*node)
        asked: dict[int, ProxiedRequest] = {}
        ways = [
            asyncio.ensure_future(self._pass_requests(node, reader, upstream_writer, asked)),
            asyncio.ensure_future(self._pass_answers(upstream_reader, writer, asked)),
        ]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        finally:
            for way in ways:
                way.cancel()
            for end in (writer, upstream_writer):
                # What is still unsent is thrown away: a cut is a cut.
                end.transport.abort()

    async def _pass_requests(
        self,
        node: Address,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        asked: dict[int, ProxiedRequest],
    ) -> None:
        while True:
            frame = await _frame(reader)
            api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
            request = ProxiedRequest(api_key, version, correlation_id, len(frame), node)
            asked[request.correlation_id] = request
            self.requests.append(request)
            await self._requests_flow.wait()
            await _write_frame(writer, frame)

    async def _pass_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[int, ProxiedRequest]
    ) -> None:
        while True:
            frame = await _frame(reader)
            (correlation_id,) = struct.unpack_from(">i", frame)
            request = asked.pop(correlation_id)
            if self._lost[request.api_key]:
                self._lost[request.api_key] -= 1
                return
            payload = self._rewritten(request, frame[4:])
            if payload is None:
                return
            if self.delay_ms:
                await asyncio.sleep(self.delay_ms / 1000)
            await self._answers_flow.wait()
            await _write_frame(writer, frame[:4] + payload)

    def _rewritten(self, request: ProxiedRequest, payload: bytes) -> bytes | None:
        answer = Answer(request.api_key, request.version, request.correlation_id, payload, request.node)
        for hook in self._hooks:
            changed = hook(answer)
            if changed is None:
                return None
            answer = answer._replace(payload=changed)
        return answer.payload

    # -- from other threads -----------------------------------------------------------------------------------

    def _on_loop(self, action: Callable[[], T]) -> T:
        async def run() -> T:
            return action()

        return self._run(run())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_TIMEOUT_S)


def _address(server: str) -> Address:
    host, _, port = server.strip().rpartition(":")
    return host.strip("[]"), int(port)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


async def _write_frame(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(struct.pack(">i", len(frame)) + frame)
    with contextlib.suppress(ConnectionResetError):
        await writer.drain()
