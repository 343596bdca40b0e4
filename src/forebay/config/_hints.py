"""What to say about a key that is no option: the name it has here, the nearest one, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping

from forebay.config._option import Feature, Option
from forebay.config._secret import described, shown_name
from forebay.errors import ConfigError

_OTHER_NAMES = {
    "metadata.broker.list": "bootstrap.servers",
    "broker.list": "bootstrap.servers",
    "queue.buffering.max.ms": "linger.ms",
    "queue.buffering.max.kbytes": "buffer.memory (in bytes: times 1024)",
    "queue.buffering.max.messages": "buffer.memory (in bytes, not messages)",
    "batch.num.messages": "batch.size (in bytes, not messages)",
    "max.batch.size": "batch.size",
    "message.timeout.ms": "delivery.timeout.ms (at least linger.ms + request.timeout.ms)",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "request.required.acks": "acks (all, 0 or 1)",
    "required.acks": "acks (all, 0 or 1)",
    "compression.codec": "compression.type",
    "compression.level": "compression.gzip.level, compression.lz4.level or compression.zstd.level",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "partitioner": (
        "partitioner.class (not given for murmur2_random, which is the default's way with keys; consistent_random by "
        "that name; or a callable(topic, key, key_bytes, value, value_bytes, cluster))"
    ),
    "partitioner.cb": "partitioner.class (a callable(topic, key, key_bytes, value, value_bytes, cluster))",
    "sticky.partitioning.linger.ms": "partitioner.adaptive.partitioning.enable (by load, not by time)",
    "interceptors": "interceptor.classes",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.connection.timeout.ms": "socket.connection.setup.timeout.ms",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.options": "send.buffer.bytes and receive.buffer.bytes; TCP_NODELAY is always set",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms (at least 0)",
    "bootstrap.timeout.ms": "max.block.ms (how long a call waits for the first metadata)",
    "sasl.kerberos.name": "sasl.kerberos.service.name",
    "oauthbearer.token.refresh.cb": "sasl.oauthbearer.token.provider (a callable that gives a token)",
    "sasl.oauthbearer.grant.type": "sasl.oauthbearer.jwt.retriever.class (JwtBearerJwtRetriever for jwt-bearer)",
    "enable.sasl.oauthbearer.unsecure.jwt": "sasl.jaas.config (with unsecuredLoginStringClaim_sub)",
}
"""Names other clients have for an option, and its name here."""

_REASONS = {
    "versions are negotiated with each broker": """
        api.version api.version.request api.version.request.timeout.ms api.version.fallback.ms broker.version.fallback
        """,
    "it is always on": "socket.keepalive.enable",
    "it is always so": "socket.nagle.disable topic.metadata.refresh.sparse",
    "call producer.metrics()": "statistics.interval.ms stats.cb metrics.enabled",
    "errors arrive in futures, in on_delivery and in the log": """
        error.cb throttle.cb background.event.cb enabled.events
        """,
    "pass on_delivery to send()": "dr.cb dr.msg.cb on.delivery delivery.report.only.error produce.offset.report",
    "set the level of Python's logger 'forebay'": "log.level debug",
    "it is Python's logger 'forebay'": "logger log.cb log.queue log.thread.name log.connection.close",
    "enable.idempotence keeps the order": "enable.gapless.guarantee queuing.strategy",
    "brokers make missing topics if their auto.create.topics.enable says so": "allow.auto.create.topics",
    "all addresses of a name are tried": "broker.address.ttl",
    "the Kerberos name of a broker is the host that it advertises": "sasl.kerberos.domain.name",
    "an answer may have 100 MiB": "receive.message.max.bytes",
    "there is no asyncio in this version": "loop",
    "it is a consumer's option": """
        group.id group.instance.id group.protocol group.protocol.type group.remote.assignor client.rack
        partition.assignment.strategy session.timeout.ms heartbeat.interval.ms coordinator.query.interval.ms
        max.poll.interval.ms max.poll.records auto.commit.enable enable.auto.commit auto.commit.interval.ms
        enable.auto.offset.store auto.offset.reset offset.store.method offset.store.path offset.store.sync.interval.ms
        queued.min.messages queued.max.messages.kbytes fetch.wait.max.ms fetch.max.wait.ms fetch.queue.backoff.ms
        fetch.message.max.bytes max.partition.fetch.bytes fetch.max.bytes fetch.min.bytes fetch.error.backoff.ms
        isolation.level check.crcs enable.partition.eof consume.cb rebalance.cb offset.commit.cb
        consume.callback.max.messages share.acknowledgement.mode key.deserializer value.deserializer
        """,
    "it is librdkafka's own, and nothing here needs it": """
        builtin.features message.copy.max.bytes topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.fast.cnt
        topic.metadata.propagation.max.ms topic.blacklist socket.blocking.max.ms socket.max.fails enable.random.seed
        reconnect.backoff.jitter.ms socket.cb connect.cb closesocket.cb open.cb resolve.cb opaque default.topic.conf
        internal.termination.signal plugin.library.paths queue.buffering.backpressure.threshold msg.order.cmp
        ssl.providers
        """,
    "set it in an ssl.SSLContext of your own (ssl.context)": """
        ssl.ca ssl.certificate ssl.key ssl.ca.certificate.stores ssl.certificate.verify.cb ssl.curves.list
        ssl.sigalgs.list ssl.engine.id ssl.engine.location ssl.engine.callback.data
        """,
    "it is kafka-python's own, and nothing here needs it": "selector kafka.client",
    "an identity provider is judged by the system's authorities, or by ssl options in sasl.jaas.config": """
        https.ca.location https.ca.pem
        """,
    "use a callable (sasl.oauthbearer.token.provider), which may ask a cloud's metadata service": """
        sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.metadata.authentication.query
        """,
}
_NO_OPTION = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Options of other clients that have no counterpart here, with the reason."""

