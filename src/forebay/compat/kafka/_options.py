"""kafka-python's options as those of this package: names, units and defaults, and what is refused."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from forebay.compat.kafka._user_functions import BoundSerializer, Chooser, chooser_of
from forebay.compat.kafka.errors import KafkaConfigurationError, translated
from forebay.compat.kafka.partitioner import DefaultPartitioner, StickyPartitioner
from forebay.config import ProducerConfig
from forebay.config._secret import shown_name
from forebay.errors import ConfigError

logger = logging.getLogger("forebay.compat")

NODELAY = [(6, 1, 1)]
"""IPPROTO_TCP, TCP_NODELAY and 1; these numbers are the same everywhere."""
DEFAULTS: Mapping[str, Any] = {
    "bootstrap_servers": "localhost",
    "client_id": None,
    "key_serializer": None,
    "value_serializer": None,
    "enable_idempotence": True,
    "transactional_id": None,
    "transaction_timeout_ms": 60_000,
    "delivery_timeout_ms": 120_000,
    "acks": -1,
    "compression_type": None,
    "retries": float("inf"),
    "batch_size": 16_384,
    "linger_ms": 0,
    "partitioner": None,
    "connections_max_idle_ms": 540_000,
    "max_block_ms": 60_000,
    "max_request_size": 1_048_576,
    "allow_auto_create_topics": True,
    "metadata_max_age_ms": 300_000,
    "client_dns_lookup": "use_all_dns_ips",
    "retry_backoff_ms": 100,
    "request_timeout_ms": 30_000,
    "receive_message_max_bytes": 100_000_000,
    "receive_buffer_bytes": None,
    "send_buffer_bytes": None,
    "socket_options": NODELAY,
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 30_000,
    "max_in_flight_requests_per_connection": 5,
    "security_protocol": "PLAINTEXT",
    "ssl_context": None,
    "ssl_check_hostname": True,
    "ssl_cafile": None,
    "ssl_certfile": None,
    "ssl_keyfile": None,
    "ssl_crlfile": None,
    "ssl_password": None,
    "ssl_ciphers": None,
    "api_version": None,
    "bootstrap_timeout_ms": 30_000,
    "metric_reporters": [],
    "metrics_enabled": True,
    "metrics_num_samples": 2,
    "metrics_sample_window_ms": 30_000,
    "selector": None,
    "sasl_mechanism": None,
    "sasl_plain_username": None,
    "sasl_plain_password": None,
    "sasl_kerberos_name": None,
    "sasl_kerberos_service_name": "kafka",
    "sasl_kerberos_domain_name": None,
    "sasl_oauth_token_provider": None,
    "proxy_url": None,
    "socks5_proxy": None,
    "kafka_client": None,
}
"""kafka-python's options and defaults (3.0)."""
_BEFORE_3_0 = {"buffer_memory": 33_554_432, "api_version_auto_timeout_ms": None}
_BEFORE_3_0 |= {"sock_chunk_bytes": None, "sock_chunk_buffer_count": None}
"""Options that kafka-python had before 3.0, and their defaults here."""

_OURS = frozenset(["key_serializer", "value_serializer", "partitioner", "bootstrap_timeout_ms", "metrics_enabled"])
"""What this module and KafkaProducer see to themselves."""
_HARMLESS = frozenset(
    [
        "api_version",
        "api_version_auto_timeout_ms",
        "receive_message_max_bytes",
        "selector",
        "sock_chunk_buffer_count",
        "sock_chunk_bytes",
    ]
)
"""What is taken and has no effect: brokers are asked for their versions, and the rest is the inside of kafka-python."""
_REFUSED = {
    "kafka_client": "the network is this package's own",
    "metric_reporters": "nothing is pushed: call metrics(), or forebay.KafkaProducer.metrics() for names with tags",
    "sasl_kerberos_name": "give sasl_kerberos_service_name, and the host's name is that of the broker",
    "sasl_kerberos_domain_name": "a broker's Kerberos name is the host that it advertises; broker.address.map of "
    "forebay.KafkaProducer leads to brokers at other addresses",
    "socket_options": "TCP_NODELAY is set in any case; for buffers give send_buffer_bytes and receive_buffer_bytes",
}
"""What has no meaning here, unless it has kafka-python's default."""
_NO_CREATION = (
    "allow_auto_create_topics=False is not served: metadata is asked for as by the Java client's producer, and the "
    "broker's auto.create.topics.enable decides"
)


class KafkaPythonOptions(NamedTuple):
    """What ``KafkaProducer`` needs of its options."""

    native: ProducerConfig
    shown: dict[str, Any]
    """``KafkaProducer.config``: every option by kafka-python's name."""
    key: BoundSerializer
    value: BoundSerializer
    choose: Chooser | None
    is_sticky: bool


