"""_insight.telemetry.reporter: which broker is asked, and what is done with answers."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytest

from forebay._insight.telemetry import payload
from forebay._insight.telemetry.dialog import LAST_PUSH_MS, START_MS, State, TelemetryDialog
from forebay._insight.telemetry.instance import InstanceId
from forebay._insight.telemetry.reporter import BUSY_MS, Source, TelemetryReporter
from forebay._metrics.registry import Kind, MetricName, Reading
from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._protocol.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from forebay._protocol.push_telemetry import PushTelemetryResponse
from forebay._runtime import threads
from forebay._runtime.log import RateLimitedLogger
from forebay.errors import DisconnectError, ProtocolError, UnsupportedVersionError
from forebay.model import Node

SAID = GetTelemetrySubscriptionsResponse(0, 0, bytes(range(16)), 7, (), 1_000, 0, False, ("*",))


class Client:
    """A network of brokers by id, each with its number of requests in flight."""

    def __init__(self, **loads: int) -> None:
        self.loads = {int(name.removeprefix("n").replace("_", "-")): load for name, load in loads.items()}
        self.versions = self
        self.room = 1
        self.sent: list[ClientRequest] = []
        self.least_loaded: Node | None = Node(9, "h", 1)
        self.is_ready = False

    def offering(self, *apis: int) -> list[int]:
        assert apis == (71, 72)
        return list(self.loads)

    def in_flight_count(self, node_id: int) -> int:
        return self.loads[node_id]

    def slots(self, node_id: int, now: float) -> int:
        return self.room

    def send(self, request: ClientRequest, now: float) -> None:
        self.sent.append(request)

    def least_loaded_node(self, now: float) -> Node | None:
        return self.least_loaded

    def ready(self, node: Node, now: float) -> bool:
        return self.is_ready

    def answer(self, body: object = None, now: float = 200, **more: Any) -> None:
        request = self.sent[-1]
        request.on_complete(ClientResponse(request, now, body=body, **more))


def readings(now: float, wanted: Any) -> Any:
    name = MetricName("a-total", "producer-metrics", "", (), Kind.TOTAL)
    if wanted(name):
        yield Reading(name, now)


def make(client: Client) -> TelemetryReporter:
    return TelemetryReporter(
        dialog=TelemetryDialog(lambda: 0.5, 0.0),
        client=client,
        source=Source(readings, dict, lambda: 5_000, 1_000),
        request_timeout_ms=1_000,
        log=RateLimitedLogger("forebay.telemetry"),
        instance=InstanceId(),
        rare_import=threads.BackgroundImport,
    )


def test_nothing_is_due_at_first() -> None:
    client = Client(n1=0)
    assert make(client).turn(30, False) == START_MS - 30 and client.sent == []


@pytest.mark.parametrize(
    ("loads", "chosen"), [({"n1": 2, "n2": 1}, 2), ({"n_1": 0, "n3": 5}, 3), ({"n_1": 1, "n_2": 0}, -2)]
)
def test_the_least_loaded_broker_and_no_bootstrap_address_if_it_can_be(loads: dict[str, int], chosen: int) -> None:
    client = Client(**loads)
    make(client).turn(START_MS, False)
    assert [request.node_id for request in client.sent] == [chosen]


def test_it_stays_with_its_broker_but_leaves_a_bootstrap_address() -> None:
    client = Client(n_1=0)
    reporter = make(client)
    reporter.turn(START_MS, False)
    client.answer(SAID)
    client.loads |= {4: 3, 5: 2}
    reporter.turn(1_500, False)
    client.answer(PushTelemetryResponse(0, 0), 1_500)
    client.loads |= {4: 0}
    reporter.turn(3_000, False)
    assert [request.node_id for request in client.sent] == [-1, 5, 5]


def test_a_busy_connection_is_looked_at_again() -> None:
    client = Client(n1=0)
    client.room = 0
    reporter = make(client)
    assert reporter.turn(START_MS, False) == BUSY_MS and client.sent == []
    client.room = 1
    assert reporter.turn(START_MS + 1, False) == float("inf") and len(client.sent) == 1


def test_without_a_broker_a_connection_is_made() -> None:
    client = Client()
    reporter = make(client)
    assert reporter.turn(START_MS, False) == BUSY_MS
    client.least_loaded = None
    assert reporter.turn(START_MS, False) == BUSY_MS
    client.least_loaded, client.is_ready = Node(9, "h", 1), True
    assert reporter.turn(START_MS, False) == 300_000, "it takes no metrics"


def test_the_end_is_waited_for_until_its_time_is_over() -> None:
    client = Client(n1=0)
    reporter = make(client)
    reporter.turn(START_MS, False)
    client.answer(SAID)
    assert reporter.owes_last_push()
    client.room = 0
    assert reporter.turn(300, True) == BUSY_MS
    client.room = 1
    assert reporter.turn(400, True) == 900
    assert reporter.turn(1_250, True) == 50 and reporter.owes_last_push()
    reporter.turn(1_300, True)
    assert not reporter.owes_last_push() and len(client.sent) == 2


def test_an_answer_that_comes_too_late_is_nobodys() -> None:
    client = Client(n1=0)
    reporter = make(client)
    reporter.turn(START_MS, False)
    client.answer(SAID)
    reporter.turn(2_000, False)
    late = client.sent[-1]
    reporter.turn(2_100, True)
    late.on_complete(ClientResponse(late, 2_200, body=PushTelemetryResponse(0, 0)))
    assert reporter.dialog.state is State.TERMINATING_PUSH_IN_PROGRESS
    client.answer(PushTelemetryResponse(0, 0), 2_300)
    assert reporter.dialog.ended


@pytest.mark.parametrize(
    ("failure", "ends"),
    [
        ({"error": DisconnectError("gone"), "disconnected": True}, False),
        ({"error": ProtocolError("nonsense"), "disconnected": True}, True),
        ({"error": UnsupportedVersionError("none in common")}, True),
        ({"body": object()}, True),
    ],
)
def test_failures(failure: dict[str, Any], ends: bool, caplog: pytest.LogCaptureFixture) -> None:
    client = Client(n1=0)
    reporter = make(client)
    reporter.turn(START_MS, False)
    with caplog.at_level(logging.WARNING):
        client.answer(**failure)
    assert reporter.dialog.ended == ends == bool(caplog.messages)
    assert reporter._instance.result.done == ends


def subscribed(codecs: tuple[int, ...] = ()) -> tuple[TelemetryReporter, Client]:
    """One that has a subscription."""
    client = Client(n1=0)
    reporter = make(client)
    reporter.turn(START_MS, False)
    client.answer(SAID._replace(compression_types=codecs))
    return reporter, client


def test_a_codec_whose_package_is_missing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (4, 3):
        monkeypatch.delitem(payload.COMPRESSORS, number)
    reporter, client = subscribed((4, 3))
    reporter.turn(2_000, False)
    assert reporter._codec == 0 and len(client.sent) == 2


def test_a_codec_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(payload.COMPRESSORS, 4, None)
    monkeypatch.setattr(payload.COMPRESSORS[2], "_snappy", None)
    reporter, client = subscribed((4, 2, 1))
    reporter.turn(2_000, False)
    assert reporter._codec == 1 and reporter._refused_codecs == {2} and len(client.sent) == 2


def test_a_push_waits_for_what_it_is_made_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is imported by another thread; the last push, too, is waited for no longer than its time."""
    started: list[Any] = []
    monkeypatch.setattr(threads, "_start_new_thread", lambda call, arguments: started.append((call, arguments)))
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "forebay._insight.telemetry.payload")
        reporter, client = subscribed()
        assert reporter.turn(2_000, False) == BUSY_MS
        assert reporter.turn(2_100, True) == BUSY_MS and reporter.owes_last_push()
        assert reporter.turn(2_100 + LAST_PUSH_MS, True) > BUSY_MS and not reporter.owes_last_push()
    assert len(client.sent) == 1 and len(started) == 1


def test_what_cannot_be_imported_ends_it(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(threads, "_start_new_thread", lambda call, arguments: call(*arguments))
    monkeypatch.setitem(sys.modules, "forebay._insight.telemetry.payload", None)
    reporter, client = subscribed()
    reporter.turn(2_000, False)
    assert reporter.dialog.ended and len(client.sent) == 1 and "they cannot be made: ModuleNotFoundError" in caplog.text
