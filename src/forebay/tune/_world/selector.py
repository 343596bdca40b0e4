"""EventSelector: the connections of a simulated producer.  A turn does what is due and returns; no time passes inside.

The world keeps what a turn says: how long the producer would have waited (``timeout``), and whether it would not have
waited at all (``again``).
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable
from typing import Any, Protocol

from forebay._network._io import CONNECTING, OPEN
from forebay._network.channel import Channel
from forebay._network.selector import Selector
from forebay._network.transport import Address
from forebay._runtime.manual_clock import ManualClock
from forebay.errors import DisconnectError, KafkaError, NetworkError

ALL = 1 << 30
"""More buffers than a channel can have queued."""


class Service(Protocol):
    """What is behind an address."""

    def connect(self, link: Link) -> None:
        """A connection is tried; the service calls ``established`` or ``refuse``, now or later or never."""
        ...

    def received(self, link: Link, data: bytes) -> None:
        """Whole requests were written to the connection, one or more."""
        ...

    def closed(self, link: Link) -> None:
        """The producer closed the connection."""
        ...


class EventChannel(Channel):
    """A channel that tells its selector of what is written."""

    link: Link

    def write(self, buffers: list[Any], on_written: Any, prompt: bool = True) -> None:
        """As ``Channel.write``."""
        super().write(buffers, on_written, prompt)
        self.link.selector.note_write(self, prompt)


class Link:
    """The far end of one channel."""

    __slots__ = ("busy", "channel", "line", "open", "selector", "service", "wire_free")

    def __init__(self, selector: EventSelector, channel: EventChannel, service: Service) -> None:
        self.selector = selector
        self.channel = channel
        self.service = service
        self.open = True
        """False once either side has ended the connection."""
        self.wire_free = 0.0
        """When the last byte that was written is on its way."""
        self.busy = False
        """A request of it is being served."""
        self.line: list[Any] = []
        """Requests that wait for it."""

    def established(self) -> None:
        """The connection stands."""
        if self.channel.state == CONNECTING:
            self.channel.mark_open(self.selector.clock.now())
            self.selector.tell(self.channel)

    def refuse(self) -> None:
        """The connection is refused."""
        words = f"{errno.errorcode[errno.ECONNREFUSED]}: {os.strerror(errno.ECONNREFUSED)}"
        self._lose(NetworkError(f"cannot connect to {self.channel.peer}: {words}"))

    def reset(self) -> None:
        """The connection breaks; what was on its way is lost."""
        self._lose(DisconnectError(f"{self.channel.peer} closed the connection"))

    def answer(self, data: bytes) -> None:
        """Bytes of an answer arrive at the producer."""
        if self.channel.state == OPEN:
            self.selector.arrived(self.channel, data)

    def _lose(self, error: KafkaError) -> None:
        self.open = False
        if self.channel.state in (CONNECTING, OPEN):
            self.channel.shut(error)
            self.selector.tell(self.channel)


class EventSelector(Selector):
    """The selector; see the module's docstring.

    Args:
        clock: moved by the world alone.
        services: what is behind each port.
    """

    def __init__(self, clock: ManualClock, services: dict[int, Any]) -> None:
        super().__init__()
        self.clock = clock
        self.number: int = 0
        """Of the producer."""
        self.on_news: Callable[[], None] = _nothing
        """Called when the producer would be woken: by an answer, a connection, or ``wakeup``."""
        self.on_requests: Callable[[], None] = _nothing
        """Called within a turn, when requests have just been written."""
        self.timeout: float = math.inf
        """How long the last turn would have waited."""
        self.again = False
        """The last turn would have returned at once."""
        self._services = services
        self._links: dict[int, Link] = {}
        self._written: list[EventChannel] = []
        self._arrived: list[tuple[Channel, bytes]] = []
        self._news: dict[int, Channel] = {}
        self._prompt = self._woken = False
        self._count = 0

    # -- from the far side -------------------------------------------------------------------------------

    def note_write(self, channel: EventChannel, prompt: bool) -> None:
        """Something was queued in a channel; ``prompt``: its end ends the turn."""
        self._written.append(channel)
        self._prompt = self._prompt or prompt

    def arrived(self, channel: Channel, data: bytes) -> None:
        """Bytes came, which the next turn gives to the channel."""
        self._arrived.append((channel, data))
        self.on_news()

    def tell(self, channel: Channel) -> None:
        """The next turn reports the channel."""
        self._news[channel.id] = channel
        self.on_news()

    def has_news(self) -> bool:
        """Whether a turn would report something."""
        return bool(self._news or self._arrived)

    # -- the contract ------------------------------------------------------------------------------------

    def open(self, address: Address, *, context: object, now: float, **sizes: Any) -> Channel:
        """As ``Selector.open``; the sizes mean nothing here, and there is no filter."""
        self._count += 1
        channel = EventChannel(self._count, context, str(address), None, now)
        service: Service = self._services[address.sockaddr[1]]
        channel.link = self._links[channel.id] = Link(self, channel, service)
        service.connect(channel.link)
        return channel

    def turn(self, timeout_ms: float, now: float) -> list[Channel]:
        """As ``Selector.turn``, but it never waits: ``timeout`` says for how long it would have."""
        prompt, self._prompt = self._prompt, False
        written, self._written = self._written, []
        if written:
            self._pull(written, prompt, now)
        arrived, self._arrived = self._arrived, []
        for channel, data in arrived:
            if channel.state == OPEN:
                _fill(channel, data, now)
                self._news[channel.id] = channel
        found = list(self._news.values())
        self._news.clear()
        self.again = self._woken or bool(found)
        self._woken = False
        self.timeout = timeout_ms
        return found

    def close(self, channel: Channel) -> None:
        """As ``Selector.close``."""
        self._news.pop(channel.id, None)
        channel.shut(None)
        link = self._links.pop(channel.id, None)
        if link is not None and link.open:
            link.open = False
            link.service.closed(link)

    def close_all(self) -> None:
        """As ``Selector.close_all``."""
        for link in list(self._links.values()):
            self.close(link.channel)

    def close_after_fork(self) -> None:
        """As ``Selector.close_after_fork``: there are no descriptors."""
        self._links.clear()

    def wakeup(self) -> None:
        """As ``Selector.wakeup``."""
        self._woken = True
        self.on_news()

    def forget_wakeup(self) -> None:
        """The producer is awake: its wake-ups so far end no further wait."""
        self._woken = False

    def _pull(self, written: list[EventChannel], prompt: bool, now: float) -> None:
        frames: list[tuple[Link, bytes]] = []
        for channel in written:
            size = channel.pending
            if channel.state != OPEN or size == 0:
                continue
            frames.append((channel.link, b"".join(channel.outgoing(ALL))))
            channel.sent(size, now)
            if prompt:
                self._news[channel.id] = channel
        self.on_requests()
        for link, data in frames:
            link.service.received(link, data)


def _fill(channel: Channel, data: bytes, now: float) -> None:
    rest = memoryview(data)
    while rest:
        room = channel.room()
        size = min(len(room), len(rest))
        room[:size] = rest[:size]
        channel.filled(size, now)
        rest = rest[size:]


def _nothing() -> None:
    """Nobody is there yet."""
