"""The transactional producer's requests: one at a time to each kind of coordinator, beside the batches.

Nothing here blocks.  A connection that is being made, a back-off or an outstanding answer only bounds the time of the
turn's poll (the Java client stops producing meanwhile).  Sender's thread only.
"""

from __future__ import annotations

import math
from typing import Any

from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._protocol.find_coordinator import TRANSACTION
from forebay._protocol.versions import SUPPORTED, ApiKey, api_name
from forebay._runtime.backoff import ExponentialBackoff
from forebay._transactions.answers import apply_answer, apply_failure, apply_loss
from forebay._transactions.dialog import TransactionMachine
from forebay._transactions.pending import Pending
from forebay._transactions.requests import FIRST_OF_V2
from forebay.errors import KafkaError, UnsupportedVersionError
from forebay.model import Node

FIRST_PRODUCE_V2 = 12
"""The first version of Produce whose brokers add the partition to the transaction (KIP-890)."""


class TransactionalRequests:
    """Sends the requests of the TransactionMachine.

    Args:
        dialog: the requests, and what their answers mean.
        client: the network.
        backoff: between look-ups of a coordinator that cannot be connected to.
        request_timeout_ms: ``request.timeout.ms``.
        patience_ms: how long the abort at a close may take (``delivery.timeout.ms``).
    """

    def __init__(
        self,
        *,
        dialog: TransactionMachine,
        client: Any,
        backoff: ExponentialBackoff,
        request_timeout_ms: float,
        patience_ms: float,
    ) -> None:
        self.dialog = dialog
        self.in_flight: dict[bool, Pending] = {}
        """By lane (``Pending.is_for_group``), at most one in each."""
        self._client = client
        self._backoff = backoff
        self._request_timeout_ms = request_timeout_ms
        self._patience_ms = patience_ms
        self._failures = 0
        """How many coordinators in a row could not be connected to."""
        self._give_up_at = math.inf

    @property
    def produce_versions(self) -> tuple[int, int]:
        """The versions of Produce that suit the open transaction."""
        if self.dialog.version >= FIRST_OF_V2:
            return FIRST_PRODUCE_V2, SUPPORTED[ApiKey.PRODUCE][1]
        return 0, FIRST_PRODUCE_V2 - 1

    def prepare_close(self, now: float) -> None:
        """The producer is closing: aborts an open transaction, and gives up after ``patience_ms``."""
        if self._give_up_at == math.inf:
            self._give_up_at = now + self._patience_ms
        elif now >= self._give_up_at and self.dialog.has_work():
            self.dialog.close(KafkaError("The coordinator could not be reached before the producer ended"))
        self.dialog.abort_for_close()

    def turn(self, now: float) -> float:
        """Sends what is due; ms until the next call, unless an event comes first."""
        self._note_features()
        delay = self._next(now)
        if self._give_up_at < math.inf and self.dialog.has_work():
            delay = min(delay, self._give_up_at - now)
        return max(0.0, delay)

    def _note_features(self) -> None:
        features = self._client.versions.features
        if features.epoch >= 0:
            self.dialog.note_features(features.levels.get("transaction.version", (0, 0))[1])

    def _next(self, now: float) -> float:
        busy = set(self.in_flight)
        delay = math.inf
        while True:
            pending = self.dialog.next_request(now, busy)
            if pending is None:
                return min(delay, self.dialog.delay(now, busy))
            wait = self._try(pending, now)
            if wait > 0:
                busy.add(pending.is_for_group)
                delay = min(delay, wait)

    def _try(self, pending: Pending, now: float) -> float:
        """Sends it, or puts it back; ms until its lane is tried again, 0 for at once."""
        try:
            node, wait = self._node_for(pending, now)
            if node is not None:
                self._send(pending, node, now)
                return math.inf
        except BaseException:
            # Any error, such as no descriptor for a connection: a caller waits for this request.
            self.in_flight.pop(pending.is_for_group, None)
            self.dialog.put_back(pending)
            raise
        self.dialog.put_back(pending)
        return wait

    def _node_for(self, pending: Pending, now: float) -> tuple[Node | None, float]:
        """The node that the request may go to now, else ms to wait; 0 if another request has to go first."""
        wanted = pending.call.coordinator
        node = self._client.least_loaded_node(now) if wanted is None else self.dialog.coordinators.get(wanted)
        if node is None:
            if wanted is None:
                return None, float(self._client.retry_delay(now))
            self.dialog.look_up(wanted)
            return None, 0.0
        if self._client.ready(node, now):
            if wanted is not None:  # the node that is asked for coordinators says nothing about theirs
                self._failures = 0
            return node, 0.0
        if self._client.states.failed(node.id):
            refused = self._client.states.authentication_error(node.id)
            if refused is not None:
                self.dialog.fatal(refused)
                return None, 0.0
            if wanted is not None:
                # The coordinator may have moved to a broker that can be reached.
                self.dialog.look_up(wanted, now + self._backoff.delay(self._failures))
                self._failures += 1
                return None, 0.0
        return None, max(1.0, float(self._client.states.poll_delay(node.id, now)))

    def _send(self, pending: Pending, node: Node, now: float) -> None:
        call = pending.call
        if call.coordinator is not None and call.coordinator.kind == TRANSACTION:
            self._note_abilities(node)
        request = ClientRequest(
            node.id,
            call.api_key,
            call.min_version,
            call.max_version,
            call.build,
            call.parse,
            timeout_ms=self._request_timeout_ms,
            on_complete=lambda response: self._on_complete(pending, node, response),
        )
        self.in_flight[pending.is_for_group] = pending
        self._client.send(request, now)

    def _note_abilities(self, node: Node) -> None:
        known = self._client.versions.get(node.id)
        if known is not None:
            # Kept when the connection is lost: the broker can still do it.
            self.dialog.can_bump = known.ranges.get(ApiKey.INIT_PRODUCER_ID, (0, 0))[1] >= 3

    def _on_complete(self, pending: Pending, node: Node, response: ClientResponse) -> None:
        self.in_flight.pop(pending.is_for_group, None)
        error = response.error
        if response.disconnected:
            apply_loss(self.dialog, pending, response.received)
        elif error is None:
            self._apply(pending, node, response)
        else:
            apply_failure(self.dialog, pending, _explained(error, node))

    def _apply(self, pending: Pending, node: Node, response: ClientResponse) -> None:
        try:
            apply_answer(self.dialog, pending, response.body, response.received)
        except Exception as cause:  # noqa: BLE001 - the request is in no queue now, and a caller waits for it
            error = KafkaError(f"The answer of {node} to {api_name(pending.call.api_key)} could not be applied")
            error.__cause__ = cause
            apply_failure(self.dialog, pending, error)


def _explained(error: KafkaError, node: Node) -> KafkaError:
    if not isinstance(error, UnsupportedVersionError):
        return error
    explained = UnsupportedVersionError(f"The broker {node} is too old for this transaction: {error.message}")
    explained.__cause__ = error
    return explained
