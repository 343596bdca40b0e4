"""What all exporters share: which producers they read, under which names, and in which units."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from forebay._metrics import names
from forebay._metrics.registry import Kind, MetricName, Reading
from forebay._sender import lifecycle
from forebay.producer import KafkaProducer
from forebay.producer._path import FORKED

PREFIXES = {names.PRODUCER: "forebay", names.TOPIC: "forebay_topic", names.NODE: "forebay_node"}
"""What the names of a group begin with in Prometheus."""
UNITS = {"ms": ("seconds", 1e-3), "ns": ("seconds", 1e-9), "s": ("seconds", 1.0), "bytes": ("bytes", 1.0)}
"""The base unit of each unit, and the factor to it."""
UNIT_WORDS = frozenset({"ns", "byte", "bytes"})
ENDINGS = {Kind.TOTAL: "-total", Kind.COUNT_TOTAL: "-total", Kind.AVG: "-avg"}
"""What a kind adds to the name of its quantity."""
PLURALS = {"connection-count": "connections"}
"""In Prometheus ``_count`` is the end of what belongs to a summary or a histogram."""
SUMMED = frozenset({"io-wait-time-ns-avg", "io-time-ns-avg"})
"""Averages of quantities that have a total of their own."""


def readings(producer: Any) -> Iterator[Reading]:
    """Every metric of a producer as exporters read it: as ``metrics()``, with sums, numbers and histograms.

    Nothing if the producer is closed, or belongs to another process.

    Args:
        producer: a KafkaProducer or an AsyncKafkaProducer.

    Raises:
        TypeError: it is neither.
    """
    parts = native(producer)._parts
    return iter(()) if is_foreign(producer) else parts.metrics.readings(parts.clock.now())


def native(producer: Any) -> KafkaProducer:
    """The KafkaProducer itself, or the one behind an AsyncKafkaProducer.

    Raises:
        TypeError: there is none.
    """
    found = getattr(producer, "_producer", producer)
    if not isinstance(found, KafkaProducer):
        raise TypeError(f"a KafkaProducer or an AsyncKafkaProducer is wanted, got {type(producer).__name__}")
    return found


def is_foreign(producer: Any) -> bool:
    """Whether it is a copy in a forked child."""
    return native(producer)._state == FORKED


class Watched:
    """The producers that one exporter reads, each with a name of its own.  Any thread.

    Args:
        producers: those to read, not kept alive by this; None: all of the process, also those that are made later.

    Raises:
        TypeError: one is no producer.
    """

    def __init__(self, producers: Iterable[Any] | None = None) -> None:
        self._chosen = None if producers is None else [weakref.ref(native(producer)) for producer in producers]
        self._lock = threading.RLock()
        """Re-entrant, because a signal handler that reads may have interrupted a reading."""
        self._names: weakref.WeakKeyDictionary[KafkaProducer, str] = weakref.WeakKeyDictionary()
        """Under ``_lock``."""
        lifecycle.watch_forks(self)

    def _after_fork_in_child(self) -> None:
        # Another thread of the parent may have held it.
        self._lock = threading.RLock()

    def producers(self) -> list[tuple[str, KafkaProducer]]:
        """Those that are open, by the client id; of several with the same one the others have ``#2``, ``#3`` ..."""
        if self._chosen is None:
            known = [each for each in lifecycle.producers() if isinstance(each, KafkaProducer)]
        else:
            known = [found for each in self._chosen if (found := each()) is not None]
        # The end of a producer's thread clears its registry.
        living = [each for each in known if len(each._parts.metrics.registry) > 0 and not is_foreign(each)]
        with self._lock:
            for gone in set(self._names) - set(living):
                self._names.pop(gone, None)
            named = [(self._name(each), each) for each in living]
        return sorted(named, key=lambda pair: pair[0])

    def _name(self, producer: KafkaProducer) -> str:
        name = self._names.get(producer)
        if name is None:
            taken, number = set(self._names.values()), 1
            name = producer.client_id
            while name in taken:
                number += 1
                name = f"{producer.client_id}#{number}"
            self._names[producer] = name
        return name


def known_names() -> Iterator[MetricName]:
    """Every metric that a producer may have, without its tags; the histogram is not among them."""
    groups = {names.PRODUCER: names.PRODUCER_ROWS, names.TOPIC: names.TOPIC_ROWS, names.NODE: names.NODE_ROWS}
    for group, rows in groups.items():
        for row in rows:
            yield MetricName(row.name, group, row.description, (), row.kind, row.unit)
    for name, gauge in names.GAUGES.items():
        yield MetricName(name, names.PRODUCER, gauge.description, (), Kind.GAUGE, gauge.unit)


def prometheus_name(name: MetricName) -> str:
    """The name of the metric's family in Prometheus, without ``_total``; empty if it is left out.

    Base units, and no rates, ratios and means: Prometheus computes those over any time from totals.
    """
    left_out = name.kind in (Kind.RATE, Kind.COUNT_RATE, Kind.RATIO, Kind.FACT)
    if left_out or name.group not in PREFIXES or name.name in names.OLD_NAMES or name.name in SUMMED:
        return ""
    words = PLURALS.get(name.name, name.name).removesuffix(ENDINGS.get(name.kind, "")).split("-")
    if words[-1] in UNIT_WORDS:
        words.pop()
    unit = UNITS[name.unit][0] if name.unit else ""
    return "_".join([PREFIXES[name.group], *words, *([unit] if unit else [])])


def in_base_unit(name: MetricName, value: float) -> float:
    """A value of the metric in seconds or bytes."""
    return value * UNITS[name.unit][1] if name.unit else value


def tags_of(name: MetricName) -> dict[str, str]:
    """The topic or the node of a metric; a node by its number."""
    tags = {key: value for key, value in name.tags if key != "client-id"}
    return {"node": tags["node-id"].removeprefix("node-")} if "node-id" in tags else tags
