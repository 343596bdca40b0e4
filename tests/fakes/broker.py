"""A scripted cluster: decoded request in, encoded answer out, by the kio package and nothing of ours.

``ScriptedBroker`` is the brain behind one address of a ``MemorySelector``.  It keeps every byte and every
request; answers can be held, replaced, delayed, or left out.
"""

from __future__ import annotations

import socket
import struct
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.static.constants import EntityType

from forebay._network.transport import Address
from forebay.model import Node
from forebay.testing.memory import Link, MemorySelector
from tests.unit._protocol.kio_peer import decode, encode, make, schema

PRODUCE, METADATA, API_VERSIONS, INIT_PRODUCER_ID = 0, 3, 18, 22
NAMES = api_key_map
MODERN = {PRODUCE: (3, 13), METADATA: (0, 13), API_VERSIONS: (0, 4), INIT_PRODUCER_ID: (0, 5)}


def error_code(number: int) -> Any:
    """kio's member for a code; for one that nobody knows, something that kio writes all the same."""
    try:
        return ErrorCode(number)
    except ValueError:
        return SimpleNamespace(value=number)


@dataclass
class Received:
    """A request as the broker got it."""

    broker: ScriptedBroker
    link: Link
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    payload: bytes

    @cached_property
    def body(self) -> Any:
        """By kio."""
        module = schema(NAMES[self.api_key], self.version, "request")
        kinds = [value for value in vars(module).values() if getattr(value, "__type__", None) is EntityType.request]
        return decode(kinds[0], self.payload)

    def answer(self, message: Any, delay_ms: float = 0) -> None:
        """Sends a kio message as the response."""
        flexible = message.__flexible__ and self.api_key != API_VERSIONS
        self.answer_bytes((b"\0" if flexible else b"") + encode(message), delay_ms)

    def answer_bytes(self, after_correlation: bytes, delay_ms: float = 0) -> None:
        """Sends these bytes behind length and correlation id."""
        self.broker.answered.append(self)
        start = struct.pack(">ii", 4 + len(after_correlation), self.correlation_id)
        self.link.send(start + after_correlation, delay_ms)


@dataclass
class Partition:
    leader: int
    epoch: int = 0
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    error: int = 0


@dataclass
class Topic:
    partitions: list[Partition] = field(default_factory=list)
    error: int = 0
    topic_id: uuid.UUID | None = None
    operations: int = 1 << 4 | 1 << 8
    """What the client may do, by the codes of Kafka's AclOperation: WRITE and DESCRIBE."""


class ScriptedBroker:
    """One broker.  ``script`` overrides the answer to an API; an API in ``held`` is not answered until ``release``."""

    def __init__(self, cluster: ScriptedCluster, node: Node) -> None:
        self.cluster = cluster
        self.node = node
        self.ranges = dict(MODERN)
        self.finalized: tuple[int, dict[str, int]] | None = None
        self.throttle_ms = 0
        self.delay_ms = 0.0
        self.held: set[int] = set()
        self.waiting: list[Received] = []
        self.script: dict[int, Callable[[Received], None]] = {}
        self.requests: list[Received] = []
        self.answered: list[Received] = []
        self.links: list[Link] = []
        self.bytes_in = bytearray()
        self._partial: dict[int, bytearray] = {}

    def connected(self, link: Link) -> None:
        self.links.append(link)
        self._partial[id(link)] = bytearray()

    def closed(self, link: Link) -> None:
        self.waiting = [request for request in self.waiting if request.link is not link]

    def received(self, link: Link, data: bytes) -> None:
        self.bytes_in += data
        link.take()
        buffer = self._partial[id(link)]
        buffer += data
        while len(buffer) >= 4:
            size = struct.unpack_from(">i", buffer)[0]
            if len(buffer) < 4 + size:
                return
            frame = bytes(buffer[4 : 4 + size])
            del buffer[: 4 + size]
            request = self._parse(link, frame)
            self.requests.append(request)
            if request.api_key in self.held:
                self.waiting.append(request)
            else:
                self._answer(request)

    def release(self) -> None:
        """Answers what is held, and holds nothing any more."""
        self.held.clear()
        waiting, self.waiting = self.waiting, []
        for request in waiting:
            self._answer(request)

    def of(self, api_key: int) -> list[Received]:
        return [request for request in self.requests if request.api_key == api_key]

    def drop(self) -> None:
        """Closes every connection."""
        for link in self.links:
            if link.open:
                link.close()

    @staticmethod
    def _parse(link: Link, frame: bytes) -> Received:
        api_key, version, correlation_id, size = struct.unpack_from(">hhih", frame)
        at = 10 + max(size, 0)
        client_id = None if size < 0 else frame[10:at].decode()
        broker = link.peer
        assert isinstance(broker, ScriptedBroker)
        if _flexible(api_key, version):
            assert frame[at] == 0, "tagged fields in a request header"
            at += 1
        return Received(broker, link, api_key, version, correlation_id, client_id, frame[at:])

    def _answer(self, request: Received) -> None:
        scripted = self.script.get(request.api_key)
        if scripted is not None:
            scripted(request)
        elif request.api_key == API_VERSIONS:
            self.answer_versions(request)
        elif request.api_key == METADATA:
            request.answer(self.cluster.metadata(request), self.delay_ms)

    def answer_versions(
        self, request: Received, *, error: int = 0, ranges: dict[int, tuple[int, int]] | None = None
    ) -> None:
        """The version check's answer; an error is in version 0's layout, as KIP-511 has it."""
        version = 0 if error == 35 else request.version
        module = schema("api_versions", version, "response")
        keys = [
            make(module, "ApiVersion", api_key=api, min_version=low, max_version=high)
            for api, (low, high) in (self.ranges if ranges is None else ranges).items()
        ]
        epoch, levels = self.finalized or (-1, {})
        features = (
            [
                make(module, "FinalizedFeatureKey", name=name, max_version_level=level, min_version_level=0)
                for name, level in levels.items()
            ]
            if version >= 3
            else []
        )
        message = make(
            module,
            "ApiVersionsResponse",
            error_code=error_code(error),
            api_keys=tuple(keys),
            throttle_time=timedelta(milliseconds=self.throttle_ms),
            finalized_features_epoch=epoch,
            finalized_features=tuple(features),
        )
        request.answer(message, self.delay_ms)


