"""The brokers of a simulation: who leads what, how long each request takes, and when a node is away."""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from forebay._protocol.versions import ApiKey
from forebay.model import Node
from forebay.tune._world import peer
from forebay.tune._world.agenda import Agenda
from forebay.tune._world.field import Field, NodeField, Notes
from forebay.tune._world.peer import PRODUCE, Part, PartAnswer, Request, TopicAnswer
from forebay.tune._world.selector import Link
from forebay.tune.brokers import Broker, Brokers, Outage

HOST = "127.0.0.1"
FIRST_PORT = 9000
MOST_MS = (1 << 31) - 1
"""A throttle time is a 32-bit number."""
QUOTA_WINDOWS = 11
"""Of a second each: Kafka measures a rate over these (``quota.window.num``)."""


class Watcher(Protocol):
    """Hears what brokers did."""

    def served(self, node: int, size: int, busy_ms: float, latency_ms: float) -> None:
        """A produce request was answered: how long it held a handler, and from its writing to its answer."""
        ...

    def wrote(self, node: int, size: int) -> None:
        """A produce request was written."""
        ...

    def throttled(self, node: int, throttle_ms: int) -> None:
        """An answer told the producer to pause."""
        ...


class Cluster:
    """The nodes and the leaders.

    Args:
        brokers: what they are like.
        topics: partitions by name; the nodes lead them in turn.
        seed: of everything that is random here.
        leaders: of each topic's partitions, if they do not lead in turn.
        field: the producers that are not simulated.
        notes: get each produce request.
    """

    def __init__(
        self,
        agenda: Agenda,
        brokers: Brokers,
        topics: tuple[tuple[str, int], ...],
        seed: str,
        watcher: Watcher,
        *,
        leaders: Mapping[str, Sequence[int]] | None = None,
        field: Field | None = None,
        notes: Notes | None = None,
    ) -> None:
        self.agenda = agenda
        self.watcher = watcher
        self.notes = notes
        self._field = field
        self.nodes = {
            number: NodeService(self, number, broker, random.Random(f"{seed} node {number}"))
            for number, broker in enumerate(brokers.nodes, 1)
        }
        self.services = {FIRST_PORT + number: node for number, node in self.nodes.items()}
        self._outages = brokers.outages
        self._topics: dict[str, TopicAnswer] = {}
        self._by_id: dict[bytes, TopicAnswer] = {}
        self._homes: dict[bytes, list[int]] = {}
        self._offsets: dict[tuple[bytes, int], int] = {}
        self._producers = 0
        place = 0
        for number, (name, count) in enumerate(topics, 1):
            in_turn = [(place + partition) % len(self.nodes) + 1 for partition in range(count)]
            homes = in_turn if leaders is None else list(leaders[name])
            place += count
            topic = TopicAnswer(name, number.to_bytes(16, "big"), [(home, 0) for home in homes])
            self._topics[name] = self._by_id[topic.topic_id] = topic
            self._homes[topic.topic_id] = homes

    @property
    def bootstrap(self) -> list[str]:
        """Where producers begin."""
        return [f"{HOST}:{port}" for port in list(self.services)[:3]]

    def begin(self, at: float, end: float) -> None:
        """The load begins: outages count from now on, and the requests of others until ``end``."""
        # In their order: one may begin when the one before ends.
        for outage in sorted(self._outages, key=lambda outage: outage.seconds):
            node = self.nodes[outage.node]
            begin, over = (at + 1000 * second for second in outage.seconds)
            if outage.kind == "silent":
                node.silences.append((begin, over))
                continue
            self.agenda.at(begin, node.go_away)
            self.agenda.at(over, node.come_back)
            if outage.kind == "not_leader":
                self.agenda.at(min(begin + outage.election_ms, over), self._elect, outage)
                self.agenda.at(over, self._return_lead, outage)
        if self.notes is not None:
            self.notes.begin(at, end)
        for node in self.nodes.values():
            node.begin_others(end)
            if self._field is not None and self._field.count:
                node.begin_field(self._field, len(self.nodes), (at, end))

    def _elect(self, outage: Outage) -> None:
        """Other nodes take over what the node leads, in turn."""
        self.nodes[outage.node].fenced = True
        others = [number for number, node in self.nodes.items() if not node.away]
        turn = 0
        for topic in list(self._topics.values()):
            leaders = list(topic.leaders)
            for at, (leader, epoch) in enumerate(leaders):
                if leader == outage.node and others:
                    leaders[at] = (others[turn % len(others)], epoch + 1)
                    turn += 1
            self._replace(topic, leaders)

    def _return_lead(self, outage: Outage) -> None:
        self.nodes[outage.node].fenced = False
        for topic in list(self._topics.values()):
            homes = self._homes[topic.topic_id]
            changed = [
                (home, epoch + 1) if home == outage.node != leader else (leader, epoch)
                for home, (leader, epoch) in zip(homes, topic.leaders, strict=True)
            ]
            self._replace(topic, changed)

    def _replace(self, topic: TopicAnswer, leaders: list[tuple[int, int]]) -> None:
        fresh = topic._replace(leaders=leaders)
        self._topics[topic.name] = self._by_id[topic.topic_id] = fresh

    def metadata(self, request: Request) -> bytes:
        """The body of the answer to Metadata."""
        names = peer.topics_asked_for(request)
        nodes = [Node(number, HOST, FIRST_PORT + number) for number, node in self.nodes.items() if not node.fenced]
        wanted = list(self._topics) if names is None else names
        return peer.metadata(nodes, [self._topics.get(name, name) for name in wanted])

    def new_producer_id(self) -> int:
        """Another one each time."""
        self._producers += 1
        return self._producers

    def write(self, node: int, part: Part) -> PartAnswer:
        """Takes a batch into the log of its partition, if ``node`` leads it."""
        topic = self._by_id.get(part.topic_id)
        if topic is None:
            return PartAnswer(part, peer.UNKNOWN_TOPIC_ID, -1)
        if topic.leaders[part.partition][0] != node:
            return PartAnswer(part, peer.NOT_LEADER, -1)
        where = (part.topic_id, part.partition)
        offset = self._offsets.get(where, 0)
        self._offsets[where] = offset + part.records
        return PartAnswer(part, 0, offset)


