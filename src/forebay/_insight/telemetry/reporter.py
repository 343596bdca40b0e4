"""Carries a telemetry dialog out over the producer's connections: one request at a time, in the sender's turns.

A broker is asked that is connected already, and stays the same while it is (KIP-714).  Only if no connected broker
takes metrics any more is a connection made, as the Java client does.  Whatever goes wrong here ends telemetry or delays
it, is said once, and touches no record.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from forebay._insight.telemetry.dialog import (
    DEFAULT_INTERVAL_MS,
    SENT,
    UNKNOWN_SUBSCRIPTION_ID,
    UNSUPPORTED_COMPRESSION_TYPE,
    State,
    Subscription,
    TelemetryDialog,
    Verdict,
)
from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._protocol.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsResponse,
    decode_get_telemetry_subscriptions,
    encode_get_telemetry_subscriptions,
)
from forebay._protocol.push_telemetry import PushTelemetryRequest, decode_push_telemetry, encode_push_telemetry
from forebay._protocol.versions import SUPPORTED, ApiKey, api_name
from forebay._records.compression import CompressionType
from forebay.errors import ProtocolError, error_for

if TYPE_CHECKING:
    from forebay._insight.telemetry.instance import InstanceId
    from forebay._insight.telemetry.payload import PayloadMaker
    from forebay._metrics.registry import MetricName, Reading
    from forebay._runtime.log import RateLimitedLogger

APIS = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
BUSY_MS = 100.0
"""How soon it is looked again for a connection that takes a request."""


class Source(NamedTuple):
    """What a push is made of."""

    readings: Callable[[float, Callable[[MetricName], bool]], Iterator[Reading]]
    """The metrics that are wanted, as of a time in monotonic ms."""
    labels: Callable[[], Mapping[str, str]]
    """Attributes of the resource, as KIP-714 has them."""
    wall: Callable[[], int]
    """Unix time in ms."""
    started_ms: int
    """When counting began, in the same time."""


class TelemetryReporter:
    """Sender's thread only.

    Args:
        dialog: what is due.
        client: the network.
        source: what is told.
        request_timeout_ms: ``request.timeout.ms``.
        log: of ``forebay.telemetry``.
        instance: is told the client's instance id.
        rare_import: as in ``_runtime.threads``: the sender's thread imports nothing.
    """

    def __init__(
        self,
        *,
        dialog: TelemetryDialog,
        client: Any,
        source: Source,
        request_timeout_ms: float,
        log: RateLimitedLogger,
        instance: InstanceId,
        rare_import: Callable[[str, Callable[[Exception], object]], Any],
    ) -> None:
        self.dialog = dialog
        self._client = client
        self._source = source
        self._timeout_ms = request_timeout_ms
        self._log = log
        self._instance = instance
        self._said: set[str] = set()
        """Kinds of lines that were written since the last push that was taken."""
        self._open: ClientRequest | None = None
        """The latest request; answers to others come too late."""
        self._broken: list[Exception] = []
        """Why payloads cannot be imported; written by the thread that tried."""
        self._payloads: PayloadMaker | None = None
        self._payload = rare_import("forebay._insight.telemetry.payload", self._broken.append)
        self._codec = 0
        """Of the latest push."""
        self._refused_codecs: set[int] = set()

    def turn(self, now: float, ending: bool) -> float:
        """Sends what is due; ms until the next call, unless an event comes first.

        Args:
            ending: the producer has nothing else to do before its end.
        """
        dialog = self.dialog
        if not ending and now < dialog.due:
            return dialog.due - now
        try:
            if ending:
                dialog.end(now)
            if dialog.state in SENT and not self._go_on(now):
                # The road not taken: to wait for an event alone, which a broker need not bring.
                return min(BUSY_MS, max(0.0, dialog.due - now)) if ending else BUSY_MS
        except Exception as error:  # noqa: BLE001 - records depend on the rest of the turn
            self._stop(f"they cannot be made: {error!r}", now, error)
        return max(0.0, dialog.due - now)

    def owes_last_push(self) -> bool:
        """Whether the end of the producer has something to wait for."""
        return self.dialog.owes_last_push

    # Requests

    def _go_on(self, now: float) -> bool:
        """Sends the request that is needed; False if that cannot be done now."""
        dialog = self.dialog
        node_id = self._choose()
        if node_id is None:
            if dialog.state is not State.TERMINATING_PUSH_NEEDED:
                return self._connect(now)
            dialog.stop()
        elif not self._client.slots(node_id, now):
            return False
        elif dialog.state is State.SUBSCRIPTION_NEEDED:
            known = dialog.instance_id
            build = lambda version: encode_get_telemetry_subscriptions(version, known)  # noqa: E731
            self._ask(node_id, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, build, decode_get_telemetry_subscriptions, now)
        elif self._broken:
            raise self._broken[0]
        elif not self._payload.is_there():
            return False
        elif dialog.subscription is not None:
            self._push(node_id, dialog.subscription, now)
        return True

    def _choose(self) -> int | None:
        """The broker to ask: the last one while it is connected, else the least loaded that is."""
        found: list[int] = self._client.versions.offering(*APIS)
        brokers = [node_id for node_id in found if node_id >= 0]
        # A connection to a bootstrap address is given up as soon as nobody else needs it.
        candidates = brokers or found
        if self._open is not None and self._open.node_id in candidates:
            return self._open.node_id
        return min(candidates, key=self._client.in_flight_count, default=None)

    def _connect(self, now: float) -> bool:
        node = self._client.least_loaded_node(now)
        if node is None or not self._client.ready(node, now):
            return False
        # It takes no metrics.  Another one may, later.
        self.dialog.postpone(now, DEFAULT_INTERVAL_MS)
        return True

    def _push(self, node_id: int, subscription: Subscription, now: float) -> None:
        payloads = self._payload_maker()
        last = self.dialog.state is State.TERMINATING_PUSH_NEEDED
        if last:
            payloads.taken()  # a push that has no answer yet
        source = self._source
        made = payloads.make(partial(source.readings, now), subscription, source.labels(), source.wall())
        if payloads.is_cut and self._first("cut"):
            self._log.warning("cut", now, "Too many metrics for one push: some are left out")
        self._codec, data = self._compressed(payloads, made, subscription)
        if 0 < subscription.max_bytes < len(data):
            if self._first("size"):
                most = subscription.max_bytes
                self._log.warning("size", now, "Metrics of %d bytes: the cluster takes %d at most", len(data), most)
            payloads.refused()
            self.dialog.skip(now)
            return
        push = PushTelemetryRequest(subscription.instance_id, subscription.id, last, self._codec, data)
        build = lambda version: encode_push_telemetry(version, push)  # noqa: E731
        self._ask(node_id, ApiKey.PUSH_TELEMETRY, build, decode_push_telemetry, now)

    def _payload_maker(self) -> PayloadMaker:
        if self._payloads is None:
            from forebay._insight.telemetry.payload import PayloadMaker  # only where a cluster wants metrics

            self._payloads = PayloadMaker(self._source.started_ms)
        return self._payloads

    def _compressed(self, payloads: PayloadMaker, payload: bytes, subscription: Subscription) -> tuple[int, bytes]:
        """By the first codec of the cluster's that this process has."""
        for number in subscription.codecs:
            if number == CompressionType.NONE:
                break
            packer = None if number in self._refused_codecs else payloads.compressors.get(number)
            try:
                if packer is not None:
                    return number, packer.compress([payload])
            except Exception as error:  # noqa: BLE001 - another codec may do
                self._log.debug("Metrics are not compressed by codec %d: %r", number, error)
                self._refused_codecs.add(number)
        return 0, payload

    def _ask(self, node_id: int, api: ApiKey, build: Any, parse: Any, now: float) -> None:
        oldest, newest = SUPPORTED[api]
        self._open = ClientRequest(
            node_id, api, oldest, newest, build, parse, timeout_ms=self._timeout_ms, on_complete=self._answered
        )
        self.dialog.sent()
        self._client.send(self._open, now)

    # Answers

    def _answered(self, response: ClientResponse) -> None:
        if response.request is not self._open:
            return
        try:
            if response.error is not None:
                self._failed(response)
            else:
                self._apply(response, response.body)
        except Exception as error:  # noqa: BLE001 - it would stay in progress for ever
            self._stop(f"a broker's answer makes no sense: {error}", response.received, error)

    def _failed(self, response: ClientResponse) -> None:
        if self._payloads is not None:
            self._payloads.taken()  # nobody knows; what is told twice is worse than what is not told
        what = f"{api_name(response.request.api_key)} to node {response.request.node_id} failed: {response.error}"
        if not response.disconnected or isinstance(response.error, ProtocolError):
            self._stop(what, response.received)
        else:
            self._log.debug("%s", what)
            self.dialog.lost(response.received)

    def _apply(self, response: ClientResponse, answer: Any) -> None:
        now = response.received
        if answer.error_code:
            self._refused(response.request.node_id, answer.error_code, now)
        elif isinstance(answer, GetTelemetrySubscriptionsResponse):
            self._subscribed(answer, now)
        else:
            self._payload_maker().taken()
            self._said.clear()
            self.dialog.pushed(now)

    def _refused(self, node_id: int, code: int, now: float) -> None:
        if self._payloads is not None:
            self._payloads.refused()
        if code == UNSUPPORTED_COMPRESSION_TYPE:
            self._refused_codecs.add(self._codec)
        error = error_for(code)
        name = error.name if error is not None else f"error {code}"
        verdict = self.dialog.refused(code, now)
        if verdict is Verdict.NEVER:
            self._stop(f"node {node_id} refused them with {name}", now)
        elif code == UNKNOWN_SUBSCRIPTION_ID:
            self._log.debug("Node %d knows another subscription", node_id)  # somebody has changed it
        elif self._first("refused"):
            self._log.warning("refused", now, "Node %d refused metrics with %s: %s", node_id, name, verdict.value)

    def _subscribed(self, answer: GetTelemetrySubscriptionsResponse, now: float) -> None:
        before = self.dialog.subscription
        found = Subscription.of(answer, self.dialog.instance_id)
        if answer.push_interval_ms <= 0 and self._first("interval"):
            said, used = answer.push_interval_ms, found.interval_ms
            self._log.warning("interval", now, "A push interval of %d ms makes no sense: %d is used", said, used)
        self.dialog.subscribed(found, now)
        text = base64.urlsafe_b64encode(found.instance_id).decode().rstrip("=")
        self._instance.known(text)
        if not found.prefixes:
            self._log.debug("The cluster takes metrics, but wants none; client instance id %s", text)
        elif before != found:
            every = found.interval_ms
            self._log.info("wanted", now, "The cluster gets metrics each %d ms; client instance id %s", every, text)
        if found.prefixes:
            self._payload.is_there()  # its import begins now, so that the first push is not late

    # What is said

    def _first(self, kind: str) -> bool:
        """Whether this kind of line was not written since the last push that was taken."""
        is_first = kind not in self._said
        self._said.add(kind)
        return is_first

    def _stop(self, reason: str, now: float, error: BaseException | None = None) -> None:
        self.dialog.stop()
        if error is None:
            self._log.warning("end", now, "No metrics are sent to brokers any more: %s", reason)
        else:
            self._log.error("end", now, "No metrics are sent to brokers any more: %s", reason, raised=error)
        self._instance.never(f"There is no client instance id: {reason}")
