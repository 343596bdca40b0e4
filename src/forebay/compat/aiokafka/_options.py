"""aiokafka's options as those of this package: names, defaults, and what is refused."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from forebay.compat.aiokafka.partitioner import DefaultPartitioner
from forebay.config import ProducerConfig
from forebay.errors import ConfigError

MISSING: Any = object()
"""``acks`` that was not given."""
FOR_EVER_MS = 2**31 - 1
LEAST_MEMORY = 32 << 20
SASL = ("SASL_PLAINTEXT", "SASL_SSL")
TLS = ("SSL", "SASL_SSL")
MECHANISMS = ("PLAIN", "GSSAPI", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CODECS = ("gzip", "snappy", "lz4", "zstd", None)


class AiokafkaOptions(NamedTuple):
    """What ``AIOKafkaProducer`` needs of its options."""

    native: ProducerConfig
    has_answers: bool
    """False for acks=0."""
    is_transactional: bool
    partitioner: Callable[[bytes | None, list[int], list[int]], int]


def read_options(given: Mapping[str, Any], loop: asyncio.AbstractEventLoop) -> AiokafkaOptions:
    """Judges the constructor's arguments.

    Args:
        given: all of them, by name.
        loop: that of the producer, on which tokens are fetched.

    Raises:
        ValueError: a value that cannot be, or one whose meaning cannot be had here.
    """
    is_transactional = given["transactional_id"] is not None
    is_idempotent = bool(given["enable_idempotence"] or is_transactional)
    acks = _acks(given["acks"], is_idempotent)
    if given["compression_type"] not in CODECS:
        names = ", ".join(repr(codec) for codec in CODECS)
        raise ValueError(f"Invalid compression type! {given['compression_type']!r} is none of {names}")
    timeout = max(1, math.ceil(given["request_timeout_ms"]))
    linger = max(0, math.ceil(given["linger_ms"]))
    idle = given["connections_max_idle_ms"]
    values = {
        "bootstrap.servers": _servers(given["bootstrap_servers"]),
        "client.id": given["client_id"],
        "acks": str(acks),
        "enable.idempotence": is_idempotent,
        # One request at a time keeps the order where there are no sequence numbers.
        "max.in.flight.requests.per.connection": 5 if is_idempotent else 1,
        "request.timeout.ms": timeout,
        "max.block.ms": timeout,
        "delivery.timeout.ms": FOR_EVER_MS if is_idempotent else min(timeout + linger, FOR_EVER_MS),
        "linger.ms": linger,
        "batch.size": given["max_batch_size"],
        "max.request.size": given["max_request_size"],
        # The original has no limit: what it takes must fit in.
        "buffer.memory": max(LEAST_MEMORY, 2 * given["max_request_size"], 2 * given["max_batch_size"]),
        "compression.type": given["compression_type"] or "none",
        "metadata.max.age.ms": given["metadata_max_age_ms"],
        "retry.backoff.ms": given["retry_backoff_ms"],
        "retry.backoff.max.ms": given["retry_backoff_ms"],
        "connections.max.idle.ms": -1 if idle is None else idle,
        **_partitioner(given["partitioner"]),
        **_security(given, loop),
    }
    if is_transactional:
        values["transactional.id"] = given["transactional_id"]
        values["transaction.timeout.ms"] = given["transaction_timeout_ms"]
    try:
        return AiokafkaOptions(ProducerConfig(values), acks != 0, is_transactional, given["partitioner"])
    except ConfigError as error:
        raise ValueError(str(error)) from error


def _acks(given: Any, is_idempotent: bool) -> int:
    if given is MISSING:
        return -1 if is_idempotent else 1
    if isinstance(given, bool) or given not in (0, 1, -1, "all"):
        raise ValueError(f"Invalid ACKS parameter: {given!r} is none of 0, 1, -1 and 'all'")
    if is_idempotent and given not in ("all", -1):
        raise ValueError(f"acks={given} not supported if enable_idempotence=True: it needs acks='all'")
    return -1 if given == "all" else int(given)


def _servers(given: Any) -> list[str]:
    servers = given.split(",") if isinstance(given, str) else list(given)
    return [_with_port(server.strip()) for server in servers]


def _with_port(server: str) -> str:
    if "]" in server:
        return server if "]:" in server else f"{server}:9092"
    colons = server.count(":")
    return f"{server}:9092" if colons == 0 else server if colons == 1 else f"[{server}]:9092"


def _partitioner(given: Any) -> dict[str, Any]:
    if type(given) is DefaultPartitioner:
        return {}
    if not callable(given):
        raise ValueError(f"partitioner must be callable, got {type(given).__name__}")
    return {"partitioner.class": OneOfAll(given)}


class OneOfAll:
    """aiokafka's kind of partitioner behind the native interface."""

    def __init__(self, choose: Callable[[bytes | None, list[int], list[int]], int]) -> None:
        self._choose = choose

    def partition(
        self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None, cluster: Any
    ) -> int:
        """See ``partitioner.class``."""
        every = list(range(cluster.partition_count(topic)))
        return self._choose(key_bytes, every, list(cluster.available_partitions(topic)))


