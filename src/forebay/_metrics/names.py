"""The table of the producer's metrics: the Java client's names and groups, and which sensor each is read from.

A row names a sensor field of ``ProducerMetrics``, ``TopicSensors`` or ``NodeSensors`` and what is read from it.
``GAUGES`` names values that are computed when they are read; the owner of the state registers each.
"""

from __future__ import annotations

from typing import NamedTuple

from forebay._metrics.registry import Kind, MetricName

PRODUCER = "producer-metrics"
TOPIC = "producer-topic-metrics"
NODE = "producer-node-metrics"
APP_INFO = "app-info"
COUNT = "kafka-metrics-count"


#: Sensors that application threads record to; some also have the sender's thread as a writer.
SHARED = frozenset(
    {
        "record_errors",
        "buffer_wait_ns",
        "buffer_exhausted",
        "flush_ns",
        "metadata_wait_ns",
        "txn_init_ns",
        "txn_begin_ns",
        "txn_send_offsets_ns",
        "txn_commit_ns",
        "txn_abort_ns",
    }
)


class Row(NamedTuple):
    """One metric; ``unit`` as in ``MetricName``."""

    sensor: str
    name: str
    kind: Kind
    description: str
    unit: str = ""


OLD_NAMES = frozenset({"bufferpool-wait-time-total", "io-waittime-total", "iotime-total"})
"""What Java keeps beside newer names; exporters leave them out."""


def _pair(sensor: str, stem: str, what: str, unit: str = "", *, events: bool = False) -> tuple[Row, Row]:
    """A rate and a total of the same quantity: of the recorded values, or of the number of ``events``."""
    rate, total = (Kind.COUNT_RATE, Kind.COUNT_TOTAL) if events else (Kind.RATE, Kind.TOTAL)
    return (
        Row(sensor, f"{stem}-rate", rate, f"{what}, a second.", unit),
        Row(sensor, f"{stem}-total", total, f"{what}, since the start.", unit),
    )


def _avg_max(sensor: str, stem: str, what: str, unit: str) -> tuple[Row, Row]:
    return (
        Row(sensor, f"{stem}-avg", Kind.AVG, f"{what}, mean.", unit),
        Row(sensor, f"{stem}-max", Kind.MAX, f"{what}, largest.", unit),
    )


_TIMES = {
    "flush_ns": ("flush-time-ns-total", "Nanoseconds spent in flush."),
    "metadata_wait_ns": ("metadata-wait-time-ns-total", "Nanoseconds send() waited for metadata."),
    "txn_init_ns": ("txn-init-time-ns-total", "Nanoseconds spent in init_transactions."),
    "txn_begin_ns": ("txn-begin-time-ns-total", "Nanoseconds spent in begin_transaction."),
    "txn_send_offsets_ns": ("txn-send-offsets-time-ns-total", "Nanoseconds spent in send_offsets_to_transaction."),
    "txn_commit_ns": ("txn-commit-time-ns-total", "Nanoseconds spent in commit_transaction."),
    "txn_abort_ns": ("txn-abort-time-ns-total", "Nanoseconds spent in abort_transaction."),
}

_SENDING = (
    *_avg_max("batch_size", "batch-size", "Bytes of a batch as sent", "bytes"),
    *_pair("batch_splits", "batch-split", "Batches split because the broker found them too large"),
    Row("compression_rate", "compression-rate-avg", Kind.AVG, "Compressed size divided by uncompressed, mean."),
    *_avg_max("queue_time", "record-queue-time", "Milliseconds from a batch's creation to its sending", "ms"),
    *_avg_max("request_latency", "request-latency", "Milliseconds from request to response", "ms"),
    *_avg_max(
        "produce_throttle_time", "produce-throttle-time", "Milliseconds a request was throttled by a broker", "ms"
    ),
    *_pair("records_sent", "record-send", "Records sent"),
    Row("records_sent", "records-per-request-avg", Kind.AVG, "Records in a produce request, mean."),
    *_pair("record_retries", "record-retry", "Records sent again"),
    *_pair("record_errors", "record-error", "Records that failed"),
    *_avg_max("record_size", "record-size", "Bytes of a record before compression", "bytes"),
)

_BUFFER = (
    Row("buffer_wait_ns", "bufferpool-wait-ratio", Kind.RATIO, "Share of the time a sending thread waited for memory."),
    Row("buffer_wait_ns", "bufferpool-wait-time-ns-total", Kind.TOTAL, "Nanoseconds waited for buffer memory.", "ns"),
    Row("buffer_wait_ns", "bufferpool-wait-time-total", Kind.TOTAL, "Old name of bufferpool-wait-time-ns-total.", "ns"),
    *_pair("buffer_exhausted", "buffer-exhausted", "Records dropped because no buffer memory came free in time"),
)

