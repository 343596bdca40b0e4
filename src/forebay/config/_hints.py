"""What to say about a key that is no option: the name it has here, or the nearest one."""

from __future__ import annotations

from collections.abc import Collection

from forebay.errors import ConfigError

_OTHER_NAMES = {
    "metadata.broker.list": "bootstrap.servers",
    "broker.list": "bootstrap.servers",
    "queue.buffering.max.ms": "linger.ms",
    "queue.buffering.max.kbytes": "buffer.memory (in bytes: times 1024)",
    "queue.buffering.max.messages": "buffer.memory (in bytes, not messages)",
    "batch.num.messages": "batch.size (in bytes, not messages)",
    "max.batch.size": "batch.size",
    "message.timeout.ms": "delivery.timeout.ms",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "request.required.acks": "acks",
    "required.acks": "acks",
    "compression.codec": "compression.type",
    "compression.level": "compression.gzip.level, compression.lz4.level or compression.zstd.level",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "partitioner": "partitioner.class",
    "interceptors": "interceptor.classes",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.connection.timeout.ms": "socket.connection.setup.timeout.ms",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.username": "sasl.jaas.config",
    "sasl.password": "sasl.jaas.config",
    "sasl.plain.username": "sasl.jaas.config",
    "sasl.plain.password": "sasl.jaas.config",
    "ssl.ca.location": "ssl.truststore.location with ssl.truststore.type=PEM",
    "ssl.cafile": "ssl.truststore.location with ssl.truststore.type=PEM",
    "ssl.certificate.location": "ssl.keystore.location with ssl.keystore.type=PEM",
    "ssl.certfile": "ssl.keystore.location with ssl.keystore.type=PEM",
    "ssl.key.location": "ssl.keystore.location with ssl.keystore.type=PEM",
    "ssl.keyfile": "ssl.keystore.location with ssl.keystore.type=PEM",
    "ssl.check.hostname": "ssl.endpoint.identification.algorithm (https, or empty for no check)",
}
"""Names other clients have for an option, and its name here."""

_NO_OPTION = {
    "api.version": "versions are negotiated with each broker",
    "api.version.request": "versions are negotiated with each broker",
    "broker.version.fallback": "versions are negotiated with each broker",
    "socket.keepalive.enable": "it is always on",
    "socket.nagle.disable": "it is always so",
    "statistics.interval.ms": "call producer.metrics()",
    "stats.cb": "call producer.metrics()",
    "error.cb": "errors arrive in futures, in on_delivery and in the log",
    "dr.cb": "pass on_delivery to send()",
    "dr.msg.cb": "pass on_delivery to send()",
    "on.delivery": "pass on_delivery to send()",
    "delivery.report.only.error": "pass on_delivery to send()",
    "log.level": "set the level of Python's logger 'forebay'",
    "debug": "set the level of Python's logger 'forebay'",
    "logger": "it is Python's logger 'forebay'",
    "enable.gapless.guarantee": "enable.idempotence keeps the order",
    "group.id": "it is a consumer's option",
    "auto.offset.reset": "it is a consumer's option",
    "enable.auto.commit": "it is a consumer's option",
    "key.deserializer": "it is a consumer's option",
    "value.deserializer": "it is a consumer's option",
}
"""Names other clients have for what is no option here, and why."""


def unknown(given: str, known: Collection[str]) -> ConfigError:
    """The error for the key ``given``; its value may be a password and is not shown."""
    name = given.replace("_", ".").lower()
    if name in known:  # only the case differs
        return ConfigError(f"Unknown option {given!r}: did you mean {name!r}?")
    if name in _OTHER_NAMES:
        return ConfigError(f"Unknown option {given!r}: here it is {_OTHER_NAMES[name]}")
    if name in _NO_OPTION:
        return ConfigError(f"Unknown option {given!r}: {_NO_OPTION[name]}")
    prefix, _, rest = name.partition(".")
    if prefix in ("kafka", "producer") and rest in known:
        return ConfigError(f"Unknown option {given!r}: write it without {prefix!r}, {rest!r}")
    import difflib  # for a mistake, not for each start

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else "'forebay config' lists all options"
    return ConfigError(f"Unknown option {given!r}: {hint}")
