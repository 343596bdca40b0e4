"""From a producer's options to what an AdminClient connects with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from forebay._assembly import Surroundings, assemble_connections
from forebay.admin._session import AdminSession
from forebay.config import ProducerConfig

# Process-wide on purpose, as those of producers.
_numbers: Iterator[int] = itertools.count(1)


def assemble_admin(config: ProducerConfig, around: Surroundings) -> AdminSession:
    """Makes the connections; closes what exists if one part fails.

    Raises:
        KafkaError: a part cannot be made; its error is the cause.
    """
    given = config.explicit("client.id")
    client_id = str(config["client.id"]) if given else f"control-{next(_numbers)}"
    made = assemble_connections(config, around, client_id, prefix=f"[AdminClient clientId={client_id}] ")
    return AdminSession(
        client=made.client,
        metadata=made.metadata,
        clock=around.clock,
        backoff=made.backoff,
        request_timeout_ms=config["request.timeout.ms"],
        closers=made.closers,
    )