def _security(given: Mapping[str, Any], loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
    protocol = given["security_protocol"]
    if protocol not in ("PLAINTEXT", "SSL", *SASL):
        raise ValueError(f"`security_protocol` should be SSL or PLAINTEXT, or one of {', '.join(SASL)}; got {protocol}")
    values: dict[str, Any] = {"security.protocol": protocol}
    if protocol in TLS:
        if given["ssl_context"] is None:
            raise ValueError("`ssl_context` is mandatory if security_protocol=='SSL' or 'SASL_SSL'")
        values["ssl.context"] = given["ssl_context"]
    return {**values, **_login(given, loop)} if protocol in SASL else values


def _login(given: Mapping[str, Any], loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
    mechanism = given["sasl_mechanism"]
    if mechanism not in MECHANISMS:
        raise ValueError(f"sasl_mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism}")
    values: dict[str, Any] = {"sasl.mechanism": mechanism}
    if mechanism == "GSSAPI":
        if given["sasl_kerberos_domain_name"] is not None:
            raise ValueError(
                "sasl_kerberos_domain_name is not served here: Kerberos names the broker as bootstrap_servers and its "
                "metadata do; give it the right name with forebay.KafkaProducer(broker_address_map=...)"
            )
        values["sasl.kerberos.service.name"] = given["sasl_kerberos_service_name"]
    elif mechanism == "OAUTHBEARER":
        values["sasl.oauthbearer.token.provider"] = TokensOfLoop(given["sasl_oauth_token_provider"], loop)
    else:
        user, password = given["sasl_plain_username"], given["sasl_plain_password"]
        if user is None or password is None:
            raise ValueError(f"sasl_plain_username and sasl_plain_password required for {mechanism} sasl")
        values["sasl.username"], values["sasl.password"] = user, password
    return values


class TokensOfLoop:
    """aiokafka's kind of token provider, whose ``token`` is a coroutine, for the thread that logs in.

    Raises:
        ValueError: the provider has no ``token``.
    """

    def __init__(self, provider: Any, loop: asyncio.AbstractEventLoop) -> None:
        if not callable(getattr(provider, "token", None)):
            raise ValueError(
                "sasl_oauth_token_provider needs to be an aiokafka.abc.AbstractTokenProvider, with `async def token`; "
                f"got {type(provider).__name__}"
            )
        self._provider = provider
        self._loop = loop

    def token(self) -> Any:
        """Waits for a token; on another thread than the loop's."""
        return asyncio.run_coroutine_threadsafe(self._provider.token(), self._loop).result()

    def extensions(self) -> dict[str, str]:
        """What the provider sends along, if it has that."""
        more = getattr(self._provider, "extensions", None)
        return more() if callable(more) else {}
