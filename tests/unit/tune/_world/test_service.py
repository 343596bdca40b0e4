"""How long simulated brokers take: the wire, the connection's line, handlers, silences, quotas; and who leads."""

from __future__ import annotations

from typing import Any

import pytest

from forebay._runtime.manual_clock import ManualClock
from forebay.tune import Workload, predict
from forebay.tune._world import peer
from forebay.tune._world.agenda import Agenda
from forebay.tune._world.selector import Link
from forebay.tune._world.service import Cluster, NodeService, Quota
from forebay.tune.brokers import Broker, Brokers, Outage


class Heard:
    """Hears what brokers did."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, float, float]] = []
        self.throttles: list[int] = []

    def served(self, node: int, size: int, busy_ms: float, latency_ms: float) -> None:
        self.answers.append((node, round(busy_ms, 6), round(latency_ms, 6)))

    def wrote(self, node: int, size: int) -> None:
        """Nothing to note."""

    def throttled(self, node: int, throttle_ms: int) -> None:
        self.throttles.append(throttle_ms)


class FakeLink:
    """What a node needs of a connection."""

    def __init__(self) -> None:
        self.open = True
        self.wire_free = 0.0
        self.busy = False
        self.line: list[Any] = []
        self.states: list[tuple[str, float]] = []
        self.clock: ManualClock

    def established(self) -> None:
        self.states.append(("established", self.clock.now()))

    def refuse(self) -> None:
        self.states.append(("refused", self.clock.now()))

    def reset(self) -> None:
        self.open = False
        self.states.append(("reset", self.clock.now()))

    def answer(self, data: bytes) -> None:
        self.states.append(("answer", round(self.clock.now(), 6)))


SIZE = 1 << 19


class Scene:
    def __init__(self, *nodes: Broker, outages: tuple[Outage, ...] = (), monkeypatch: Any = None) -> None:
        self.clock = ManualClock(now=0.0)
        self.agenda = Agenda(self.clock)
        self.heard = Heard()
        brokers = Brokers(nodes or (Broker(),), outages)
        self.cluster = Cluster(self.agenda, brokers, (("orders", 4),), "1", self.heard)
        # Requests that need no bytes.
        monkeypatch.setattr(peer, "requests_in", lambda data: data)
        monkeypatch.setattr(peer, "parts_of", lambda request: (request.data, [PART]))

    def link(self, node: int = 1) -> tuple[NodeService, Any]:
        found = FakeLink()
        found.clock = self.clock
        self.cluster.nodes[node].connect(found)  # type: ignore[arg-type]
        return self.cluster.nodes[node], found

    def run(self, until: float = 1e9) -> None:
        while self.agenda.next_at() <= until:
            self.agenda.go_on()
        self.agenda.move_to(until)


PART = peer.Part((1).to_bytes(16, "big"), 0, 100, 7)


def request(size: int = SIZE, acks: int = 1) -> Any:
    return peer.Request(peer.PRODUCE, 1, size, acks, 0)  # type: ignore[arg-type]


def times(link: Any) -> list[float]:
    return [when for what, when in link.states if what == "answer"]


def test_one_request_takes_the_way_there_its_work_and_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(Broker(rtt_ms=2, fixed_ms=0.5, per_mib_ms=4), monkeypatch=monkeypatch)
    node, link = scene.link()
    scene.run(10)
    node.received(link, [request()])  # type: ignore[arg-type]
    scene.run()
    assert link.states == [("established", 2.0), ("answer", 10 + 2 + 2.5)]
    assert scene.heard.answers == [(1, 2.5, 4.5)]


def test_a_connection_is_served_one_request_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(Broker(rtt_ms=2, fixed_ms=3, per_mib_ms=0), monkeypatch=monkeypatch)
    node, link = scene.link()
    _node, other = scene.link()
    node.received(link, [request(), request(), request()])  # type: ignore[arg-type]
    node.received(other, [request()])  # type: ignore[arg-type]
    scene.run()
    assert times(link) == [5, 8, 11]
    assert times(other) == [5]


def test_connections_share_the_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(Broker(rtt_ms=0, fixed_ms=3, per_mib_ms=0, handlers=2), monkeypatch=monkeypatch)
    found = [scene.link() for _ in range(3)]
    for node, link in found:
        node.received(link, [request()])  # type: ignore[arg-type]
    scene.run()
    assert [times(link) for _node, link in found] == [[3], [3], [6]]


def test_replication_holds_up_the_connection_and_no_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(rtt_ms=0, fixed_ms=3, per_mib_ms=0, handlers=1, replication_ms=10)
    scene = Scene(broker, monkeypatch=monkeypatch)
    node, link = scene.link()
    _node, other = scene.link()
    node.received(link, [request(acks=-1), request(acks=-1)])  # type: ignore[arg-type]
    node.received(other, [request(acks=1)])  # type: ignore[arg-type]
    scene.run()
    assert (times(link), times(other)) == ([13, 26], [6])


def test_the_wire_takes_one_request_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(rtt_ms=0, fixed_ms=0, per_mib_ms=0, bandwidth=1000 * SIZE)
    scene = Scene(broker, monkeypatch=monkeypatch)
    node, link = scene.link()
    node.received(link, [request(), request()])  # type: ignore[arg-type]
    scene.run(5)
    node.received(link, [request()])  # type: ignore[arg-type]
    scene.run()
    assert times(link) == [1, 2, 6]


def test_acks_0_gets_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch=monkeypatch)
    node, link = scene.link()
    node.received(link, [request(acks=0)])  # type: ignore[arg-type]
    scene.run()
    assert times(link) == []
    assert len(scene.heard.answers) == 1


def test_a_silence_moves_what_comes_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    outages = (Outage(node=1, seconds=(1, 3)),)
    scene = Scene(Broker(rtt_ms=0, fixed_ms=5, per_mib_ms=0), outages=outages, monkeypatch=monkeypatch)
    node, link = scene.link()
    scene.cluster.begin(0.0, 10_000.0)
    scene.run(998)
    node.received(link, [request(), request()])  # type: ignore[arg-type]
    scene.run(2000)
    _node, late = scene.link()
    scene.run()
    assert times(link) == [1003, 3005]
    assert late.states == [("established", 3000)]


def test_a_node_that_is_away_breaks_and_refuses_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    outages = (Outage(node=1, seconds=(1, 3), kind="refused"),)
    scene = Scene(Broker(rtt_ms=2), outages=outages, monkeypatch=monkeypatch)
    node, link = scene.link()
    scene.cluster.begin(0.0, 10_000.0)
    scene.run(999.9)
    node.received(link, [request()])  # type: ignore[arg-type]
    scene.run(2000)
    _node, second = scene.link()
    scene.run(3000)
    _node, third = scene.link()
    scene.run()
    assert link.states == [("established", 2), ("reset", 1000)]
    assert second.states == [("refused", 2002)]
    assert third.states == [("established", 3002)]
    assert scene.heard.answers == []


def test_silences_that_follow_each_other_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    outages = (Outage(node=1, seconds=(3, 5)), Outage(node=1, seconds=(1, 3)), Outage(node=1, seconds=(5, 6)))
    scene = Scene(Broker(rtt_ms=0, fixed_ms=5, per_mib_ms=0), outages=outages, monkeypatch=monkeypatch)
    node, link = scene.link()
    scene.cluster.begin(0.0, 10_000.0)
    scene.run(1500)
    node.received(link, [request()])  # type: ignore[arg-type]
    scene.run()
    assert times(link) == [6005]


@pytest.mark.parametrize("kind", ["refused", "not_leader"])
def test_a_node_stays_away_where_another_outage_follows(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    outages = (Outage(node=1, seconds=(3, 5), kind=kind), Outage(node=1, seconds=(1, 3), kind=kind))
    scene = Scene(Broker(), Broker(), outages=outages, monkeypatch=monkeypatch)
    scene.cluster.begin(0.0, 10_000.0)
    away = []
    for second in range(7):
        scene.run(1000 * second + 500)
        away.append(scene.cluster.nodes[1].away)
    assert away == [False, True, True, True, True, False, False]


def leaders(scene: Scene) -> list[tuple[int, int]]:
    return list(scene.cluster._topics["orders"].leaders)


def test_others_lead_after_an_election_and_the_node_again_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    outages = (Outage(node=2, seconds=(1, 9), kind="not_leader", election_ms=500),)
    scene = Scene(Broker(), Broker(), Broker(), outages=outages, monkeypatch=monkeypatch)
    scene.cluster.begin(0.0, 20_000.0)
    scene.run(1400)
    assert leaders(scene) == [(1, 0), (2, 0), (3, 0), (1, 0)]
    scene.run(1600)
    assert leaders(scene) == [(1, 0), (1, 1), (3, 0), (1, 0)]
    assert scene.cluster.write(2, PART._replace(partition=1)).error == peer.NOT_LEADER
    assert scene.cluster.write(1, PART._replace(partition=1)).error == 0
    scene.run(9001)
    assert leaders(scene) == [(1, 0), (2, 2), (3, 0), (1, 0)]


def test_offsets_follow_each_other_and_an_unknown_topic_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Scene(monkeypatch=monkeypatch).cluster
    assert [cluster.write(1, PART).base_offset for _ in range(3)] == [0, 7, 14]
    assert cluster.write(1, PART._replace(topic_id=bytes(16))).error == peer.UNKNOWN_TOPIC_ID


def test_jitter_has_the_mean_1_and_is_the_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for _ in range(2):
        scene = Scene(Broker(rtt_ms=0, fixed_ms=1, per_mib_ms=0, jitter=0.5), monkeypatch=monkeypatch)
        node, link = scene.link()
        node.received(link, [request() for _ in range(4000)])  # type: ignore[arg-type]
        scene.run()
        runs.append([busy for _node, busy, _latency in scene.heard.answers])
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 3000
    assert sum(runs[0]) / 4000 == pytest.approx(1, abs=0.05)


def test_others_take_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    busy: Any = {"rate": 900, "size": 1 << 20}
    broker = Broker(rtt_ms=0, fixed_ms=0, per_mib_ms=1, handlers=1, others=busy)
    scene = Scene(broker, monkeypatch=monkeypatch)
    node, link = scene.link()
    scene.cluster.begin(0.0, 5000.0)
    for _ in range(100):
        node.received(link, [request(0)])  # type: ignore[arg-type]
        scene.run(scene.clock.now() + 50)
    waits = [latency for _node, _busy, latency in scene.heard.answers]
    assert sum(waits) / len(waits) > 1


def test_a_quota_allows_a_burst_and_then_its_rate() -> None:
    quota = Quota(1000)
    assert quota.throttle_ms(0, 9000) == 0
    # Of ten whole windows and the time since the first one began.
    assert quota.throttle_ms(100, 2000) == 900
    assert quota.throttle_ms(1500, 0) == 500
    # The first window is over for as long as it counts, not since it began.
    assert quota.throttle_ms(11_050, 500) == 450
    assert quota.throttle_ms(11_900, 0) == 0


def test_a_throttled_connection_is_muted(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(Broker(rtt_ms=0, fixed_ms=1, per_mib_ms=0, quota=SIZE), monkeypatch=monkeypatch)
    node, link = scene.link()
    node.received(link, [request(11 * SIZE), request(0)])  # type: ignore[arg-type]
    scene.run()
    assert scene.heard.throttles[0] == 1000
    assert times(link) == [1, 1002]


def test_it_is_what_the_selector_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    node, _link = Scene(monkeypatch=monkeypatch).link()
    assert {"connect", "received", "closed"} <= set(dir(node))
    assert {"established", "refuse", "reset", "answer", "wire_free", "busy", "line"} <= set(dir(Link))


def test_leaders_that_are_known_are_kept() -> None:
    clock = ManualClock()
    topics = (("a", 3), ("b", 1))
    leaders = {"a": [2, 2, 1], "b": [2]}
    cluster = Cluster(Agenda(clock), Brokers.alike(2), topics, "seed", Heard(), leaders=leaders)
    assert [cluster._topics[name].leaders for name, _count in topics] == [[(2, 0), (2, 0), (1, 0)], [(2, 0)]]


def test_a_throttle_time_fits_its_field() -> None:
    """A quota of next to nothing."""
    found = predict(Workload(rate=100), brokers=Brokers((Broker(quota=1e-9),)), seconds=0.5)
    assert not found.served and found.nodes[0].throttled_ms > 0
