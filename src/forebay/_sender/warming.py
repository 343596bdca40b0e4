"""warm_up(): connections to the leaders of topics, and a producer id, before the first record needs them.

The first request of a producer waits for metadata, for a connection to the partition's leader (TCP, TLS, SASL, the
versions of APIs) and, with idempotence, for a producer id.  Here the sender's thread gets all of it ahead of records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from forebay._transactions.result import TransactionalResult
from forebay.errors._base import own_copy

if TYPE_CHECKING:
    from forebay._network.client import NetworkClient
    from forebay._transactions.manager import TransactionManager
    from forebay.errors import KafkaError
    from forebay.model import Node


class WarmUp:
    """One call of ``warm_up``.  The thread that calls makes it; then it is the sender's thread's.

    Args:
        topics: names that the metadata knows.
        gate: has the producer id; None for a producer that has none yet, or needs none.
    """

    def __init__(
        self, topics: Iterable[str], client: NetworkClient, metadata: Any, gate: TransactionManager | None
    ) -> None:
        self.result = TransactionalResult()
        self._topics = frozenset(topics)
        self._client = client
        self._metadata = metadata
        self._gate = gate

    def turn(self, now: float) -> float:
        """Begins the connections that are missing; ms until it is worth looking again, unless an event comes first.

        The result is settled once nothing is missing, or with the error of what cannot be had.  Leaders that move
        meanwhile are followed.
        """
        missing = self.missing()
        refusal = self._refusal(missing)
        if refusal is not None or not (missing or self.lacks_id()):
            self.result.settle(refusal)
            return math.inf
        due = math.inf
        for node in missing:
            self._client.ready(node, now)
            due = min(due, max(1.0, self._client.states.poll_delay(node.id, now)))
        return due

    def missing(self) -> list[Node]:
        """The leaders that are not connected.  Any thread."""
        cluster = self._metadata.cluster()
        infos = (info for topic in self._topics for info in cluster.partitions(topic))
        leaders = dict.fromkeys(info.leader for info in infos if info.leader is not None)
        return [node for node in leaders if not self._client.states.is_ready(node.id)]

    def lacks_id(self) -> bool:
        """Whether the producer waits for its id.  Any thread."""
        return self._gate is not None and not self._gate.has_producer_id

    def _refusal(self, missing: list[Node]) -> KafkaError | None:
        if self._gate is not None and self._gate.fatal_error is not None:
            return self._gate.fatal_error
        states = self._client.states
        errors = (states.authentication_error(node.id) for node in missing if states.failed(node.id))
        found = next((error for error in errors if error is not None), None)
        return None if found is None else own_copy(found)
