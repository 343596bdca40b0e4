"""Hints for names that are no options: they lead to what is taken, or say that it is not there yet."""

from __future__ import annotations

import re
from typing import Any

import pytest

from forebay.config import Type
from forebay.config._aliases import ALIASES
from forebay.config._hints import _NO_OPTION, _OTHER_NAMES
from forebay.config._option import Feature
from forebay.errors import ConfigError

from .configs import EVERYTHING, OPTIONS, config, with_all

# The producer's properties of librdkafka 2.16 that have another name than the Java client's, with a usual value.
LIBRDKAFKA: dict[str, Any] = {
    "metadata.broker.list": "localhost:9092", "message.max.bytes": 1000000, "message.copy.max.bytes": 65535,
    "receive.message.max.bytes": 100000000, "max.in.flight": 5, "topic.metadata.refresh.interval.ms": 300000,
    "topic.metadata.refresh.fast.interval.ms": 100, "topic.metadata.refresh.fast.cnt": 10,
    "topic.metadata.refresh.sparse": True, "topic.metadata.propagation.max.ms": 30000, "topic.blacklist": "",
    "debug": "broker", "socket.timeout.ms": 60000, "socket.blocking.max.ms": 1000, "socket.send.buffer.bytes": 65536,
    "socket.receive.buffer.bytes": 65536, "socket.keepalive.enable": True, "socket.nagle.disable": True,
    "socket.max.fails": 1, "broker.address.ttl": 1000, "broker.address.family": "v4",
    "reconnect.backoff.jitter.ms": 0, "statistics.interval.ms": 1000, "enabled_events": 0, "error_cb": print,
    "throttle_cb": print, "stats_cb": print, "log_cb": print, "log_level": 6, "log.queue": False,
    "log.thread.name": True, "enable.random.seed": True, "log.connection.close": True, "background_event_cb": print,
    "socket_cb": print, "connect_cb": print, "closesocket_cb": print, "open_cb": print, "resolve_cb": print,
    "opaque": "x", "default_topic_conf": "x", "internal.termination.signal": 0, "api.version.request": True,
    "api.version.request.timeout.ms": 10000, "api.version.fallback.ms": 0, "broker.version.fallback": "0.10.0",
    "allow.auto.create.topics": True, "ssl.curves.list": "P-256", "ssl.sigalgs.list": "ECDSA+SHA256",
    "ssl.key.location": "/key.pem", "ssl.key.pem": "PEM", "ssl_key": "PEM", "ssl.certificate.location": "/cert.pem",
    "ssl.certificate.pem": "PEM", "ssl_certificate": "PEM", "ssl.ca.location": "/ca.pem", "ssl.ca.pem": "PEM",
    "https.ca.location": "/ca.pem", "https.ca.pem": "PEM", "ssl_ca": "PEM", "ssl.ca.certificate.stores": "Root",
    "ssl.crl.location": "/crl.pem", "ssl.providers": "default", "ssl.engine.location": "/engine",
    "ssl.engine.id": "dynamic", "ssl_engine_callback_data": "x", "enable.ssl.certificate.verification": True,
    "ssl.certificate.verify_cb": print, "sasl.mechanisms": "PLAIN", "sasl.kerberos.principal": "kafkaclient",
    "sasl.kerberos.keytab": "/keytab", "sasl.username": "user", "sasl.password": "word",
    "sasl.oauthbearer.config": "x", "enable.sasl.oauthbearer.unsecure.jwt": False,
    "oauthbearer_token_refresh_cb": print, "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "id",
    "sasl.oauthbearer.client.secret": "word", "sasl.oauthbearer.client.credentials.client.id": "id",
    "sasl.oauthbearer.client.credentials.client.secret": "word", "sasl.oauthbearer.scope": "scope",
    "sasl.oauthbearer.extensions": "a=b", "sasl.oauthbearer.grant.type": "client_credentials",
    "sasl.oauthbearer.assertion.algorithm": "RS256", "sasl.oauthbearer.assertion.file": "/jwt",
    "sasl.oauthbearer.assertion.claim.aud": "aud", "sasl.oauthbearer.metadata.authentication.type": "none",
    "plugin.library.paths": "", "interceptors": "x", "client.rack": "r1", "enable.gapless.guarantee": False,
    "queue.buffering.max.messages": 100000, "queue.buffering.max.kbytes": 1048576, "queue.buffering.max.ms": 5,
    "message.send.max.retries": 2147483647, "queue.buffering.backpressure.threshold": 1, "compression.codec": "lz4",
    "batch.num.messages": 10000, "delivery.report.only.error": False, "dr_cb": print, "dr_msg_cb": print,
    "sticky.partitioning.linger.ms": 10, "request.required.acks": -1, "message.timeout.ms": 300000,
    "queuing.strategy": "fifo", "produce.offset.report": True, "partitioner": "murmur2_random", "partitioner_cb": print,
    "msg_order_cmp": print, "compression.level": -1, "on_delivery": print, "logger": "x",
}  # fmt: skip
# What kafka-python's and aiokafka's producers take and the Java client does not.
PYTHONS: dict[str, Any] = {
    "partitioner": print, "allow_auto_create_topics": True, "receive_message_max_bytes": 100000000,
    "socket_options": "x", "ssl_context": "x", "ssl_check_hostname": True, "ssl_cafile": "/ca", "ssl_certfile": "/c",
    "ssl_keyfile": "/key", "ssl_crlfile": "/crl", "ssl_password": "word", "ssl_ciphers": "x", "api_version": "auto",
    "bootstrap_timeout_ms": 30000, "metrics_enabled": True, "selector": "x", "sasl_plain_username": "user",
    "sasl_plain_password": "word", "sasl_kerberos_name": "kafka", "sasl_kerberos_domain_name": "kafka",
    "sasl_oauth_token_provider": "x", "proxy_url": "http://p:1", "socks5_proxy": "socks5://p:1", "kafka_client": "x",
    "loop": "x", "max_batch_size": 16384,
}  # fmt: skip
CONSUMERS = (
    "group.id", "group.instance.id", "group.protocol", "partition.assignment.strategy", "session.timeout.ms",
    "heartbeat.interval.ms", "max.poll.interval.ms", "max.poll.records", "enable.auto.commit",
    "auto.commit.interval.ms", "auto.offset.reset", "isolation.level", "fetch.wait.max.ms", "fetch.max.bytes",
    "fetch.min.bytes", "max.partition.fetch.bytes", "check.crcs", "enable.partition.eof", "enable.auto.offset.store",
    "queued.min.messages", "key.deserializer", "value.deserializer",
)  # fmt: skip
# A value that an owner of such a setting would give; of other options the default, or what PLAUSIBLE_BY_TYPE has.
PLAUSIBLE: dict[str, Any] = {
    "proxy.url": "http://proxy.example:8080", "broker.address.map": "advertised:1=real:2",
    "bootstrap.servers": "localhost:9092", "acks": "all", "compression.type": "lz4", "retries": 2147483647,
    "max.in.flight.requests.per.connection": 5, "delivery.timeout.ms": 300000, "request.timeout.ms": 60000,
    "security.protocol": "SSL", "sasl.mechanism": "PLAIN", "ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM",
    "partitioner.class": "consistent_random", "interceptor.classes": [], "transactional.id": "id",
    "enable.metrics.push": True, "enable.idempotence": True, "ssl.endpoint.identification.algorithm": "",
    "key.serializer": bytes, "value.serializer": bytes, "default.list.key.serde.inner": bytes,
    "default.list.value.serde.inner": bytes, "metadata.max.idle.ms": 300000,
    "sasl.login.refresh.window.factor": 0.9, "sasl.login.refresh.window.jitter": 0.1,
    "sasl.login.refresh.min.period.seconds": 70, "sasl.login.refresh.buffer.seconds": 310,
    "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.assertion.algorithm": "ES256",
    **{
        f"config.providers.{name}.class": f"org.apache.kafka.common.config.provider.{kind}ConfigProvider"
        for name, kind in (("env", "EnvVar"), ("file", "File"), ("directory", "Directory"))
    },
}  # fmt: skip
PLAUSIBLE_BY_TYPE: dict[Type, Any] = {
    Type.STRING: "x", Type.PASSWORD: "word", Type.LIST: "a,b", Type.CLASS: bytes, Type.INT: 5, Type.LONG: 5,
    Type.DOUBLE: 0.5, Type.BOOLEAN: True,
}  # fmt: skip


