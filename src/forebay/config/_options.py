"""The table of a producer's options, less those of TLS and SASL (``_security``): Kafka 4.x names and defaults.

Sections and values are Kafka's; the words are ours.
"""

from __future__ import annotations

from typing import Any

from forebay import serializers
from forebay.config._address_map import parse_address_map
from forebay.config._option import INT_MAX, Feature, Importance, Option, Type

BOOLEAN, INT, LONG, STRING = Type.BOOLEAN, Type.INT, Type.LONG, Type.STRING
LIST, CLASS, PASSWORD = Type.LIST, Type.CLASS, Type.PASSWORD
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_FROM_0 = ((0, None),)

_SERIALIZER_NAMES: dict[str, Any] = {
    "json": serializers.JSONSerializer,
    "string": serializers.StringSerializer,
    **{f"org.apache.kafka.common.serialization.{name}": kind for name, kind in serializers.BUILT_IN.items()},
}
_PARTITIONERS: dict[str, Any] = {
    "builtin": None,
    "round_robin": "round_robin",
    "consistent_random": "consistent_random",
    "org.apache.kafka.clients.producer.RoundRobinPartitioner": "round_robin",
}

_CORE = (
    Option(
        "bootstrap.servers", LIST, (), HIGH,
        "host:port of one or more brokers to learn the cluster from; IPv6 addresses in brackets. Servers that "
        "cannot be resolved are skipped with a warning.",
    ),
    Option(
        "key.serializer", CLASS, None, HIGH,
        "Turns keys into bytes: a callable(value), an object with serialize(topic, headers, data) or "
        "serialize(topic, data), one of confluent_kafka.schema_registry, a class, a name of one, json or string. "
        "Without it keys must be bytes or None.",
        names=_SERIALIZER_NAMES,
    ),
    Option(
        "value.serializer", CLASS, None, HIGH,
        "Turns values into bytes; see key.serializer.",
        names=_SERIALIZER_NAMES,
    ),
    Option(
        "acks", STRING, -1, LOW,
        "When a record counts as written: 0 as soon as it is sent, 1 when the leader has it, all (-1) when every "
        "in-sync replica has it. Less than all switches idempotence off.",
        choices=("all", "-1", "0", "1"),
        convert=lambda value: -1 if value == "all" else int(value),
    ),
    Option(
        "enable.idempotence", BOOLEAN, True, LOW,
        "Each record is written once and in order, retries included. Needs retries above 0, acks=all and at most "
        "5 requests in flight; where those are not met it is switched off, unless it was asked for: then it is "
        "an error.",
    ),
    Option(
        "retries", INT, INT_MAX, HIGH,
        "How often a batch is sent again after a passing error; delivery.timeout.ms is the better limit.",
        ranges=_FROM_0,
    ),
    Option(
        "max.in.flight.requests.per.connection", INT, 5, LOW,
        "Requests sent to one broker without waiting for the answers. 1 keeps the order even without idempotence.",
        ranges=((1, None),),
    ),
    Option(
        "delivery.timeout.ms", INT, 120_000, MEDIUM,
        "The time from send() returning to success or failure of the record, all retries included. At least "
        "linger.ms + request.timeout.ms.",
        ranges=_FROM_0,
    ),
    Option(
        "request.timeout.ms", INT, 30_000, MEDIUM,
        "How long a broker may take for an answer; then the connection is closed and the request retried.",
        ranges=_FROM_0,
    ),
    Option(
        "linger.ms", LONG, 5, MEDIUM,
        "How long a batch that is not full waits for more records. 0 sends at once.",
        ranges=_FROM_0,
    ),
    Option(
        "batch.size", INT, 16_384, MEDIUM,
        "Bytes of records gathered for a partition before they are sent. 0 sends every record by itself.",
        ranges=_FROM_0,
    ),
    Option(
        "buffer.memory", LONG, 33_554_432, HIGH,
        "Bytes of records that may wait in this producer; when they are used up send() waits up to max.block.ms.",
        ranges=_FROM_0,
    ),
    Option(
        "buffer.memory.max.node.share", Type.DOUBLE, 1.0, LOW,
        "The share of buffer.memory that records for one broker may take, so that a broker that cannot be reached "
        "does not hold up those for the others; 1 sets no limit. Must leave room for batch.size and max.request.size.",
        ranges=((0, 1),), ours=True,
    ),
    Option(
        "max.sparse.batches.in.flight", INT, 5000, LOW,
        "While so many batches that could take more records are in flight to a broker, it gets no further ones until "
        "it answers, so that they fill meanwhile. Full batches and what flush() or a transaction asks for do not wait. "
        "0 sets no limit.",
        ranges=_FROM_0, ours=True,
    ),
    Option(
        "max.block.ms", LONG, 60_000, MEDIUM,
        "How long send() may wait in all, for metadata and for memory.",
        ranges=_FROM_0,
    ),
    Option(
        "max.request.size", INT, 1_048_576, MEDIUM,
        "The largest request, and so the largest record before compression, in bytes. Brokers have a limit too.",
        ranges=_FROM_0,
    ),
    Option(
        "compression.type", STRING, "none", HIGH,
        "How batches are compressed; fuller batches compress better.",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
    ),
    Option(
        "compression.gzip.level", INT, -1, MEDIUM,
        "gzip: 1 fast to 9 small, -1 its default.",
        ranges=((1, 9), (-1, -1)),
    ),
    Option("compression.lz4.level", INT, 9, MEDIUM, "lz4: 1 fast to 17 small.", ranges=((1, 17),)),
    Option(
        "compression.zstd.level", INT, 3, MEDIUM,
        "zstd: negative is faster, 22 smallest; 3 looks for repetitions as suits a sample of each topic's records.",
        ranges=((-131_072, 22),),
    ),
    Option(
        "partitioner.class", CLASS, None, MEDIUM,
        "Who picks the partition of a record that names none: builtin (by key with murmur2 as in Java, else sticky "
        "by load), round_robin, consistent_random (by key with CRC32 as in librdkafka), a callable(topic, key, "
        "key_bytes, value, value_bytes, cluster), an object with partition(...), or a name of one.",
        names=_PARTITIONERS,
    ),
    Option(
        "partitioner.ignore.keys", BOOLEAN, False, MEDIUM,
        "The built-in partitioner spreads records with a key like those without one.",
    ),
    Option(
        "partitioner.adaptive.partitioning.enable", BOOLEAN, True, LOW,
        "The built-in partitioner gives slower brokers less (KIP-794).",
    ),
    Option(
        "partitioner.availability.timeout.ms", LONG, 0, LOW,
        "A partition whose broker has not taken records for this long gets none from the built-in partitioner; "
        "0 switches this off.",
        ranges=_FROM_0,
    ),
    Option(
        "interceptor.classes", LIST, (), LOW,
        "Objects (or names of classes) with on_send, on_acknowledgement and close, called in this order.",
    ),
    Option(
        "client.id", STRING, "", MEDIUM,
        "Names this producer in brokers' logs, quotas and metrics; producer-N if not given.",
        wire=True,
    ),
    Option(
        "client.dns.lookup", STRING, "use_all_dns_ips", MEDIUM,
        "Whether bootstrap servers keep their names, or are first replaced by their canonical names; all addresses of "
        "a name are tried either way.",
        choices=("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    ),
    Option(
        "transactional.id", STRING, None, LOW,
        "Makes the producer transactional, and the same one across restarts.",
        not_empty=True, feature=Feature.TRANSACTIONS, wire=True,
    ),
    Option(
        "transaction.timeout.ms", INT, 60_000, LOW,
        "The coordinator aborts a transaction that stays open this long; brokers have an upper limit.",
        feature=Feature.TRANSACTIONS,
    ),
)  # fmt: skip

_NETWORK = (
    Option(
        "retry.backoff.ms", LONG, 100, LOW,
        "The wait before the first retry, and the least one between two requests for metadata; it doubles up to "
        "retry.backoff.max.ms.",
        ranges=_FROM_0,
    ),
    Option("retry.backoff.max.ms", LONG, 1_000, LOW, "The longest wait between retries.", ranges=_FROM_0),
    Option(
        "reconnect.backoff.ms", LONG, 50, LOW,
        "The wait before connecting again to the same broker; it doubles.",
        ranges=_FROM_0,
    ),
    Option(
        "reconnect.backoff.max.ms", LONG, 1_000, LOW,
        "The longest wait between connections. If only reconnect.backoff.ms is given, this is the same.",
        ranges=_FROM_0,
    ),
    Option(
        "metadata.max.age.ms", LONG, 300_000, LOW,
        "Metadata is refreshed this often, even if nothing seems to have changed.",
        ranges=_FROM_0,
    ),
    Option(
        "metadata.max.idle.ms", LONG, 300_000, LOW,
        "A topic that was not sent to for this long is forgotten.",
        ranges=((5_000, None),),
    ),
    Option(
        "metadata.recovery.strategy", STRING, "rebootstrap", LOW,
        "What to do when no known broker can be reached: start again from bootstrap.servers, or go on trying (none).",
        choices=("none", "rebootstrap"), any_case=True,
    ),
    Option(
        "metadata.recovery.rebootstrap.trigger.ms", LONG, 300_000, LOW,
        "How long without metadata before starting again from bootstrap.servers.",
        ranges=_FROM_0,
    ),
    Option(
        "send.buffer.bytes", INT, 131_072, MEDIUM,
        "The socket's send buffer (SO_SNDBUF); -1 leaves it to the system. Where it is not given, a system that lets "
        "the buffer grow by itself goes on doing so, as a fixed one is too small for large requests and long ways.",
        ranges=((-1, None),),
    ),
    Option(
        "receive.buffer.bytes", INT, 32_768, MEDIUM,
        "The socket's receive buffer (SO_RCVBUF); -1 leaves it to the system.",
        ranges=((-1, None),),
    ),
    Option(
        "socket.connection.setup.timeout.ms", LONG, 10_000, MEDIUM,
        "How long a first connection may take, over all addresses of the name; it doubles with each failure.",
    ),
    Option("socket.connection.setup.timeout.max.ms", LONG, 30_000, MEDIUM, "The longest time a connection may take."),
    Option(
        "connections.max.idle.ms", LONG, 540_000, MEDIUM,
        "A connection without traffic for this long is closed; negative: never.",
    ),
    Option(
        "proxy.url", PASSWORD, None, MEDIUM,
        "Proxy to the brokers: socks5:// or http:// (CONNECT), then user:password@ if it asks for them, and host:port. "
        "It looks the brokers' names up.",
        ours=True, url=True,
    ),
    Option(
        "broker.address.map", LIST, (), LOW,
        "Where brokers are reached, if not where they say: advertised:port=real:port, and *=real:port for all others; "
        "or a callable from host and port to both. Certificates and Kerberos keep the advertised name.",
        ours=True, callable_too=True, convert=parse_address_map,
    ),
    Option(
        "broker.address.family", STRING, "any", LOW, "Which addresses of brokers, or of the proxy, are used.",
        choices=("any", "v4", "v6"), any_case=True, ours=True,
    ),
)  # fmt: skip

_METRICS = (
    Option(
        "metric.reporters", LIST, (), LOW,
        "Objects that are told of metrics. Java's default, the JMX reporter, has no meaning here; read "
        "producer.metrics().",
        feature=Feature.REPORTERS,
    ),
    Option("metrics.num.samples", INT, 2, LOW, "Windows kept for rates, means and maxima.", ranges=((1, None),)),
    Option("metrics.sample.window.ms", LONG, 30_000, LOW, "Length of such a window.", ranges=_FROM_0),
    Option(
        "metrics.recording.level", STRING, "INFO", LOW,
        "The producer has no metrics beyond INFO; the other levels show the same.",
        choices=("INFO", "DEBUG", "TRACE"),
    ),
    Option(
        "describe.socket", STRING, None, LOW,
        "Folder for a UNIX socket that shows the inside of the producer to this user's `forebay top`. Where it is not "
        "given, the variable FOREBAY_DESCRIBE_SOCKET counts.",
        ours=True, not_empty=True, path=True,
    ),
    Option(
        "enable.metrics.push", BOOLEAN, True, LOW,
        "Send this producer's metrics to a cluster that asks for them (KIP-714). It needs the extra telemetry; without "
        "it, and where no broker takes metrics, nothing is asked or sent.",
    ),
)  # fmt: skip

_SERIALIZERS = (
    Option("key.serializer.encoding", STRING, None, LOW, "Encoding of StringSerializer for keys."),
    Option("value.serializer.encoding", STRING, None, LOW, "Encoding of StringSerializer for values."),
    Option(
        "serializer.encoding", STRING, "utf-8", LOW,
        "Encoding of StringSerializer where the one above is not given.",
    ),
    Option(
        "default.list.key.serde.inner", CLASS, None, MEDIUM,
        "Serializer of the elements, for ListSerializer as key.serializer.",
        names=_SERIALIZER_NAMES,
    ),
    Option(
        "default.list.value.serde.inner", CLASS, None, MEDIUM,
        "Serializer of the elements, for ListSerializer as value.serializer.",
        names=_SERIALIZER_NAMES,
    ),
)  # fmt: skip

PRODUCER_OPTIONS: tuple[Option, ...] = (*_CORE, *_NETWORK, *_METRICS, *_SERIALIZERS)