_AREAS = (
    (Feature.OAUTHBEARER, ("sasl.oauth", "enable.sasl.oauth", "oauthbearer.", "https.")),
    (Feature.GSSAPI, ("sasl.kerberos.",)),
    (Feature.TLS, ("ssl.", "enable.ssl.")),
    (Feature.SASL, ("sasl.", "enable.sasl.")),
)
_KNOWN = ("did you mean", "here it is", "write it without")
"""How hints begin that know the name."""
CUTOFF = 0.75
CUTOFF_WITHIN_AREAS = 0.9
"""How near a name must be to be meant: those of TLS and SASL are long, and alike though they mean other things."""


def unknown(given: str, value: object, table: Mapping[str, Option], features: frozenset[Feature]) -> ConfigError:
    """The error for the key ``given``; its value may be a password and is not shown, nor a key that may be a value.

    A hint that names an option says so where this version would refuse it.

    Args:
        table: every option by name.
        features: the machinery there is.
    """
    begin = re.match(r"[\w.]*", given)
    name = kafka_spelling(begin.group() if begin else "", table)
    if name != given and name in table:
        return ConfigError(f"Unknown option {described(given)}, which begins with {name}: write {name}=value")
    hint = _hint(given.replace("_", ".").lower(), table, features)
    is_known = hint.startswith(_KNOWN) and re.fullmatch(r"[a-zA-Z0-9._-]+", given) is not None
    shown = repr(given) if is_known else shown_name(given, value)
    return ConfigError(f"Unknown option {shown}: {hint}{lack(hint, table, features)}")


def kafka_spelling(name: str, table: Mapping[str, Option]) -> str:
    """A name with dots, if that is an option's."""
    dotted = name.replace("_", ".")
    return dotted if dotted in table else name


def lack(text: str, table: Mapping[str, Option], features: frozenset[Feature]) -> str:
    """To be added to a hint: what the options that are named in it need and this version has not."""
    needed = {feature: 0 for word in re.findall(r"[a-z0-9.]+", text) if word in table for feature in table[word].needs}
    missing = " and no ".join(feature.value for feature in needed if feature not in features)
    return f" (not available in this version: it has no {missing})" if missing else ""


def _hint(name: str, table: Mapping[str, Option], features: frozenset[Feature]) -> str:
    if name in table:  # only the case differs
        return f"did you mean {name!r}?"
    if name in _OTHER_NAMES:
        return f"here it is {_OTHER_NAMES[name]}"
    if name in _NO_OPTION:
        return _NO_OPTION[name]
    prefix, _, rest = name.partition(".")
    if prefix in ("kafka", "producer") and rest in table:
        return f"write it without {prefix!r}, {rest!r}"
    import difflib  # for a mistake, not for each start

    area = next((feature for feature, prefixes in _AREAS if name.startswith(prefixes)), None)
    near = difflib.get_close_matches(name, table, n=1, cutoff=CUTOFF_WITHIN_AREAS if area else CUTOFF)
    if near:
        return f"did you mean {near[0]!r}?"
    if area is not None and area not in features:
        return f"this version has no {area.value}"
    return "'forebay config' lists all options"
