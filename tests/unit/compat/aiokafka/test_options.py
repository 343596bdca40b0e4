"""aiokafka's options as those of this package, and what is refused."""

from __future__ import annotations

import asyncio
import inspect
import ssl
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer as Original

from forebay.compat.aiokafka import AIOKafkaProducer
from forebay.compat.aiokafka._options import MISSING, AiokafkaOptions, OneOfAll, TokensOfLoop, read_options
from forebay.compat.aiokafka.partitioner import DefaultPartitioner
from tests.fakes.world import World

DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(AIOKafkaProducer.__init__).parameters.items()
    if name != "self"
}


def read(**given: Any) -> AiokafkaOptions:
    loop: Any = None  # asked only when a token is
    return read_options({**DEFAULTS, **given}, loop)


def test_names_and_defaults_are_the_originals() -> None:
    theirs = dict(inspect.signature(Original.__init__).parameters)
    theirs.pop("self")
    assert list(DEFAULTS) == list(theirs)
    own = {"acks", "partitioner"}  # objects of either module
    assert {name: value for name, value in DEFAULTS.items() if name not in own} == {
        name: parameter.default for name, parameter in theirs.items() if name not in own
    }
    assert DEFAULTS["acks"] is MISSING and type(DEFAULTS["partitioner"]) is DefaultPartitioner


def test_without_idempotence_one_request_keeps_the_order() -> None:
    native = read(linger_ms=2.5, request_timeout_ms=1000, retry_backoff_ms=7).native
    assert (native["acks"], native["enable.idempotence"]) == (1, False)
    assert native["max.in.flight.requests.per.connection"] == 1
    assert (native["linger.ms"], native["request.timeout.ms"], native["max.block.ms"]) == (3, 1000, 1000)
    assert native["delivery.timeout.ms"] == 1003
    assert (native["retry.backoff.ms"], native["retry.backoff.max.ms"]) == (7, 7)


def test_idempotence_and_transactions_go_on_for_ever() -> None:
    for given in ({"enable_idempotence": True}, {"transactional_id": "id", "transaction_timeout_ms": 5}):
        native = read(**given).native
        assert (native["acks"], native["delivery.timeout.ms"]) == (-1, 2**31 - 1)
        assert native["max.in.flight.requests.per.connection"] == 5
    assert read(transactional_id="id").is_transactional and native["transaction.timeout.ms"] == 5
    assert not read().is_transactional


def test_memory_is_enough_for_what_may_be_sent() -> None:
    assert read().native["buffer.memory"] == 32 << 20
    assert read(max_request_size=50_000_000).native["buffer.memory"] == 100_000_000
    assert read(max_batch_size=60_000_000).native["buffer.memory"] == 120_000_000


@pytest.mark.parametrize(("given", "acks"), [(0, 0), (1, 1), (-1, -1), ("all", -1)])
def test_acks(given: Any, acks: int) -> None:
    options = read(acks=given)
    assert options.native["acks"] == acks and options.has_answers is (acks != 0)


@pytest.mark.parametrize(
    ("given", "servers"),
    [
        ("localhost", ["localhost:9092"]),
        ("a:1, b", ["a:1", "b:9092"]),
        (["a", "b:2"], ["a:9092", "b:2"]),
        ("[::1]:5", ["[::1]:5"]),
        ("[::1]", ["[::1]:9092"]),
        ("::1", ["[::1]:9092"]),
    ],
)
def test_servers(given: Any, servers: list[str]) -> None:
    assert list(read(bootstrap_servers=given).native["bootstrap.servers"]) == servers


def test_tls_and_sasl() -> None:
    context = ssl.create_default_context()
    plain = {"sasl_plain_username": "me", "sasl_plain_password": "secret"}
    native = read(security_protocol="SASL_SSL", ssl_context=context, **plain).native
    assert native["ssl.context"] is context and native["sasl.mechanism"] == "PLAIN"
    assert native["sasl.username"] == "me" and "secret" not in repr(native)
    kerberos = read(security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI").native
    assert kerberos["sasl.kerberos.service.name"] == "kafka"
    assert read(connections_max_idle_ms=None).native["connections.max.idle.ms"] == -1


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"acks": 122}, "Invalid ACKS parameter: 122 is none of 0, 1, -1 and 'all'"),
        ({"acks": 1, "enable_idempotence": True}, "acks=1 not supported if enable_idempotence=True"),
        ({"acks": True}, "Invalid ACKS"),
        ({"compression_type": "none"}, "Invalid compression type! 'none'"),
        ({"security_protocol": "TLS"}, "`security_protocol` should be SSL or PLAINTEXT"),
        ({"security_protocol": "SSL"}, "`ssl_context` is mandatory if security_protocol=='SSL'"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "sasl_plain_username and sasl_plain_password required for PLAIN"),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "MD5"}, "sasl_mechanism must be one of PLAIN"),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI", "sasl_kerberos_domain_name": "x"},
            r"sasl_kerberos_domain_name is not served here.*broker_address_map",
        ),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}, "AbstractTokenProvider"),
        ({"partitioner": 5}, "partitioner must be callable, got int"),
        ({"max_batch_size": -1}, "batch.size"),
        ({"bootstrap_servers": "host:none"}, "bootstrap.servers"),
    ],
)
def test_what_cannot_be(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        read(**given)


def test_a_partitioner_gets_the_key_and_two_lists() -> None:
    asked: list[Any] = []

    def choose(key: bytes | None, every: Any, available: Any) -> int:
        asked.append((key, every, available))
        return 1

    world = World(partitioner_class=OneOfAll(choose))
    world.producer.send("test", b"v", b"k")
    world.settle()
    assert asked == [(b"k", [0, 1], [0, 1])] and world.values("test", 1) == [b"v"]
    assert isinstance(read(partitioner=choose).native["partitioner.class"], OneOfAll)
    assert read().native["partitioner.class"] is None


class Provider:
    async def token(self) -> str:
        return f"token of {asyncio.get_running_loop()!r}"

    def extensions(self) -> dict[str, str]:
        return {"a": "b"}


class Short:
    async def token(self) -> str:
        return "token"


def test_tokens_are_awaited_on_the_loop() -> None:
    async def main() -> tuple[str, str]:
        loop = asyncio.get_running_loop()
        tokens = TokensOfLoop(Provider(), loop)
        assert tokens.extensions() == {"a": "b"} and TokensOfLoop(Short(), loop).extensions() == {}
        return await asyncio.to_thread(tokens.token), f"token of {loop!r}"

    found, expected = asyncio.run(main())
    assert found == expected
    oauth = read(security_protocol="SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=Provider())
    assert isinstance(oauth.native["sasl.oauthbearer.token.provider"], TokensOfLoop)
