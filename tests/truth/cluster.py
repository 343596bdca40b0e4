"""Three real brokers for the truth table: the first one's followers can be far away, and one of them can be silent.

Leaders stand where the case wants them: the topics are made with their replicas named.  What a broker's answer waits
for its follower belongs to its service, so a delay between brokers makes a slow broker; a delay before the client would
only make a long way.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.in_flight import Delay
from forebay.tune import Brokers, checking
from forebay.tune.calibration import Calibration, calibrate
from tests.support.pace import HANG_S
from tests.truth.cases import NODES, SLOW_MS, Case, Place
from tools.kafka import Listener, RealKafka

BROKERS = 3
INSIDE = "INSIDE"
HOST = "127.0.0.2"
"""Where brokers find each other, through the delay; they listen on 127.0.0.1."""
PROPERTIES = {
    "inter.broker.listener.name": INSIDE,
    "min.insync.replicas": "1",
    # A silent broker keeps the lead of its partitions.
    "broker.session.timeout.ms": "120000",
}


class Cluster:
    """The brokers and what befalls them; made by ``cluster()``."""

    def __init__(self, kafka: RealKafka, delay: Delay) -> None:
        self.kafka = kafka
        self._delay = delay
        self._calibrated: dict[Place, Brokers] = {}
        self._topics = 0

    @property
    def bootstrap(self) -> str:
        """Of all brokers."""
        return self.kafka.bootstrap_servers

    def topic(self, place: Place, partitions: int) -> str:
        """A new topic whose leaders stand as the place says; the name."""
        self._topics += 1
        name = f"truth-{self._topics}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        replicas = [self._replicas(place, partition) for partition in range(partitions)]
        made = admin.create_topics([NewTopic(name, num_partitions=partitions, replica_assignment=replicas)])
        made[name].result(HANG_S)
        # Returns when every leader answers for its partitions; the topic is there.
        self.kafka.create_topic(name, partitions)
        return name

    @staticmethod
    def _replicas(place: Place, partition: int) -> list[int]:
        leader = partition % NODES[place]
        return [leader, (leader + 1) % BROKERS] if place in ("slow", "one slow") else [leader]

    @contextlib.contextmanager
    def slowed(self, place: Place) -> Iterator[None]:
        """Followers are as far away as the place says."""
        self._delay.ms = SLOW_MS if place in ("slow", "one slow") else 0.0
        try:
            yield
        finally:
            self._delay.ms = 0.0

    def brokers(self, place: Place) -> Brokers:
        """The brokers of a place, measured when they are first asked for, and never again."""
        if place not in self._calibrated:
            with self.slowed(place):
                topic = self.topic(place, NODES[place])
                config = {"bootstrap.servers": self.bootstrap}
                # Brokers that were just started get faster for some thousand requests.
                calibrate(config, topic)
                self._calibrated[place] = brokers_of(calibrate(config, topic))
        return self._calibrated[place]

    def calibrations(self) -> dict[Place, Brokers]:
        """All that was measured."""
        return dict(self._calibrated)

    @contextlib.contextmanager
    def under(self, case: Case) -> Iterator[None]:
        """What the case asks of its brokers, but the outage."""
        with self.slowed(case.place):
            if case.quota is not None:
                self._quota("--add-config", f"producer_byte_rate={case.quota}")
            try:
                yield
            finally:
                if case.quota is not None:
                    self._quota("--delete-config", "producer_byte_rate")

    def _quota(self, what: str, value: str) -> None:
        self.kafka.run_tool(
            "kafka.admin.ConfigCommand", "--bootstrap-server", self.bootstrap, "--alter", what, value,
            "--entity-type", "clients", "--entity-default",
        )  # fmt: skip

    def silence(self, case: Case, begun: threading.Event) -> threading.Thread | None:
        """Freezes the case's broker at its time after ``begun``, and lets it go on; a thread does so.

        Args:
            begun: the load begins ``SOON_MS`` later.
        """
        outage = case.outage
        if outage is None:
            return None

        def befall() -> None:
            begin, end = outage.seconds
            begun.wait()
            pause = threading.Event().wait
            pause(begin + checking.SOON_MS / 1000)
            self.kafka.freeze_node(outage.node - 1)
            try:
                pause(end - begin)
            finally:
                self.kafka.thaw_node(outage.node - 1)

        thread = threading.Thread(target=befall, daemon=True)
        thread.start()
        return thread


def brokers_of(found: Calibration) -> Brokers:
    """The nodes in the order of their ids, as the leaders stand in turn."""
    return Brokers(tuple(node.broker for node in sorted(found.nodes, key=lambda node: node.id)), measured=True)


@contextlib.contextmanager
def cluster(version: str, **more: Any) -> Iterator[Cluster]:
    """Three brokers, and the proxy between them."""
    listeners = [Listener(INSIDE, "PLAINTEXT", {}, HOST)]
    with RealKafka(version, nodes=BROKERS, listeners=listeners, properties=PROPERTIES, **more) as kafka:
        ports = [int(kafka.address_of(INSIDE, node).split(":")[1]) for node in kafka.node_ids]
        # What comes back from the first one is fetched by the followers of what it leads.
        with Delay([(HOST, ports[0])]) as delay, Delay([(HOST, port) for port in ports[1:]]):
            yield Cluster(kafka, delay)
