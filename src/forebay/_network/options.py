"""NetworkOptions, the type that the client, the connector, the handshakes and the metadata updater share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from forebay._network.connection import MAX_FRAME
from forebay._network.sasl.mechanism import Mechanism
from forebay._network.transport import StreamFilter

if TYPE_CHECKING:
    from forebay._network.proxy import Proxy


class NetworkOptions(NamedTuple):
    """Times in ms, sizes in bytes; named after the configuration they come from."""

    client_id: str
    request_timeout_ms: float = 30_000
    """``request.timeout.ms``, of the client's own requests; other requests have their own."""
    max_in_flight: int = 5
    """``max.in.flight.requests.per.connection``"""
    reconnect_backoff_ms: float = 50
    reconnect_backoff_max_ms: float = 1_000
    setup_timeout_ms: float = 10_000
    """``socket.connection.setup.timeout.ms``; for the look-up of the name and the connection together."""
    setup_timeout_max_ms: float = 30_000
    connections_max_idle_ms: float = 540_000
    """``connections.max.idle.ms``; negative: idle connections stay open."""
    send_buffer_bytes: int = 131_072
    receive_buffer_bytes: int = 32_768
    canonical_bootstrap: bool = False
    """``client.dns.lookup`` is resolve_canonical_bootstrap_servers_only."""
    rebootstrap: bool = True
    """``metadata.recovery.strategy`` is rebootstrap (KIP-899)."""
    rebootstrap_trigger_ms: float = 300_000
    """``metadata.recovery.rebootstrap.trigger.ms`` (KIP-1102)."""
    software_version: str = "unknown"
    """The version of this package, for the brokers (KIP-511)."""
    max_frame: int = MAX_FRAME
    tls: Callable[[str], StreamFilter] | None = None
    """Makes the filter of a connection to a host of this name; None: without TLS (``security.protocol``)."""
    sasl: Mechanism | None = None
    """Who authenticates this client, and how; None: nobody asks (``security.protocol``)."""
    helper: Any = None
    """``Helper``, which does what may block during a login; there if ``sasl`` is."""
    proxy: Proxy | None = None
    """``proxy.url``; None: connections are direct."""
    address_map: Callable[[str, int], tuple[str, int]] | None = None
    """From what a broker advertises to where it is reached (``broker.address.map``); the sender's thread calls it."""
    family: int | None = None
    """The address family that is used (``broker.address.family``); None: any."""
    files: Callable[[], object] | None = None
    """Its value changes when a file of keys or passwords does; None: there are no such files."""
    log_prefix: str = ""
    """Stands before each log line."""
