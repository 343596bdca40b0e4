"""From a producer's options to what a Control connects with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from forebay._assembly import Surroundings, assemble_connections
from forebay.config import ProducerConfig
from forebay.control._session import ControlSession

# Process-wide on purpose, as those of producers.
_numbers: Iterator[int] = itertools.count(1)


def assemble_control(config: ProducerConfig, around: Surroundings) -> ControlSession:
    """Makes the connections; closes what exists if one part fails.

    Raises:
        KafkaError: a part cannot be made; its error is the cause.
    """
    given = config.explicit("client.id")
    client_id = str(config["client.id"]) if given else f"control-{next(_numbers)}"
    made = assemble_connections(config, around, client_id, prefix=f"[Control clientId={client_id}] ")
    return ControlSession(
        client=made.client,
        metadata=made.metadata,
        clock=around.clock,
        backoff=made.backoff,
        request_timeout_ms=config["request.timeout.ms"],
        closers=made.closers,
    )
