"""librdkafka's options as those of this package: names, units and defaults, and what is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from forebay.compat._librdkafka_errors import refusal
from forebay.compat._librdkafka_partitioner import PARTITIONERS
from forebay.config import ProducerConfig
from forebay.errors import ConfigError
from forebay.producer._frontend import partition_random, system_surroundings

logger = logging.getLogger("forebay.compat")
INVALID = -186

_RENAMED = {
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.ms": "linger.ms",
    "delivery.timeout.ms": "message.timeout.ms",
    "message.send.max.retries": "retries",
    "request.required.acks": "acks",
    "compression.codec": "compression.type",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.max.bytes": "max.request.size",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.connection.timeout.ms": "socket.connection.setup.timeout.ms",
}
_HARMLESS = frozenset(
    [
        "api.version.request",
        "api.version.request.timeout.ms",
        "api.version.fallback.ms",
        "broker.version.fallback",
        "socket.keepalive.enable",
        "socket.nagle.disable",
        "socket.blocking.max.ms",
        "socket.max.fails",
        "log.connection.close",
        "log_level",
        "log.queue",
        "log.thread.name",
        "debug",
        "batch.num.messages",
        "queue.buffering.backpressure.threshold",
        "message.copy.max.bytes",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.fast.cnt",
        "topic.metadata.refresh.sparse",
        "topic.metadata.propagation.max.ms",
        "broker.address.ttl",
        "enable.random.seed",
        "reconnect.backoff.jitter.ms",
        "receive.message.max.bytes",
        "allow.auto.create.topics",
        "client.software.name",
        "client.software.version",
    ]
)
"""What is taken and has no effect: it is so here in any case, or it is about the inside of librdkafka."""
_CONSUMERS = frozenset(
    [
        "auto.commit.enable",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "check.crcs",
        "client.rack",
        "consume.callback.max.messages",
        "coordinator.query.interval.ms",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "fetch.error.backoff.ms",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.protocol.type",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "offset.store.method",
        "offset.store.path",
        "offset.store.sync.interval.ms",
        "partition.assignment.strategy",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "session.timeout.ms",
        "share.acknowledgement.mode",
    ]
)
"""Options of librdkafka's consumers: programs have one dict for a consumer and a producer."""
_REFUSED = {
    "stats_cb": "statistics are not pushed as JSON: call producer.native.metrics()",
    "throttle_cb": "throttling is in producer.native.metrics() (produce-throttle-time-avg)",
    "enable.gapless.guarantee": "enable.idempotence keeps the order, and a record that failed leaves a gap",
    "queuing.strategy": "records of a partition go out first in, first out",
    "interceptor.classes": "use forebay.KafkaProducer(interceptor_classes=...)",
    "partitioner.class": "use partitioner (librdkafka's), or forebay.KafkaProducer(partitioner_class=...)",
    "key.serializer": "use SerializingProducer, or forebay.KafkaProducer(key_serializer=...)",
    "value.serializer": "use SerializingProducer, or forebay.KafkaProducer(value_serializer=...)",
}


class LibrdkafkaOptions(NamedTuple):
    """What ``Producer`` needs of its options."""

    native: ProducerConfig
    partitioner: str
    is_sticky: bool
    draw: Callable[[], int]
    most_messages: int
    default_callback: Callable[[Any, Any], object] | None
    only_errors: bool
    error_cb: Callable[[Any], object] | None
    logger: Any
    """The user's, which gets this producer's lines, too."""


def read_options(
    config: Mapping[str, Any] | None, options: Mapping[str, Any] = MappingProxyType({})
) -> LibrdkafkaOptions:
    """Judges the whole configuration, of which keywords may be a part.

    Raises:
        TypeError: there is none.
        KafkaException: ``_INVALID_ARG``: an option is unknown, refused, or has a value that cannot be.
    """
    left = _named(_given(config, options))
    default_callback = _callback(left, "on_delivery")
    error_cb = _callback(left, "error_cb")
    given_logger = _logger(left)
    only_errors = _flag(left, "delivery.report.only.error")
    partitioner = str(left.pop("partitioner", "consistent_random"))
    if partitioner not in PARTITIONERS:
        raise refusal(
            INVALID,
            f'Invalid value for configuration property "partitioner": {partitioner} (one of {", ".join(PARTITIONERS)})',
        )
    is_sticky = partitioner in ("random", "consistent_random", "murmur2_random", "fnv1a_random")
    is_sticky = _number(left, "sticky.partitioning.linger.ms", 10, 0) > 0 and is_sticky
    if _number(left, "statistics.interval.ms", 0, 0) > 0:
        raise refusal(INVALID, f"statistics.interval.ms: {_REFUSED['stats_cb']}")
    most = _number(left, "queue.buffering.max.messages", 100_000, 0)
    left["buffer.memory"] = _number(left, "queue.buffering.max.kbytes", 1_048_576, 1) * 1024
    _set_timeouts(left)
    left.setdefault("max.request.size", 1_000_000)
    _drop_harmless(left)
    try:
        native = ProducerConfig(left)
    except ConfigError as error:
        raise refusal(INVALID, _shown(str(error))) from error
    return LibrdkafkaOptions(
        native,
        partitioner,
        is_sticky,
        partition_random(system_surroundings().random),
        most if most > 0 else 2**31 - 1,
        default_callback,
        only_errors,
        error_cb,
        given_logger,
    )