def plausible(name: str) -> Any:
    option = OPTIONS[name]
    if name in PLAUSIBLE:
        return PLAUSIBLE[name]
    if option.default is None or option.feature is not None:
        return PLAUSIBLE_BY_TYPE[option.type]
    return option.default


def refusal(values: dict[str, Any]) -> str:
    try:
        config(values)
    except ConfigError as error:
        return error.message
    return ""


def hint_for(name: str, value: Any = "x") -> str:
    said = refusal({name: value})
    start = f"Unknown option {name!r}: "
    assert said.startswith(start), f"{name} is taken, or refused with {said!r}"
    return said.removeprefix(start)


def named_in(hint: str) -> set[str]:
    return {word for word in re.findall(r"[a-z0-9.]+", hint) if word in OPTIONS}


def misleading(hint: str) -> list[str]:
    """The options that the hint names although they are refused, and does not say so."""
    missing = ("not available", "no meaning outside")
    refused = [name for name in named_in(hint) if any(why in refusal({name: plausible(name)}) for why in missing)]
    lack = "not available in this version: it has no " in hint
    return refused if not lack else ["nothing is refused"] * (not refused)


def test_a_plausible_value_is_taken_or_its_machinery_is_missing() -> None:
    """What ``misleading`` takes for granted."""
    wrong = {name: refusal({name: plausible(name)}) for name in OPTIONS if name != "bootstrap.servers"}
    missing = ("is not available in this version", "has no meaning outside of a Java virtual machine")
    assert {name: said for name, said in wrong.items() if said and not any(why in said for why in missing)} == {}