_NETWORK = (
    *_pair("connections_closed", "connection-close", "Connections closed", events=True),
    *_pair("connections_created", "connection-creation", "Connections made", events=True),
    *_pair("authentications", "successful-authentication", "Connections authenticated", events=True),
    *_pair("reauthentications", "successful-reauthentication", "Connections authenticated again", events=True),
    Row(
        "authentications_no_reauth",
        "successful-authentication-no-reauth-total",
        Kind.COUNT_TOTAL,
        "Connections to brokers that do not know re-authentication, since the start.",
    ),
    *_pair("authentications_failed", "failed-authentication", "Connections that failed to authenticate", events=True),
    *_pair("reauthentications_failed", "failed-reauthentication", "Failed re-authentications", events=True),
    *_avg_max("reauthentication_latency", "reauthentication-latency", "Milliseconds of a re-authentication", "ms"),
    *_pair("network_io", "network-io", "Reads and writes on all connections", events=True),
    *_pair("bytes_out", "outgoing-byte", "Bytes written to brokers", "bytes"),
    *_pair("bytes_in", "incoming-byte", "Bytes read from brokers", "bytes"),
    *_pair("requests", "request", "Requests sent", events=True),
    *_avg_max("requests", "request-size", "Bytes of a request", "bytes"),
    *_pair("responses", "response", "Responses received", events=True),
    *_pair("io_wait_ns", "select", "Times the I/O thread waited for sockets", events=True),
    Row("io_wait_ns", "io-wait-time-ns-avg", Kind.AVG, "Nanoseconds of one wait for sockets, mean.", "ns"),
    Row("io_wait_ns", "io-wait-ratio", Kind.RATIO, "Share of the time the I/O thread waited."),
    Row("io_wait_ns", "io-wait-time-ns-total", Kind.TOTAL, "Nanoseconds the I/O thread waited.", "ns"),
    Row("io_wait_ns", "io-waittime-total", Kind.TOTAL, "Old name of io-wait-time-ns-total.", "ns"),
    Row("io_ns", "io-time-ns-avg", Kind.AVG, "Nanoseconds of I/O in one turn, mean.", "ns"),
    Row("io_ns", "io-ratio", Kind.RATIO, "Share of the time spent in I/O."),
    Row("io_ns", "io-time-ns-total", Kind.TOTAL, "Nanoseconds spent in I/O.", "ns"),
    Row("io_ns", "iotime-total", Kind.TOTAL, "Old name of io-time-ns-total.", "ns"),
)

PRODUCER_ROWS: tuple[Row, ...] = (
    *_SENDING,
    *_BUFFER,
    *(Row(sensor, name, Kind.TOTAL, what, "ns") for sensor, (name, what) in _TIMES.items()),
    *_NETWORK,
)

TOPIC_ROWS: tuple[Row, ...] = (
    *_pair("records", "record-send", "Records sent to the topic"),
    *_pair("bytes", "byte", "Bytes sent to the topic", "bytes"),
    Row("compression_rate", "compression-rate", Kind.AVG, "Compressed size divided by uncompressed, mean."),
    *_pair("retries", "record-retry", "Records sent again to the topic"),
    *_pair("errors", "record-error", "Records of the topic that failed"),
)

NODE_ROWS: tuple[Row, ...] = (
    *_pair("requests", "request", "Requests sent to the node", events=True),
    *_avg_max("requests", "request-size", "Bytes of a request to the node", "bytes"),
    *_pair("bytes_out", "outgoing-byte", "Bytes written to the node", "bytes"),
    *_pair("responses", "response", "Responses received from the node", events=True),
    *_pair("bytes_in", "incoming-byte", "Bytes read from the node", "bytes"),
    *_avg_max("latency", "request-latency", "Milliseconds from request to response", "ms"),
)

TOPIC_HISTOGRAM = Row("ack_time", "record-ack-time", Kind.HISTOGRAM, "Milliseconds from send to acknowledgement.", "ms")
"""For exporters alone; the Java client has none."""


class Gauge(NamedTuple):
    """A metric that is read from live state."""

    description: str
    unit: str = ""


GAUGES = {
    "requests-in-flight": Gauge("Requests that wait for a response."),
    "metadata-age": Gauge("Seconds since the metadata was last refreshed.", "s"),
    "connection-count": Gauge("Connections that are open."),
    "waiting-threads": Gauge("Threads that wait for buffer memory."),
    "buffer-total-bytes": Gauge("Buffer memory there is (buffer.memory).", "bytes"),
    "buffer-available-bytes": Gauge("Buffer memory that is free, pooled or not.", "bytes"),
}
"""Of the producer, by name."""


def telemetry_name(name: MetricName) -> str:
    """The metric's name as brokers hear of it (KIP-714), such as ``org.apache.kafka.producer.record.send.total``."""
    group = name.group.replace("-", ".").replace(".metrics", "")
    return ".".join(["org.apache.kafka", group, name.name.replace("-", ".")])
