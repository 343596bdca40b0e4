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
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from tests.support.pace import HANG_S
from tests.support.refusal import refusal
from tests.support.rewrite import API_VERSIONS, Address, Answer, Hook, translate_addresses

T = TypeVar("T")


class ProxiedRequest(NamedTuple):
    """One request as a client sent it: its header, its size in bytes, and the broker it went to."""

    api_key: int
    version: int
    correlation_id: int
    size: int
    node: Address


class Fault(NamedTuple):
    """What happens to one request; made by the functions below."""

    #: Whether the broker sees it.
    arrives: bool
    #: The error that the client gets in place of the broker's answer.
    code: int | None = None
    #: Milliseconds by which the answer is late.
    late_ms: float = 0
    #: How much of the answer gets through before the connection is cut, as a share; None: all, and no cut.
    through: float | None = None
    #: Milliseconds for which connections are refused after the cut.
    refuse_ms: float = 0


PASS = Fault(True)
LOST = Fault(False)
"""The connection ends before the broker sees the request."""
UNHEARD = Fault(True, through=0)
"""The broker does the work; the connection ends in place of its answer."""
TORN = Fault(True, through=0.5)
"""The broker does the work; half of its answer arrives, and the connection ends."""


def refused(code: int) -> Fault:
    """The request is answered with this error, and the broker never sees it."""
    return Fault(False, code)


def told(code: int) -> Fault:
    """The broker does the work, and the client is told this error all the same."""
    return Fault(True, code)


def late(ms: float) -> Fault:
    """The broker does the work; its answer comes late."""
    return Fault(True, late_ms=ms)


def away(ms: float) -> Fault:
    """As ``LOST``, and nobody listens for so long."""
    return Fault(False, refuse_ms=ms)


class Passing(NamedTuple):
    """A request whose answer is on its way."""

    request: ProxiedRequest
    fault: Fault
    #: What the client gets instead of what the broker answers.
    instead: bytes | None


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
        self._listeners: dict[Address, socket.socket] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._lost: Counter[int] = Counter()
        self._plans: defaultdict[int, deque[Fault]] = defaultdict(deque)
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

    def plan(self, api_key: int, *faults: Fault) -> None:
        """What happens to the next requests of this API, one fault each; then they pass again."""
        self._on_loop(lambda: self._plans[api_key].extend(faults))

    def planned(self) -> int:
        """How many planned faults have not happened yet."""
        return self._on_loop(lambda: sum(len(plan) for plan in self._plans.values()))

    def clear_plans(self) -> None:
        """Lets every request pass again."""
        self._on_loop(self._plans.clear)

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
        self._cancel_connections()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.sleep(0)  # an aborted transport closes its socket in the next turn

    # -- listeners (loop's thread) ----------------------------------------------------------------------------

    def _translate(self, host: str, port: int) -> Address:
        upstream = (host, port)
        if upstream not in self._addresses:
            self._listen(upstream, 0)
        return self._addresses[upstream]

    def _listen(self, upstream: Address, port: int) -> None:
        listener = socket.create_server(("127.0.0.1", port))
        listener.setblocking(False)
        self._addresses[upstream] = listener.getsockname()[:2]
        self._listeners[upstream] = listener
        # Not asyncio's own server: closed between accept() and the transport, it leaves the socket open (3.11).
        self._loop.add_reader(listener, self._accept, upstream, listener)

    def _accept(self, upstream: Address, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # whoever knocked has gone
        connection.setblocking(False)
        task = self._loop.create_task(self._connected(upstream, connection))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        # Also where the task was cancelled before it began.
        task.add_done_callback(lambda _: connection.close())

    async def _connected(self, upstream: Address, connection: socket.socket) -> None:
        try:
            await self._pass(upstream, *await asyncio.open_connection(sock=connection))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # An end of either side, or a cut: the proxy's daily bread.
            pass
        except Exception as error:  # noqa: BLE001 -- a hook's; close() raises it
            self._error = self._error or error

    def _close_listeners(self) -> None:
        for listener in self._listeners.values():
            self._loop.remove_reader(listener)
            listener.close()
        self._listeners.clear()
        self._cancel_connections()

    def _open_listeners(self) -> None:
        for upstream, (_, port) in self._addresses.items():
            if upstream not in self._listeners:
                self._listen(upstream, port)

    def _cancel_connections(self) -> None:
        for task in self._connections:
            task.cancel()

    # -- bytes (loop's thread) --------------------------------------------------------------------------------

    async def _pass(self, node: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(*node)
        except BaseException:
            # A broker that is away is away for the client too, at once; a cut may come while we connect.
            writer.transport.abort()
            raise
        asked: dict[int, Passing] = {}
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
        asked: dict[int, Passing],
    ) -> None:
        while True:
            frame = await _frame(reader)
            api_key, version, correlation_id = struct.unpack_from(">hhi", frame)
            request = ProxiedRequest(api_key, version, correlation_id, len(frame), node)
            plan = self._plans[api_key]
            fault = plan.popleft() if plan else PASS
            self.requests.append(request)
            if not fault.arrives and fault.code is None:
                if fault.refuse_ms:
                    self._close_listeners()
                    self._loop.call_later(fault.refuse_ms / 1000, self._open_listeners)
                return
            instead = None if fault.code is None else refusal(api_key, version, frame, fault.code)
            asked[correlation_id] = Passing(request, fault, instead)
            await self._requests_flow.wait()
            # In place of a refused one the broker answers something else, so that answers stay in order.
            await _write_frame(writer, frame if fault.arrives else _harmless(correlation_id))

    async def _pass_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[int, Passing]
    ) -> None:
        while True:
            frame = await _frame(reader)
            (correlation_id,) = struct.unpack_from(">i", frame)
            request, fault, instead = asked.pop(correlation_id)
            if self._lost[request.api_key]:
                self._lost[request.api_key] -= 1
                return
            payload = self._rewritten(request, frame[4:]) if instead is None else instead
            if payload is None:
                return
            if self.delay_ms or fault.late_ms:
                await asyncio.sleep((self.delay_ms + fault.late_ms) / 1000)
            await self._answers_flow.wait()
            whole = struct.pack(">i", 4 + len(payload)) + frame[:4] + payload
            if fault.through is not None:
                await _write(writer, whole[: int(len(whole) * fault.through)])
                if fault.through:
                    # An abort throws away what is still unsent here, and the half is to arrive.
                    await asyncio.sleep(0.01)
                return
            await _write(writer, whole)

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
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(HANG_S)


def _address(server: str) -> Address:
    host, _, port = server.strip().rpartition(":")
    return host.strip("[]"), int(port)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


async def _write_frame(writer: asyncio.StreamWriter, frame: bytes) -> None:
    await _write(writer, struct.pack(">i", len(frame)) + frame)


def _harmless(correlation_id: int) -> bytes:
    """A request that changes nothing: ApiVersions v0 without a client id."""
    return struct.pack(">hhih", API_VERSIONS, 0, correlation_id, -1)


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    with contextlib.suppress(ConnectionResetError):
        await writer.drain()
