"""What the sender takes from the configuration."""

from __future__ import annotations

from typing import NamedTuple


class SenderOptions(NamedTuple):
    """Times in ms, sizes in bytes."""

    acks: int = -1
    retries: int = 2**31 - 1
    max_request_size: int = 1_048_576
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: float = 120_000
    guarantee_order: bool = False
    """One request in flight a connection: a partition is muted while a batch of it is."""
    max_in_flight: int = 5
    log_prefix: str = ""
