"""The idempotent producer's id: requested from any broker before anything is sent.  Sender's thread only.

It is apart from ``transactional``, because an idempotent producer imports no module of transactions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from forebay._network.inflight import ClientRequest, ClientResponse
from forebay.errors import KafkaError


class ProducerIdRequests:
    """Sends the TransactionManager's requests for an id.

    Args:
        client: the network.
        transactions: the TransactionManager, which needs an id and takes the answer.
        request_timeout_ms: ``request.timeout.ms``.
        fail_waiting: called with the error that ends all waiting batches.
    """

    def __init__(
        self,
        client: Any,
        transactions: Any,
        request_timeout_ms: float,
        *,
        fail_waiting: Callable[[KafkaError], None],
    ) -> None:
        self._client = client
        self._transactions = transactions
        self._request_timeout_ms = request_timeout_ms
        self._fail_waiting = fail_waiting

    def turn(self, now: float, has_undrained: bool) -> float:
        """Sends a request if it is time to; ms to wait while there is no id, unless an event comes first."""
        if self._transactions.needs_producer_id(now, has_undrained):
            return self._ask(now)
        return float(self._transactions.time_to_next_request(now, has_undrained))

    def _ask(self, now: float) -> float:
        node = self._client.least_loaded_node(now)
        if node is None:
            return float(self._client.retry_delay(now))
        if not self._client.ready(node, now):
            if self._client.can_send(node.id, now):
                # Only metadata goes first, in this turn's poll.  The next turn sends behind it on the same connection.
                # The road not taken: to wait for an event.  That is the answer, a round trip at each start.
                return 0.0
            return max(1.0, float(self._client.states.poll_delay(node.id, now)))
        call = self._transactions.init_request()
        self._client.send(
            ClientRequest(
                node.id,
                call.api_key,
                call.min_version,
                call.max_version,
                call.build,
                call.parse,
                timeout_ms=self._request_timeout_ms,
                on_complete=lambda response: self._on_answer(response, str(node)),
            ),
            now,
        )
        return math.inf

    def _on_answer(self, response: ClientResponse, node: str) -> None:
        answer = response.body if response.error is None else response.failure
        error = self._transactions.on_init_producer_id(answer, response.received, node=node)
        if error is not None:
            self._fail_waiting(error)