class ScriptedCluster:
    """Brokers and topics; what metadata says of them can be changed at any time."""

    def __init__(self, selector: MemorySelector, nodes: int = 1, first_id: int = 1) -> None:
        self.selector = selector
        self.cluster_id: str | None = "dummy"
        self.topics: dict[str, Topic] = {}
        self.error = 0
        self.brokers: dict[int, ScriptedBroker] = {}
        for node_id in range(first_id, first_id + nodes):
            self.add(node_id)

    def add(self, node_id: int, host: str = "127.0.0.1") -> ScriptedBroker:
        broker = ScriptedBroker(self, Node(node_id, host, 9000 + node_id))
        self.brokers[node_id] = broker
        self.up(node_id)
        return broker

    def address(self, node_id: int) -> Address:
        node = self.brokers[node_id].node
        family = socket.AF_INET6 if ":" in node.host else socket.AF_INET
        return Address(int(family), (node.host, node.port))

    def up(self, node_id: int) -> None:
        self.selector.listen(self.address(node_id), self.brokers[node_id])

    def down(self, node_id: int) -> None:
        """Nobody listens any more, and connections are cut."""
        self.selector.refuse(self.address(node_id))
        self.brokers[node_id].drop()

    def bootstrap(self, *node_ids: int) -> list[Node]:
        chosen = node_ids or tuple(self.brokers)
        return [
            Node(-1 - place, self.brokers[node_id].node.host, self.brokers[node_id].node.port)
            for place, node_id in enumerate(chosen)
        ]

    def metadata(self, request: Received, names: Iterable[str] | None = None) -> Any:
        """The answer to a metadata request: the topics asked for, or ``names``; unknown ones with error 3."""
        module = schema("metadata", request.version, "response")
        asked = [topic.name for topic in request.body.topics or ()] if names is None else names
        brokers = [
            make(module, "MetadataResponseBroker", node_id=node.id, host=node.host, port=node.port, rack=None)
            for node in (broker.node for broker in self.brokers.values())
        ]
        return make(
            module,
            "MetadataResponse",
            throttle_time=timedelta(milliseconds=request.broker.throttle_ms),
            brokers=tuple(brokers),
            cluster_id=self.cluster_id,
            controller_id=1,
            topics=tuple(self._topic(module, name, request) for name in asked),
            error_code=error_code(self.error),
        )

    def _topic(self, module: Any, name: str, request: Received) -> Any:
        topic = self.topics.get(name, Topic(error=3))
        asked = request.version >= 8 and request.body.include_topic_authorized_operations
        partitions = [
            make(
                module,
                "MetadataResponsePartition",
                error_code=error_code(part.error),
                partition_index=index,
                leader_id=part.leader,
                leader_epoch=part.epoch,
                replica_nodes=part.replicas or (part.leader,),
                isr_nodes=part.isr or (part.leader,),
                offline_replicas=(),
            )
            for index, part in enumerate(topic.partitions)
        ]
        return make(
            module,
            "MetadataResponseTopic",
            error_code=error_code(topic.error),
            name=name,
            topic_id=topic.topic_id,
            is_internal=False,
            partitions=tuple(partitions),
            topic_authorized_operations=topic.operations if asked else -(2**31),
        )


def _flexible(api_key: int, version: int) -> bool:
    if api_key == PRODUCE and version < 3:
        return False  # kio begins with version 3
    module = schema(NAMES[api_key], version, "request")
    kinds = [value for value in vars(module).values() if hasattr(value, "__flexible__")]
    return bool(kinds[0].__flexible__)