def is_taken(name: str) -> bool:
    """Whether it is an option here, or another name of one."""
    dotted = name.replace("_", ".")
    return dotted in OPTIONS or dotted in ALIASES


@pytest.mark.parametrize("name", sorted(name for name in {*LIBRDKAFKA, *PYTHONS} if is_taken(name)))
def test_another_clients_name_that_is_taken(name: str) -> None:
    value = LIBRDKAFKA.get(name, PYTHONS.get(name, "x"))
    assert "Unknown option" not in refusal({name: value})


@pytest.mark.parametrize("name", sorted(name for name in {*_OTHER_NAMES, *LIBRDKAFKA, *PYTHONS} if not is_taken(name)))
def test_a_hint_for_another_clients_name_never_leads_to_a_refusal(name: str) -> None:
    hint = hint_for(name, LIBRDKAFKA.get(name, PYTHONS.get(name, "x")))
    assert misleading(hint) == []
    # Nobody is sent to search the list for what another client has: it is known what there is in its place.
    assert "lists all options" not in hint and "did you mean" not in hint, hint


@pytest.mark.parametrize("name", sorted(_OTHER_NAMES))
def test_a_hint_for_another_clients_name_names_an_option(name: str) -> None:
    assert named_in(hint_for(name)) != set()


@pytest.mark.parametrize("name", sorted({*_NO_OPTION, *CONSUMERS}))
def test_what_is_no_option_here_has_a_reason(name: str) -> None:
    hint = hint_for(name)
    assert "lists all options" not in hint and "did you mean" not in hint
    assert misleading(hint) == []


def test_consumers_options_are_called_so() -> None:
    assert {hint_for(name) for name in CONSUMERS} == {"it is a consumer's option"}


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_a_hint_for_a_misspelt_name_never_leads_to_a_refusal(name: str) -> None:
    middle = len(name) // 2
    spellings = (name[:-1], name[:middle] + name[middle + 1 :], name + name[-1], name.title(), f"kafka.{name}")
    for spelling in spellings:
        if spelling.replace("_", ".") in OPTIONS:
            continue
        hint = hint_for(spelling)
        assert named_in(hint), (spelling, hint)
        assert misleading(hint) == [], spelling


def test_what_is_missing_is_said_with_the_hint() -> None:
    assert hint_for("metric.reporterss").endswith("? (not available in this version: it has no metric reporters)")


def test_once_it_is_there_nothing_of_it_is_said() -> None:
    for name in ("sasl.kerberos.servicename",):
        with pytest.raises(ConfigError) as caught:
            with_all({name: "x"})
        assert "not available" not in caught.value.message and "has no" not in caught.value.message
    assert Feature.TLS in EVERYTHING


@pytest.mark.parametrize(("acks", "taken"), [("-1", True), (1, True), (2, False)])
def test_values_of_the_same_name_in_other_clients(acks: Any, taken: bool) -> None:
    assert bool(refusal({"acks": acks})) is not taken
