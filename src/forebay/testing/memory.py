"""A selector without sockets, threads and real time: a test chooses the moment of every byte and every fault.

A test sets the peer at an address (``listen``), and gets a ``Link``, the far end, for each connection.  Time is a
``ManualClock``.  A turn with nothing to do moves it to the next event, or by its timeout, as a real wait would.  A
``Link`` delays, splits, stalls, half-closes and resets; addresses refuse or never answer.
"""

from __future__ import annotations

import errno
import heapq
import math
import os
from collections.abc import Callable, Iterator
from typing import Protocol

from forebay._network._io import CONNECTING, OPEN
from forebay._network.channel import Channel
from forebay._network.selector import Selector
from forebay._network.transport import Address, StreamFilter
from forebay._runtime.manual_clock import ManualClock
from forebay.errors import DisconnectError, NetworkError

ANY = 1 << 30
"""More buffers, and more bytes, than a channel can have queued."""


class Peer(Protocol):
    """The far side's program: gets bytes, and answers with bytes through the link."""

    def connected(self, link: Link) -> None:
        """A connection was accepted."""
        ...

    def received(self, link: Link, data: bytes) -> None:
        """Bytes arrived, in any pieces."""
        ...

    def closed(self, link: Link) -> None:
        """The near end closed or reset the connection."""
        ...


class SilentPeer:
    """Accepts, keeps every byte in ``link.inbox`` and never answers."""

    def connected(self, link: Link) -> None:
        """Nothing to say."""

    def received(self, link: Link, data: bytes) -> None:
        """Nothing to say."""

    def closed(self, link: Link) -> None:
        """Nothing to say."""


class Link:
    """The far end of one channel.

    ``inbox`` has the bytes that arrived and were not taken.  ``window`` bounds it (None: no bound), as the buffers of a
    real connection do.  ``stalled`` lets nothing more in.  ``split`` bounds the bytes that a turn gives to the near
    end.
    """

    def __init__(self, selector: MemorySelector, channel: Channel, peer: Peer) -> None:
        self.selector = selector
        self.channel = channel
        self.peer = peer
        self.inbox: bytearray = bytearray()
        self.window: int | None = None
        self.stalled = False
        self.split: int | None = None
        self.open = True
        """False once either side has ended the connection."""
        self._outbox = bytearray()
        self._last_arrival = -math.inf
        self._ending: NetworkError | None = None

    def send(self, data: bytes, delay_ms: float = 0) -> None:
        """Sends bytes that arrive ``delay_ms`` from now, but never before what was sent earlier.

        Nothing arrives behind a close or a reset.
        """

        def arrive() -> None:
            if self._ending is None:
                self._outbox.extend(data)

        self._after(delay_ms, arrive)

    def close(self, delay_ms: float = 0) -> None:
        """Ends the stream behind all that was sent."""
        self._after(delay_ms, lambda: self._end(DisconnectError(f"{self.channel.peer} closed the connection")))

    def reset(self, delay_ms: float = 0) -> None:
        """Breaks the connection; bytes that have not arrived are lost."""

        def cut() -> None:
            self._outbox.clear()
            self._end(DisconnectError(f"connection to {self.channel.peer} lost: {_words(errno.ECONNRESET)}"))

        self.selector.call_at(self.selector.clock.now() + delay_ms, cut)

    def take(self) -> bytes:
        """All that has arrived since the last ``take``."""
        data = bytes(self.inbox)
        self.inbox.clear()
        return data

    def _after(self, delay_ms: float, action: Callable[[], None]) -> None:
        self._last_arrival = max(self._last_arrival, self.selector.clock.now() + delay_ms)
        self.selector.call_at(self._last_arrival, action)

    def _end(self, error: NetworkError) -> None:
        self._ending = self._ending or error

    def _pull(self, now: float) -> bool:
        """Takes what the near end wrote.  True if that ended a write."""
        size = min(self.channel.pending, self._room())
        data = b"".join(self.channel.outgoing(ANY))[:size] if size else b""
        ended: bool = self.channel.sent(len(data), now)
        if data:
            self.inbox += data
            self.peer.received(self, data)
        return ended

    def _push(self, now: float) -> bool:
        """Gives the near end what has arrived for it.  True if there was any."""
        data = bytes(self._outbox if self.split is None else self._outbox[: self.split])
        del self._outbox[: len(data)]
        for part in _parts(self.channel, data):
            self.channel.filled(part, now)
        return bool(data)

    def _room(self) -> int:
        if self.stalled:
            return 0
        return ANY if self.window is None else max(self.window - len(self.inbox), 0)

    def _busy(self) -> bool:
        writes = self.channel.pending > 0 and self._room() > 0
        return bool(self._outbox) or self._ending is not None or writes


