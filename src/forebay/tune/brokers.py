"""Brokers: how long each node takes for a request, and when it is away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

from forebay.tune._checks import choice, number, refused, whole
from forebay.tune.files import in_file, read

if TYPE_CHECKING:
    import os

OUTAGES = ("silent", "refused", "not_leader")
MAX_MS = 3_600_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """Requests of producers that are not simulated, which take handlers of the node, too."""

    rate: float = 0.0
    """Requests a second."""
    size: int = 16_384
    """Bytes of each."""

    def __post_init__(self) -> None:
        number("others rate", self.rate, 0, 1_000_000)
        whole("others size", self.size, 0, 1 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """One node.

    A request of n bytes takes a handler for ``fixed_ms`` and ``per_mib_ms`` for each MiB.  A connection's requests are
    served one after the other: the next one begins when the answer to the one before is out.
    """

    rtt_ms: float = 1.0
    """The way there and back, without any work."""
    fixed_ms: float = 0.5
    per_mib_ms: float = 3.0
    bandwidth: float | None = None
    """Bytes a second from the producer to this node; None: no limit."""
    handlers: int = 8
    jitter: float = 0.0
    """Sigma of the lognormal factor of each request's time, whose mean is 1."""
    replication_ms: float = 0.0
    """What an answer waits for the followers with acks=all; it holds up the connection, and no handler."""
    quota: float | None = None
    """Bytes a second of one producer; None: no quota."""
    others: Others = field(default_factory=Others)

    def __post_init__(self) -> None:
        for name in ("rtt_ms", "fixed_ms", "per_mib_ms", "replication_ms"):
            number(name, getattr(self, name), 0, MAX_MS)
        number("jitter", self.jitter, 0, 3)
        whole("handlers", self.handlers, 1, 10_000)
        for name in ("bandwidth", "quota"):
            if getattr(self, name) is not None:
                number(name, getattr(self, name), 0, above=True)
        if isinstance(self.others, Mapping):
            object.__setattr__(self, "others", _made(Others, "others", self.others))
        if not isinstance(self.others, Others):
            raise refused("others", self.others, "a table with rate and size")

    def service_ms(self, size: int) -> float:
        """How long a request of so many bytes takes a handler, without jitter."""
        return self.fixed_ms + self.per_mib_ms * size / (1 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A time in which a node does not serve.

    ``silent``: it keeps its connections and answers nothing until the end, then all that came meanwhile.
    ``refused``: its connections break, new ones are refused, and it keeps the lead of its partitions.
    ``not_leader``: as ``refused``; after ``election_ms`` other nodes lead its partitions, and at the end it leads them
    again.
    """

    node: int
    """From 1 on."""
    seconds: tuple[float, float]
    """From and to, from the beginning of the load."""
    kind: str = "silent"
    election_ms: float = 1000.0

    def __post_init__(self) -> None:
        whole("outage node", self.node, 1)
        span = self.seconds
        if not isinstance(span, Sequence) or isinstance(span, str) or len(span) != 2:
            raise refused("outage seconds", span, "a list of two numbers, from and to")
        begin = number("outage seconds, from", span[0], 0, 86_400)
        end = number("outage seconds, to", span[1], begin, 86_400, above=True)
        object.__setattr__(self, "seconds", (begin, end))
        choice("outage kind", self.kind, OUTAGES)
        number("outage election_ms", self.election_ms, 0, MAX_MS)


@dataclass(frozen=True, slots=True)
class Brokers:
    """The cluster: its nodes, numbered from 1, and their outages."""

    nodes: tuple[Broker, ...] = (Broker(),)
    outages: tuple[Outage, ...] = ()
    measured: bool = False
    """Whether its times were measured, as ``calibrate`` does; else they are guesses, and predictions say so."""

    def __post_init__(self) -> None:
        if not isinstance(self.measured, bool):
            raise refused("measured", self.measured, "true or false")
        if not self.nodes:
            raise refused("nodes", 0, "at least 1")
        for outage in self.outages:
            if outage.node > len(self.nodes):
                raise refused("outage node", outage.node, f"from 1 to {len(self.nodes)}, the number of nodes")
            if outage.kind == "not_leader" and len(self.nodes) == 1:
                raise refused("outage kind", outage.kind, "silent or refused where no other node can lead")
        spans = sorted((outage.node, outage.seconds) for outage in self.outages)
        for (node, before), (other, span) in pairwise(spans):
            if node == other and span[0] < before[1]:
                raise refused("outage seconds", list(span), f"apart from the node's other outage, {list(before)}")

    @classmethod
    def alike(cls, count: int, outages: Sequence[Outage] = (), **broker: Any) -> Self:
        """So many nodes with the same fields of Broker."""
        return cls((Broker(**broker),) * whole("nodes", count, 1, 1000), tuple(outages))

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Self:
        """The table ``[cluster]`` of a file.

        Raises:
            ConfigError: no such file, or something in it is not right.
        """
        return in_file(path, lambda: cls.of(read(path).cluster))

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """What a table ``[cluster]`` says; its keys are known.

        Raises:
            ConfigError: a value is not right.
        """
        alike = {key: value for key, value in table.items() if key not in ("nodes", "node", "outage", "measured")}
        found = cls.alike(table.get("nodes", 1), **alike)
        for single in table.get("node", ()):
            found = found.with_node(**single)
        for outage in table.get("outage", ()):
            if "node" not in outage or "seconds" not in outage:
                raise refused("[[cluster.outage]]", dict(outage), "a table with node and seconds")
        outages = tuple(Outage(**outage) for outage in table.get("outage", ()))
        return cls(found.nodes, outages, table.get("measured", False))

    def with_node(self, node: int | None = None, **changed: Any) -> Self:
        """The cluster with other fields of one node, which is given by its number."""
        node = whole("node", node, 1, len(self.nodes))
        known = [each.name for each in fields(Broker)]
        for key in changed:
            choice("node key", key, known)
        nodes = list(self.nodes)
        nodes[node - 1] = replace(nodes[node - 1], **changed)
        return replace(self, nodes=tuple(nodes))

    def slowed(self, node: int, factor: float) -> Self:
        """The cluster in which one node takes so many times as long for each request, and so do its followers."""
        number("factor", factor, 0, 1000, above=True)
        whole("node", node, 1, len(self.nodes))
        found = self.nodes[node - 1]
        times = {name: getattr(found, name) * factor for name in ("fixed_ms", "per_mib_ms", "replication_ms")}
        return self.with_node(node, **times)

    def with_outages(self, *outages: Outage) -> Self:
        """The same nodes with these outages, and no others."""
        return replace(self, outages=outages)

    @property
    def last_outage(self) -> float:
        """The second at which the last outage is over; 0 without any."""
        return max((outage.seconds[1] for outage in self.outages), default=0.0)


def _made(kind: Any, key: str, given: Mapping[str, Any]) -> Any:
    known = [each.name for each in fields(kind)]
    for name in given:
        choice(f"{key} key", name, known)
    return kind(**given)
