"""From a node to a channel: looks its name up without blocking, then tries its addresses until one answers.

The next address is tried as soon as one has failed, or in parallel to one that is silent for ``DELAY_MS`` ("Happy
Eyeballs", RFC 8305).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from forebay._network._io import OPEN
from forebay._network.connection import Connection
from forebay._network.connection_states import NodeState, State
from forebay._network.options import NetworkOptions
from forebay._network.resolver import Resolution
from forebay.errors import AuthenticationError, KafkaError, NetworkError

if TYPE_CHECKING:
    from forebay._network.channel import Channel
    from forebay._network.metadata import Metadata
    from forebay._network.transport import Address
    from forebay.model import Node

DELAY_MS = 250.0
"""How long an address may be silent before the next one is tried in parallel (RFC 8305, section 5)."""
GRACE_MS = 3000.0
"""How long to wait for silent addresses once all were tried and one has failed.

Long enough for a lost SYN to be repeated twice.  Not the whole setup timeout: the broker of the failed address may be
about to start, and only the next attempt tries it again.
"""
_INFINITY = float("inf")
_REFUSAL = "cannot connect to "


class Race:
    """The attempts at connections to the addresses of one node; the first that opens is kept."""

    __slots__ = ("channels", "failures", "filters", "next_at", "via")

    def __init__(self, via: str) -> None:
        self.via = via
        """The proxy in words, or nothing."""
        self.channels: dict[Channel, Address] = {}
        self.filters: dict[Channel, Any] = {}
        self.failures: list[str] = []
        """Address and reason of each failed attempt."""
        self.next_at = _INFINITY
        """Monotonic ms at which the next address is tried or, if none is left, the silent ones are given up."""

    def describe(self, left: Iterable[Address]) -> str:
        """Every address with its result, for messages; ``left`` are those that were not tried."""
        silent = (f"{channel.peer}: {self._silence(channel)}" for channel in self.channels)
        return "; ".join((*self.failures, *silent, *(f"{address}: not tried yet" for address in left))) + self.via

    def _silence(self, channel: Channel) -> str:
        found = self.filters.get(channel)
        return (found.silence() if found is not None else "") or "no answer"


class Connector:
    """Begins connections; sender's thread only.

    Args:
        metadata: gets the canonical names of bootstrap servers, if these are wanted.
        failed: called when a name has no address, or none of its addresses accepts a connection.
        close: closes a channel that is not needed.
        check_at: makes the client call ``go_on`` after a time.
    """

    def __init__(
        self,
        selector: Any,
        resolver: Any,
        metadata: Metadata,
        options: NetworkOptions,
        *,
        failed: Callable[[NodeState, KafkaError, float], None],
        close: Callable[[Channel], None],
        check_at: Callable[[float], None],
    ) -> None:
        self._selector = selector
        self._resolver = resolver
        self._metadata = metadata
        self._options = options
        self._failed = failed
        self._close = close
        self._check_at = check_at
        self.waiting: list[NodeState] = []
        """Nodes whose names are being looked up."""
        self._canonical: set[tuple[str, int]] = set()
        self._via = "" if options.proxy is None else f" (proxy.url is {options.proxy})"

    def begin(self, state: NodeState, now: float) -> None:
        """Begins the attempt at a node that is CONNECTING: tries its addresses now, or once they are known."""
        if not state.addresses.exhausted:
            self._race(state, now)
            return
        if state.resolution is None:
            state.resolution = self._look_up(state.node)
        if not self._take(state, now) and state not in self.waiting:
            self.waiting.append(state)

    def poll(self, now: float) -> None:
        """Goes on with nodes whose addresses have become known, and drops nodes that were given up."""
        self.waiting = [
            state for state in self.waiting if state.state == State.CONNECTING and not self._take(state, now)
        ]

    def heard(self, state: NodeState, channel: Channel, now: float) -> bool:
        """Handles an event of a connection attempt.  True: the connection is open, and is now the node's."""
        race: Race | None = state.race
        address = race.channels.pop(channel, None) if race is not None else None
        if race is None or address is None:
            return False  # given up earlier in this turn
        if channel.state == OPEN:
            state.addresses.reached(address, race.channels.values())
            self.give_up(state)
            state.channel = channel
            state.connection = Connection(state.node, self._options.client_id, self._options.max_frame)
            return True
        self._close(channel)
        if isinstance(channel.error, AuthenticationError):
            # Every address would show the same certificates, so trying the next one is useless.
            self._failed(state, channel.error, now)
            return False
        race.failures.append(str(channel.error).removeprefix(_REFUSAL))
        self._go_on(state, race, now)
        return False

    def go_on(self, state: NodeState, now: float) -> None:
        """Tries the node's next address, or gives up the silent ones, if it is time."""
        race: Race | None = state.race
        if race is None:
            return
        if now <= race.next_at:
            self._check_at(race.next_at)
        elif state.addresses.exhausted:
            self._lose(state, race, now)
        else:
            self._go_on(state, race, now)

    def give_up(self, state: NodeState) -> None:
        """Closes all connection attempts of a node."""
        race, state.race = state.race, None
        for channel in race.channels if race is not None else ():
            self._close(channel)

    def _look_up(self, node: Node) -> Resolution:
        # An alias is first replaced by its canonical names, which Kerberos and certificates use.  As a part of the
        # attempt, the look-up has the attempt's timeout and back-off, and delays no other server.
        alias = self._options.canonical_bootstrap and node.id < 0 and (node.host, node.port) not in self._canonical
        ask = self._resolver.canonical if alias else self._resolver.resolve
        proxy = self._options.proxy
        try:
            host, port = reached_at(self._options, node) if proxy is None else (proxy.host, proxy.port)
        except NetworkError as error:
            failed = Resolution(node.host, node.port)
            failed.error, failed.done = error, True
            return failed
        resolution: Resolution = ask(host, port, self._selector.wakeup)
        return resolution

    def _take(self, state: NodeState, now: float) -> bool:
        """Whether the look-up is over.  If not, the node keeps it: the next attempt does not ask again."""
        resolution = state.resolution
        if not resolution.done:
            return False
        state.resolution = None
        if resolution.names:
            self._rename(state, resolution.names, now)
            return self._take(state, now)
        family = self._options.family
        usable = tuple(address for address in resolution.addresses if family in (None, address.family))
        if resolution.error is not None or not usable:
            found = ", ".join(map(str, resolution.addresses))
            found = f" that broker.address.family allows, only {found}" if found else ""
            error = resolution.error or NetworkError(f"{resolution.host} has no address{found}")
            self._failed(state, error, now)
        else:
            state.addresses.resolved(usable)
            self._race(state, now)
        return True

    def _rename(self, state: NodeState, names: tuple[str, ...], now: float) -> None:
        alias = state.node
        self._canonical.update((name, alias.port) for name in names)
        self._metadata.expand_bootstrap(alias, names, now)
        state.node = alias._replace(host=names[0])
        state.resolution = self._look_up(state.node)

    def _race(self, state: NodeState, now: float) -> None:
        state.race = Race(self._via)
        self._go_on(state, state.race, now)

    def _go_on(self, state: NodeState, race: Race, now: float) -> None:
        """Tries the next address.  If none is left, waits for the silent ones; without any the attempt has failed."""
        addresses = state.addresses
        if not addresses.exhausted:
            address = addresses.take()
            channel, stream_filter = self._open(state, address, now)
            race.channels[channel] = address
            if stream_filter is not None:
                race.filters[channel] = stream_filter
            race.next_at = _INFINITY if addresses.exhausted else now + DELAY_MS
        elif not race.channels:
            self._lose(state, race, now)
            return
        if addresses.exhausted and race.failures:
            race.next_at = min(race.next_at, now + GRACE_MS)
        self._check_at(race.next_at)

    def _lose(self, state: NodeState, race: Race, now: float) -> None:
        self._failed(state, NetworkError(_REFUSAL + race.describe(state.addresses.left)), now)

    def _open(self, state: NodeState, address: Address, now: float) -> tuple[Channel, Any]:
        options = self._options
        # TLS gets the advertised name, whatever the address is.
        stream_filter: Any = None if options.tls is None else options.tls(state.node.host.rstrip("."))
        if options.proxy is not None:
            stream_filter = options.proxy.tunnel(partial(reached_at, options, state.node), stream_filter)
            address = options.proxy.named(address)
        channel: Channel = self._selector.open(
            address,
            context=state,
            now=now,
            send_buffer=options.send_buffer_bytes,
            receive_buffer=options.receive_buffer_bytes,
            stream_filter=stream_filter,
        )
        return channel, stream_filter


def reached_at(options: NetworkOptions, node: Node) -> tuple[str, int]:
    """Host and port at which a node is reached (``broker.address.map``).

    Raises:
        NetworkError: the user's callable failed, or gave something else.
    """
    if options.address_map is None:
        return node.host, node.port
    try:
        host, port = options.address_map(node.host, node.port)
        if isinstance(host, str) and host and isinstance(port, int) and 0 < port < 65536:
            return host, port
        problem = f"it gave {(host, port)!r}, and not a host and a port"
    except Exception as error:  # noqa: BLE001 - the user's code must not end the sender
        problem = f"it raised {error!r}"
    raise NetworkError(f"broker.address.map has no address for {node.host}:{node.port}: {problem}")