class Waiting:
    """A request on its way through a node."""

    __slots__ = ("busy_ms", "came", "parts", "request", "sent", "wants_answer")

    def __init__(self, request: Request, sent: float) -> None:
        self.request = request
        self.sent = self.came = sent
        self.busy_ms = 0.0
        self.wants_answer = True
        self.parts: list[Part] = []


class NodeService:
    """One broker: the service behind a port."""

    def __init__(self, cluster: Cluster, number: int, broker: Broker, chance: random.Random) -> None:
        self.cluster = cluster
        self.number = number
        self.broker = broker
        self.away = False
        """Nobody listens at its port."""
        self.fenced = False
        """The cluster knows that it is away."""
        self.silences: list[tuple[float, float]] = []
        """In their order."""
        self.field: NodeField | None = None
        self._agenda = cluster.agenda
        self._chance = chance
        self._handlers = [0.0] * broker.handlers
        self._links: dict[int, Link] = {}
        self._quota = None if broker.quota is None else Quota(broker.quota)

    # -- connections -------------------------------------------------------------------------------------

    def connect(self, link: Link) -> None:
        """As ``Service.connect``."""
        self._agenda.at(self._awake(self._now() + self.broker.rtt_ms), self._accept, link)

    def _accept(self, link: Link) -> None:
        if self.away:
            link.refuse()
        elif link.open:
            self._links[id(link)] = link
            link.established()

    def closed(self, link: Link) -> None:
        """As ``Service.closed``."""
        self._links.pop(id(link), None)

    def go_away(self) -> None:
        """Its connections break, and it accepts none."""
        self._set_away(True)
        links, self._links = self._links, {}
        for link in links.values():
            link.reset()

    def come_back(self) -> None:
        """It accepts connections again."""
        self._set_away(False)

    def _set_away(self, away: bool) -> None:
        if self.field is not None:
            self.field.advance(self._now())
            self.field.away = away
        self.away = away

    # -- requests ----------------------------------------------------------------------------------------

    def received(self, link: Link, data: bytes) -> None:
        """As ``Service.received``."""
        now = self._now()
        for request in peer.requests_in(data):
            if request.api_key == PRODUCE:
                self.cluster.watcher.wrote(self.number, request.size)
            begin = link.wire_free if link.wire_free > now else now
            if self.broker.bandwidth is not None:
                begin += 1000 * request.size / self.broker.bandwidth
                link.wire_free = begin
            self._agenda.at(begin + self.broker.rtt_ms / 2, self._arrive, link, Waiting(request, now))

    def _arrive(self, link: Link, waiting: Waiting) -> None:
        if not link.open:
            return
        waiting.came = self._now()
        if link.busy:
            link.line.append(waiting)
        else:
            self._serve(link, waiting)

    def _serve(self, link: Link, waiting: Waiting) -> None:
        if self.away:
            return  # the connection is broken, or is about to break
        link.busy = True
        now = self._now()
        if waiting.request.api_key != PRODUCE:
            self._agenda.at(self._awake(now), self._finish, link, waiting)
            return
        acks, waiting.parts = peer.parts_of(waiting.request)
        waiting.wants_answer = acks != 0
        waiting.busy_ms = self.broker.service_ms(waiting.request.size) * self._factor()
        if self.cluster.notes is not None:
            size = waiting.request.size
            self.cluster.notes.add(self.number, link.selector.number, waiting.came, waiting.busy_ms, size)
        end = self._take_handler(now, waiting.busy_ms)
        if acks == -1:
            end += self.broker.replication_ms
        self._agenda.at(end, self._finish, link, waiting)

    def _take_handler(self, now: float, busy_ms: float) -> float:
        if self.field is not None:
            self.field.advance(now)
        free = self._handlers[0]
        end = self._awake(free if free > now else now) + busy_ms
        heapq.heapreplace(self._handlers, end)
        return end

    def _finish(self, link: Link, waiting: Waiting) -> None:
        """The work for a request is done: its answer leaves, and the connection's next request begins."""
        muted = 0
        if not self.away:
            muted = self._answer(link, waiting)
        if muted and link.open:
            self._agenda.at(self._now() + muted, self._next, link)
        else:
            self._next(link)

    def _next(self, link: Link) -> None:
        link.busy = False
        if link.line:
            self._serve(link, link.line.pop(0))

    def _answer(self, link: Link, waiting: Waiting) -> int:
        """Sends the answer; ms for which the connection is muted."""
        request, throttle = waiting.request, 0
        if request.api_key == PRODUCE:
            now = self._now()
            if self._quota is not None:
                throttle = self._quota.throttle_ms(now, request.size)
                if throttle:
                    self.cluster.watcher.throttled(self.number, throttle)
            body = peer.produced([self.cluster.write(self.number, part) for part in waiting.parts], throttle)
            latency = now + self.broker.rtt_ms / 2 - waiting.sent
            self.cluster.watcher.served(self.number, request.size, waiting.busy_ms, latency)
        elif request.api_key == ApiKey.METADATA:
            body = self.cluster.metadata(request)
        elif request.api_key == ApiKey.INIT_PRODUCER_ID:
            body = peer.init_producer_id(self.cluster.new_producer_id())
        else:
            body = peer.api_versions()
        if waiting.wants_answer:
            self._agenda.at(self._now() + self.broker.rtt_ms / 2, link.answer, peer.answer(request, body))
        return throttle

    # -- time --------------------------------------------------------------------------------------------

    def _now(self) -> float:
        return self._agenda.clock.now()

    def _awake(self, when: float) -> float:
        """``when``, or the end of the silences that it falls into."""
        for begin, end in self.silences:
            if begin <= when < end:
                when = end
        return when

    def _factor(self) -> float:
        sigma = self.broker.jitter
        return self._chance.lognormvariate(-sigma * sigma / 2, sigma) if sigma else 1.0

    def begin_field(self, field: Field, nodes: int, span: tuple[float, float]) -> None:
        """Requests of the field come in this time, from and to; ``nodes``: in the cluster."""
        awake = self._awake if self.silences else None
        self.field = NodeField(
            field, self.number, nodes, self.broker, self._handlers, chance=self._chance, span=span, awake=awake
        )

    def begin_others(self, end: float) -> None:
        """Requests of producers that are not simulated come until ``end``."""
        if self.broker.others.rate:
            arrivals = self._arrivals(end)
            self._agenda.at(next(arrivals), self._other, arrivals)

    def _arrivals(self, end: float) -> Iterator[float]:
        when = self._now()
        while when < end:
            when += self._chance.expovariate(self.broker.others.rate / 1000)
            yield when

    def _other(self, arrivals: Iterator[float]) -> None:
        if not self.away:
            self._take_handler(self._now(), self.broker.service_ms(self.broker.others.size) * self._factor())
        following = next(arrivals, None)
        if following is not None:
            self._agenda.at(following, self._other, arrivals)


class Quota:
    """A producer's quota of bytes, measured as Kafka does (KIP-219).

    A window of the broker begins with the first request after a second, and counts until its last request is 11 s old.
    The time that a rate is of is at least ten whole windows and what has passed of the newest, so that a quota allows
    a burst at first.

    Args:
        rate: bytes a second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._windows: deque[list[float]] = deque()
        """Begin, time of the last request, and bytes."""

    def throttle_ms(self, now: float, size: int) -> int:
        """Counts a request; ms that the producer has to pause for."""
        windows = self._windows
        if not windows or now - windows[-1][0] >= 1000:
            windows.append([now, now, 0])
        windows[-1][1] = now
        windows[-1][2] += size
        while now - windows[0][1] >= 1000 * QUOTA_WINDOWS:
            windows.popleft()
        elapsed = now - windows[0][0]
        elapsed += 1000 * max(0, QUOTA_WINDOWS - 1 - int(elapsed // 1000))
        total = sum(count for _begin, _last, count in windows)
        return min(MOST_MS, max(0, math.ceil(min(MOST_MS, 1000 * total / self._rate) - elapsed)))