class MemorySelector(Selector):
    """The selector; see the module's docstring.

    Args:
        clock: moved by turns that wait.
        connect_ms: how long a connection takes to stand.
    """

    def __init__(self, clock: ManualClock, *, connect_ms: float = 0) -> None:
        super().__init__()
        self.clock = clock
        self.connect_ms = connect_ms
        self.opened: list[Address] = []
        """Every address tried, in order."""
        self.links: list[Link] = []
        """The far ends of all connections that stood, in order."""
        self.turns: int = 0
        self._peers: dict[Address, Peer | None] = {}
        self._connect_ms: dict[Address, float | None] = {}
        self._refusals: dict[Address, int] = {}
        self._near: dict[int, tuple[Channel, Link | None]] = {}
        self._news: dict[int, Channel] = {}
        self._wanted: set[int] = set()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._woken = False

    # -- what the test says ------------------------------------------------------------------------------

    def listen(self, address: Address, peer: Peer | None = None, *, connect_ms: float | None = None) -> None:
        """Connections to ``address`` are accepted, and ``peer`` answers (None: there are no answers).

        ``connect_ms``: how long they take to stand, if not as long as all others.
        """
        self._peers[address] = peer or SilentPeer()
        self._connect_ms[address] = connect_ms

    def refuse(self, address: Address, code: int = errno.ECONNREFUSED) -> None:
        """Connections to ``address`` fail with ``code``; without a listener they fail with ECONNREFUSED."""
        self._peers.pop(address, None)
        self._refusals[address] = code

    def swallow(self, address: Address) -> None:
        """Connections to ``address`` never get an answer."""
        self._peers[address] = None

    def call_at(self, when: float, action: Callable[[], None]) -> None:
        """Runs ``action`` in the turn in which the clock reaches ``when`` (ms)."""
        self._count += 1
        heapq.heappush(self._agenda, (when, self._count, action))

    # -- the contract ------------------------------------------------------------------------------------

    def open(
        self,
        address: Address,
        *,
        context: object,
        now: float,
        send_buffer: int,
        receive_buffer: int,
        stream_filter: StreamFilter | None = None,
    ) -> Channel:
        """As ``Selector.open``; the sizes mean nothing here, and there is no filter."""
        self._count += 1
        channel = Channel(self._count, context, str(address), None, now)
        self.opened.append(address)
        self._near[channel.id] = (channel, None)
        peer = self._peers.get(address)
        if peer is None and address in self._peers:
            return channel

        def answer() -> None:
            if channel.state == CONNECTING:
                self._answer(channel, address)

        took = self._connect_ms.get(address)
        self.call_at(now + (self.connect_ms if took is None else took), answer)
        return channel

    def turn(self, timeout_ms: float, now: float) -> list[Channel]:
        """As ``Selector.turn``; waiting moves the clock.  With nothing ahead an infinite wait returns at once."""
        self.turns += 1
        self._exchange(now)
        if not self._news and not self._woken:
            self._pass_time(timeout_ms, now)
        self._woken = False
        news = list(self._news.values())
        self._news.clear()
        return news

    def close(self, channel: Channel) -> None:
        """As ``Selector.close``."""
        entry = self._near.pop(channel.id, None)
        self._news.pop(channel.id, None)
        channel.shut(None)
        if entry is not None and entry[1] is not None and entry[1].open:
            entry[1].open = False
            entry[1].peer.closed(entry[1])

    def close_all(self) -> None:
        """As ``Selector.close_all``."""
        for channel, _link in list(self._near.values()):
            self.close(channel)

    def close_after_fork(self) -> None:
        """As ``Selector.close_after_fork``: there are no descriptors."""
        self._near.clear()

    def wakeup(self) -> None:
        """As ``Selector.wakeup``."""
        self._woken = True

    # -- one turn ----------------------------------------------------------------------------------------

    def _pass_time(self, timeout_ms: float, now: float) -> None:
        """Moves the clock from event to event until there is news or the time is over."""
        end = now + max(timeout_ms, 0)
        while not self._news and not self._woken:
            ahead = self._agenda[0][0] if self._agenda else math.inf
            if any(link is not None and link._busy() for _channel, link in self._near.values()):
                ahead = now
            if ahead > end or math.isinf(ahead):
                break
            self._move_clock(ahead)
            self._exchange(self.clock.now())
        if not self._news and not self._woken and not math.isinf(end):
            self._move_clock(end)

    def _move_clock(self, to: float) -> None:
        if to > self.clock.now():
            self.clock.advance(to - self.clock.now())

    def _exchange(self, now: float) -> None:
        while self._agenda and self._agenda[0][0] <= now:
            heapq.heappop(self._agenda)[2]()
        for channel, link in list(self._near.values()):
            if link is None or channel.state != OPEN:
                continue
            if link._pull(now):
                self._news[channel.id] = channel
            if channel.state == OPEN and link._push(now):
                self._news[channel.id] = channel
            if channel.state == OPEN and link._ending is not None and not link._outbox:
                self._lose(channel, link._ending)

    def _answer(self, channel: Channel, address: Address) -> None:
        peer = self._peers.get(address)
        if peer is None:
            code = self._refusals.get(address, errno.ECONNREFUSED)
            self._lose(channel, NetworkError(f"cannot connect to {channel.peer}: {_words(code)}"))
            return
        link = Link(self, channel, peer)
        self._near[channel.id] = (channel, link)
        self.links.append(link)
        channel.mark_open(self.clock.now())
        self._news[channel.id] = channel
        peer.connected(link)

    def _lose(self, channel: Channel, error: NetworkError) -> None:
        link = self._near.pop(channel.id)[1]
        if link is not None:
            link.open = False
        self._news[channel.id] = channel
        channel.shut(error)


def _parts(channel: Channel, data: bytes) -> Iterator[int]:
    rest = memoryview(data)
    while rest:
        room = channel.room()
        size = min(len(room), len(rest))
        room[:size] = rest[:size]
        yield size
        rest = rest[size:]


def _words(code: int) -> str:
    return f"{errno.errorcode[code]}: {os.strerror(code)}"