def read_options(given: Mapping[str, Any]) -> KafkaPythonOptions:
    """Judges the whole configuration.

    Raises:
        KafkaConfigurationError: an option is unknown, refused, or has a value that cannot be; a ValueError, too.
    """
    unknown = sorted(given.keys() - DEFAULTS.keys() - _BEFORE_3_0.keys())
    if unknown:
        names = (shown_name(name, given[name]).strip("'") for name in unknown)
        raise KafkaConfigurationError(f"Unrecognized configs: {', '.join(names)}")
    shown = {**DEFAULTS, "buffer_memory": _BEFORE_3_0["buffer_memory"], **given}
    for name, why in _REFUSED.items():
        if given.get(name) not in (None, [], DEFAULTS[name]):
            raise KafkaConfigurationError(f"{name} is not served here: {why}")
    for name, usual in DEFAULTS.items():
        if type(usual) in (int, float) and name != "acks" and not _is_number(shown[name]):
            raise KafkaConfigurationError(f"{name} must be a number, got {shown[name]!r}")
    if not shown["allow_auto_create_topics"]:
        raise KafkaConfigurationError(_NO_CREATION)
    for name in sorted(_HARMLESS & given.keys()):
        logger.info("%s=%r has no effect in this client", name, given[name])
    if shown["acks"] in ("all", "-1"):
        shown["acks"] = -1
    _settle_idempotence(shown, given)
    partitioner = DefaultPartitioner() if shown["partitioner"] is None else shown["partitioner"]
    shown["partitioner"] = partitioner
    key, value = (BoundSerializer(name, shown[name]) for name in ("key_serializer", "value_serializer"))
    return KafkaPythonOptions(
        _native(shown), shown, key, value, chooser_of(partitioner), type(partitioner) is StickyPartitioner
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


_IDEMPOTENT = (0, 11)
"""The first broker that knows producers' ids."""


def _settle_idempotence(shown: dict[str, Any], given: Mapping[str, Any]) -> None:
    """KIP-679 as kafka-python has it: other options switch the default off, and clash with what was asked for."""
    transactional = shown["transactional_id"] is not None
    if transactional and not shown["enable_idempotence"]:
        raise KafkaConfigurationError("Cannot set transactional_id without enable_idempotence.")
    if not shown["enable_idempotence"]:
        return
    in_flight = "max_in_flight_requests_per_connection"
    clashing = {"acks": shown["acks"] != -1, "retries": shown["retries"] == 0, in_flight: shown[in_flight] > 5}
    version = shown["api_version"]
    clashing["api_version"] = isinstance(version, tuple) and version < _IDEMPOTENT
    listed = ", ".join(f"{name}={shown[name]!r}" for name, clashes in clashing.items() if clashes)
    if not listed:
        return
    if transactional or "enable_idempotence" in given:
        raise KafkaConfigurationError(f"enable_idempotence=True is incompatible with user-provided {listed}")
    logger.warning("Idempotence is switched off, because of %s", listed)
    shown["enable_idempotence"] = False


def _native(shown: Mapping[str, Any]) -> ProducerConfig:
    left = {
        name: value
        for name, value in shown.items()
        if value is not None and name not in _OURS | _HARMLESS | _REFUSED.keys() | {"allow_auto_create_topics"}
    }
    left["bootstrap_servers"] = _servers(shown["bootstrap_servers"])
    left["compression_type"] = shown["compression_type"] or "none"
    left["retries"] = min(shown["retries"], 2**31 - 1)
    for name in ("receive_buffer_bytes", "send_buffer_bytes"):
        left.setdefault(name, -1)
    if shown["sasl_mechanism"] != "GSSAPI":
        left.pop("sasl_kerberos_service_name")
    if shown["ssl_context"] is not None:
        left = {name: value for name, value in left.items() if not name.startswith("ssl_") or name == "ssl_context"}
    elif shown["security_protocol"] not in ("SSL", "SASL_SSL"):
        left.pop("ssl_check_hostname")
    for name, value in left.items():
        if isinstance(value, float) and not math.isinf(value):
            left[name] = math.ceil(value)  # whole ms
    _fit_timeouts(left)
    try:
        return ProducerConfig(left)
    except ConfigError as error:
        raise translated(error) from error


def _fit_timeouts(left: dict[str, Any]) -> None:
    """kafka-python's delivery_timeout_ms may be shorter than a request; here a request is then as short."""
    delivery = left["delivery_timeout_ms"] = min(left["delivery_timeout_ms"], 2**31 - 1)
    left["linger_ms"] = min(left["linger_ms"], delivery // 2)
    left["request_timeout_ms"] = max(1, min(left["request_timeout_ms"], delivery - left["linger_ms"]))
    left["retry_backoff_max_ms"] = max(1_000, left["retry_backoff_ms"])


def _servers(given: Any) -> list[str]:
    """``host[:port]`` in a list or behind commas; the port is 9092 where none is given."""
    if not isinstance(given, (str, list, tuple)):
        raise KafkaConfigurationError(f"bootstrap_servers must be a str or a list of str, got {given!r}")
    entries = given.split(",") if isinstance(given, str) else given
    return [_with_port(entry.strip()) if isinstance(entry, str) else entry for entry in entries]


def _with_port(entry: str) -> str:
    host = entry.rpartition("://")[2]  # a listener's protocol, which kafka-python drops, too
    port = host.rpartition("]")[2]
    if port.count(":") > 1:
        return f"[{host}]:9092"  # an IPv6 address without brackets has no port
    return host if ":" in port or not host else f"{host}:9092"
