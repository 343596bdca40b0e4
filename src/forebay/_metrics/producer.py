"""ProducerMetrics: one field for each sensor, so that recording needs no look-up.

An owner of state reads the sensor once, at construction (``self.sent = metrics.records_sent``), and records to it where
the state changes.  Sensors of topics and nodes are made on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from forebay._metrics.names import (
    APP_INFO,
    COUNT,
    GAUGES,
    NODE,
    NODE_ROWS,
    PRODUCER,
    PRODUCER_ROWS,
    SHARED,
    TOPIC,
    TOPIC_HISTOGRAM,
    TOPIC_ROWS,
    Row,
)
from forebay._metrics.registry import (
    AnySensor,
    Kind,
    Measured,
    MetricName,
    MetricsRegistry,
    MetricsSnapshot,
    MetricValue,
    Reading,
)
from forebay._metrics.sensor import NODE_FIELDS, TOPIC_FIELDS, NodeSensors, Sensor, SharedSensor, TopicSensors

_Tags = tuple[tuple[str, str], ...]


class _Table(NamedTuple):
    """The rows of a group, and the sensors that they are read from."""

    group: str
    rows: tuple[Row, ...]
    fields: tuple[str, ...]

    @classmethod
    def of(cls, group: str, rows: tuple[Row, ...]) -> _Table:
        return cls(group, rows, tuple(dict.fromkeys(row.sensor for row in rows)))

    def measured(self, sensors: dict[str, AnySensor], tags: _Tags) -> Measured:
        """The metrics, with their sensors."""
        return [
            (MetricName(row.name, self.group, row.description, tags, row.kind, row.unit), sensors[row.sensor])
            for row in self.rows
        ]


_OF_PRODUCER = _Table.of(PRODUCER, PRODUCER_ROWS)
_OF_TOPIC = _Table.of(TOPIC, TOPIC_ROWS)
_OF_NODE = _Table.of(NODE, NODE_ROWS)


class ProducerMetrics:
    """All sensors of one producer; closed with it.

    Args:
        client_id: the tag on every metric.
        now: when counting starts (ms).
        num_samples: ``metrics.num.samples``.
        window_ms: ``metrics.sample.window.ms``.
    """

    # Sender's thread, per produce request, batch or record:
    batch_size: Sensor
    batch_splits: Sensor
    compression_rate: Sensor
    queue_time: Sensor
    request_latency: Sensor
    produce_throttle_time: Sensor
    records_sent: Sensor
    """Per produce request: its records (rate, total, and records-per-request-avg)."""
    record_retries: Sensor
    record_size: Sensor
    """``record_many(bytes, records, largest)`` per batch, so that the mean is the records' own."""
    # Any thread; the same as names.SHARED:
    record_errors: SharedSensor
    """Records that failed: batches' by the sender's thread, and those that send() refuses."""
    buffer_wait_ns: SharedSensor
    buffer_exhausted: SharedSensor
    flush_ns: SharedSensor
    metadata_wait_ns: SharedSensor
    txn_init_ns: SharedSensor
    txn_begin_ns: SharedSensor
    txn_send_offsets_ns: SharedSensor
    txn_commit_ns: SharedSensor
    txn_abort_ns: SharedSensor
    # Sender's thread, network:
    connections_closed: Sensor
    connections_created: Sensor
    authentications: Sensor
    authentications_no_reauth: Sensor
    authentications_failed: Sensor
    reauthentications: Sensor
    reauthentications_failed: Sensor
    reauthentication_latency: Sensor
    network_io: Sensor
    bytes_out: Sensor
    bytes_in: Sensor
    requests: Sensor
    """Per request of any kind: its bytes (request-rate, -total, request-size)."""
    responses: Sensor
    """Per response of any kind: its bytes."""
    io_wait_ns: Sensor
    """Per turn: nanoseconds waited in poll (also select-rate and -total)."""
    io_ns: Sensor
    """Per turn: nanoseconds of reading and writing."""

    def __init__(self, client_id: str, now: float, *, num_samples: int = 2, window_ms: float = 30_000) -> None:
        self.registry = MetricsRegistry(now, num_samples=num_samples, window_ms=window_ms)
        self._tags: _Tags = (("client-id", client_id),)
        # Only the sender's thread adds to them (in an AdminClient, the thread that calls).
        self._topics: dict[str, TopicSensors] = {}
        self._nodes: dict[int, NodeSensors] = {}
        vars(self).update(self._make(_OF_PRODUCER, self._tags, now))
        count = MetricName("count", COUNT, "Metrics there are.", self._tags)
        self.registry.gauge(count, lambda: len(self.registry))

    def topic(self, topic: str, now: float) -> TopicSensors:
        """The sensors of ``topic``, made if there are none."""
        found = self._topics.get(topic)
        if found is None:
            tags = (*self._tags, ("topic", topic))
            row = TOPIC_HISTOGRAM
            name = MetricName(row.name, TOPIC, row.description, tags, row.kind, row.unit)
            sensors = self._make(_OF_TOPIC, tags, now)
            found = self._topics[topic] = TopicSensors(**sensors, ack_time=self.registry.histogram(name))
        return found

    def node(self, node_id: int, now: float) -> NodeSensors:
        """The sensors of the node, made if there are none; bootstrap servers have negative ids."""
        found = self._nodes.get(node_id)
        if found is None:
            tags = (*self._tags, ("node-id", f"node-{node_id}"))
            found = self._nodes[node_id] = NodeSensors(**self._make(_OF_NODE, tags, now))
        return found

    def topics(self) -> list[tuple[str, TopicSensors]]:
        """The topics that have sensors; any thread."""
        return list(self._topics.items())

    def gauge(self, name: str, read: Callable[[], MetricValue]) -> None:
        """Registers the live value for one of ``names.GAUGES``; ``read`` runs on the reader's thread.

        Raises:
            KeyError: there is no such gauge.
        """
        about = GAUGES[name]
        self.registry.gauge(MetricName(name, PRODUCER, about.description, self._tags, Kind.GAUGE, about.unit), read)

    def app_info(self, version: str, commit_id: str, start_time_ms: int) -> None:
        """Registers version, commit and start time, in the group app-info."""
        facts: dict[str, MetricValue] = {"version": version, "commit-id": commit_id, "start-time-ms": start_time_ms}
        for name, value in facts.items():
            where = MetricName(name, APP_INFO, f"The client's {name}.", self._tags, Kind.FACT)
            self.registry.gauge(where, _constant(value))

    def roll(self, now: float) -> float:
        """Closes the window if it is over; returns when to call again, in monotonic ms."""
        return self.registry.roll(now)

    def snapshot(self, now: float) -> MetricsSnapshot:
        """Every metric as of ``now``; any thread."""
        return self.registry.snapshot(now)

    def readings(self, now: float, wanted: Callable[[MetricName], bool] = bool) -> Iterator[Reading]:
        """What exporters read, as of ``now``, or the ``wanted`` part of it; any thread."""
        return self.registry.readings(now, wanted)

    def close(self) -> None:
        """Removes every metric; a later record() is harmless."""
        self.registry.clear()

    def _make(self, table: _Table, tags: _Tags, now: float) -> dict[str, Any]:
        sensors: dict[str, AnySensor] = {
            field: SharedSensor(now) if field in SHARED else Sensor(now) for field in table.fields
        }
        self.registry.add(sensors.values(), len(table.rows), lambda: table.measured(sensors, tags))
        return sensors


def _constant(value: MetricValue) -> Callable[[], MetricValue]:
    return lambda: value


def sensor_fields() -> dict[str, frozenset[str]]:
    """The declared sensor fields by class; a test compares them with the table of names."""
    return {
        "ProducerMetrics": frozenset(ProducerMetrics.__annotations__),
        "TopicSensors": frozenset(TOPIC_FIELDS),
        "NodeSensors": frozenset(NODE_FIELDS),
    }