def _given(config: Mapping[str, Any] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    if config is None and not options:
        raise TypeError("expected configuration dict")
    if config is not None and not isinstance(config, Mapping):
        raise TypeError(f"expected configuration dict, got {type(config).__name__}")
    return {**(config or {}), **options}


def _named(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options by one name each, those of ``default.topic.config`` among them."""
    left: dict[str, Any] = {}
    topic = given.get("default.topic.config") or {}
    if not isinstance(topic, Mapping):
        raise TypeError(f"default.topic.config must be a dict, got {type(topic).__name__}")
    for name, value in (*given.items(), *topic.items()):  # what is said of topics goes before
        if not isinstance(name, str):
            raise TypeError(f"option names are strings, got {type(name).__name__}")
        if name == "default.topic.config" or value is None:
            continue
        if name in _REFUSED:
            raise refusal(INVALID, f"{name} is not served here: {_REFUSED[name]}")
        left[_RENAMED.get(name, name)] = value
    return left


def _set_timeouts(left: dict[str, Any]) -> None:
    """librdkafka's message.timeout.ms may be shorter than a request; here a request is then as short."""
    delivery = _number(left, "message.timeout.ms", 300_000, 0) or 2**31 - 1
    linger = min(_float(left, "linger.ms", 5.0), delivery / 2)
    socket = _number(left, "socket.timeout.ms", 60_000, 1)
    request = _number(left, "request.timeout.ms", 30_000, 1)
    left["delivery.timeout.ms"] = left["max.block.ms"] = delivery
    left["linger.ms"] = int(linger)
    left["request.timeout.ms"] = max(1, min(socket, request, delivery - int(linger)))


def _drop_harmless(left: dict[str, Any]) -> None:
    level = left.pop("compression.level", None)
    codec = left.get("compression.type", "none")
    if level is not None and str(level) != "-1" and codec in ("gzip", "lz4", "zstd"):
        left[f"compression.{codec}.level"] = level
    consumers = sorted(_CONSUMERS & left.keys())
    if consumers:
        # Names alone: their values may be anything, and one dict may serve many producers.
        logger.info("these are options of consumers, and a producer does not use them: %s", ", ".join(consumers))
        for name in consumers:
            del left[name]
    for name in sorted(_HARMLESS & left.keys()):
        logger.info("%s=%r has no effect in this client", name, left.pop(name))
    if str(left.get("enable.idempotence", "")).lower() == "false":
        left["enable.idempotence"] = False


def _callback(left: dict[str, Any], name: str) -> Any:
    function = left.pop(name, None)
    if function is not None and not callable(function):
        raise TypeError(f"{name} must be callable, got {type(function).__name__}")
    return function


def _logger(left: dict[str, Any]) -> Any:
    given = left.pop("logger", None)
    if given is not None and not callable(getattr(given, "log", None)):
        raise TypeError(f"logger must have a method log, as those of logging have, got {type(given).__name__}")
    # Who gives this package's own has its lines already.
    own = isinstance(given, logging.Logger) and f"{given.name}.".startswith("forebay.")
    return None if own else given


def _flag(left: dict[str, Any], name: str) -> bool:
    value = left.pop(name, False)
    if str(value).lower() not in ("true", "false"):
        raise refusal(INVALID, f'Expected bool value for "{name}": true or false, got {value!r}')
    return str(value).lower() == "true"


def _float(left: dict[str, Any], name: str, default: float) -> float:
    value = left.pop(name, default)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if isinstance(value, bool) or not number >= 0:
        raise refusal(INVALID, f'Configuration property "{name}" must be a number of at least 0, got {value!r}')
    return number


def _number(left: dict[str, Any], name: str, default: int, least: int) -> int:
    number = _float(left, name, default)
    if number != int(number) or not least <= number <= 2**31 - 1:
        raise refusal(INVALID, f'Configuration property "{name}" must be an integer from {least} to {2**31 - 1}')
    return int(number)


def _shown(text: str) -> str:
    # The words by which programs of librdkafka know this error.
    if text.startswith("Unknown option "):
        name, _, hint = text.removeprefix("Unknown option ").partition(": ")
        return f'No such configuration property: "{name[1:-1]}" ({hint})'
    return text
