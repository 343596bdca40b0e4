"""The network client's options, named after the configuration they come from."""

from __future__ import annotations

from typing import NamedTuple

from forebay._network.connection import MAX_FRAME


class NetworkOptions(NamedTuple):
    """Times in ms, sizes in bytes."""

    client_id: str
    request_timeout_ms: float = 30_000
    """``request.timeout.ms``, of the client's own requests; others bring theirs."""
    max_in_flight: int = 5
    """``max.in.flight.requests.per.connection``"""
    reconnect_backoff_ms: float = 50
    reconnect_backoff_max_ms: float = 1_000
    setup_timeout_ms: float = 10_000
    """``socket.connection.setup.timeout.ms``; covers the look-up of the name and the connection."""
    setup_timeout_max_ms: float = 30_000
    connections_max_idle_ms: float = 540_000
    """Negative: never closed for that."""
    send_buffer_bytes: int = 131_072
    receive_buffer_bytes: int = 32_768
    canonical_bootstrap: bool = False
    """``client.dns.lookup`` is resolve_canonical_bootstrap_servers_only."""
    rebootstrap: bool = True
    """``metadata.recovery.strategy`` is rebootstrap (KIP-899)."""
    rebootstrap_trigger_ms: float = 300_000
    """``metadata.recovery.rebootstrap.trigger.ms`` (KIP-1102)."""
    software_version: str = "unknown"
    """Of this package, told to brokers (KIP-511)."""
    max_frame: int = MAX_FRAME
    log_prefix: str = ""
    """Before each log line."""
