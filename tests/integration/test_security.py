"""TLS and SASL with a real Kafka: every way in, what is refused and how it is said, and logins that are repeated."""

from __future__ import annotations

import logging
import ssl
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme

from forebay import KafkaProducer
from forebay.errors import (
    ConfigError,
    KafkaError,
    SaslAuthenticationError,
    SslAuthenticationError,
)
from tests.integration.programs import run_under_locks
from tests.support.fixtures import ReadBackFactory, TopicFactory
from tests.support.pace import HANG_S, within, within_ms
from tests.support.secure import MECHANISMS, PASSWORD, USER, Secure
from tools.certificates import identity

TRIES = 4
RECORDS = 2000
JAAS = 'org.apache.kafka.common.security.{module} required username="{user}" password="{password}";'


def login(mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    return {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": password}


def send_all(options: Mapping[str, Any], topic: str) -> list[bytes]:
    values = [b"%d" % number for number in range(RECORDS)]
    with KafkaProducer(options) as producer:
        futures = [producer.send(topic, value) for value in values]
        assert {future.result(HANG_S).topic for future in futures} == {topic}
    return values


def send_while_sessions_end(options: Mapping[str, Any], topic: str, caplog: pytest.LogCaptureFixture) -> list[bytes]:
    """Sends while two sessions end, in which no connection may be lost.

    A session's end comes a tenth of its seconds after the login that goes before it.  A busy machine may miss it, so
    there are some tries.
    """
    caplog.set_level(logging.INFO, "forebay")
    sent: list[bytes] = []
    for _ in range(TRIES):
        caplog.clear()
        with KafkaProducer({**options, "linger.ms": "1"}) as producer:
            end = time.monotonic() + within(7)
            while time.monotonic() < end:
                sent.append(b"%d" % len(sent))
                producer.send(topic, sent[-1])
                time.sleep(0.002)
            producer.flush()
        lost = [record for record in caplog.records if "connection" in record.getMessage().lower()]
        if not lost:
            return sent
    raise AssertionError(lost)


def refused(options: Mapping[str, Any], wait_ms: int = 8000) -> KafkaError:
    """What a send to a broker that does not let us in raises."""
    with (
        KafkaProducer({**options, "max.block.ms": str(within_ms(wait_ms))}) as producer,
        pytest.raises(KafkaError) as caught,
    ):
        producer.send("never", b"x").result(HANG_S)
    return caught.value


@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
@pytest.mark.parametrize("more", [{}, {"transactional.id": "tls"}, {"enable.idempotence": "false", "acks": "1"}])
def test_tls(
    secure: Secure, topic: TopicFactory, read_back: ReadBackFactory, listener: str, more: dict[str, str]
) -> None:
    name = topic(secure.kafka, 3)
    options = secure.options(listener, **more)
    if "transactional.id" in more:
        with KafkaProducer(options) as producer:
            producer.init_transactions()
            with producer.transaction():
                values = [b"%d" % number for number in range(RECORDS)]
                for value in values:
                    producer.send(name, value)
    else:
        values = send_all(options, name)
    found = read_back(secure.kafka, name).wait_for(RECORDS)
    assert sorted(record.value or b"" for record in found) == sorted(values)


@pytest.mark.parametrize("way", ["MTLS", *MECHANISMS])
def test_no_thread_waits_for_a_lock_that_a_handler_may_have_interrupted(
    secure: Secure, topic: TopicFactory, way: str
) -> None:
    """As in test_signals.py."""
    config = secure.options("MTLS") if way == "MTLS" else secure.options("SASLS", **login(way))
    assert run_under_locks(config["bootstrap.servers"], topic(secure.kafka, 3), config) == "done\n"


def test_keys_that_change_amid_the_records(secure: Secure, topic: TopicFactory, read_back: ReadBackFactory) -> None:
    """Java changes its keys, and asks for ours, after each MiB (RFC 8446, 4.6.3)."""
    name = topic(secure.kafka, 1)
    seen: Counter[tuple[str, str]] = Counter()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(secure.ca)

    def watch(connection: object, direction: str, version: object, content: object, message: Any, data: bytes) -> None:
        seen[direction, getattr(message, "name", "")] += 1

    context._msg_callback = watch  # type: ignore[attr-defined]  # what OpenSSL's own tools show; for tests alone
    options = {
        "bootstrap.servers": secure.kafka.address_of("SSL"),
        "security.protocol": "SSL",
        "ssl.context": context,
        "batch.size": "100000",
    }
    size, count = 10_000, 2000
    with KafkaProducer(options) as producer:
        for number in range(count):
            producer.send(name, number.to_bytes(4, "big") * (size // 4))
        producer.flush()
    found = read_back(secure.kafka, name).wait_for(count)
    assert [int.from_bytes((record.value or b"")[:4], "big") for record in found] == list(range(count))
    assert {len(record.value or b"") for record in found} == {size}
    assert seen["read", "KEY_UPDATE"] >= 5 and seen["write", "KEY_UPDATE"] >= 5, seen


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", ["SASLP", "SASLS"])
def test_sasl(secure: Secure, topic: TopicFactory, read_back: ReadBackFactory, listener: str, mechanism: str) -> None:
    name = topic(secure.kafka, 3)
    values = send_all({**secure.options(listener), **login(mechanism)}, name)
    found = read_back(secure.kafka, name).wait_for(RECORDS)
    assert sorted(record.value or b"" for record in found) == sorted(values)


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-256", "scram.ScramLoginModule")]
)
def test_javas_spelling(secure: Secure, topic: TopicFactory, mechanism: str, module: str) -> None:
    options = {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": JAAS.format(module=module, user=USER, password=PASSWORD),
    }
    send_all({**secure.options("SASLS"), **options}, topic(secure.kafka, 1))


def test_the_other_clients_spelling(secure: Secure, topic: TopicFactory) -> None:
    librdkafka = {
        "bootstrap.servers": secure.kafka.address_of("MTLS"),
        "security.protocol": "ssl",
        "ssl.ca.location": str(secure.ca),
        "ssl.certificate.location": str(secure.client.chain),
        "ssl.key.location": str(secure.client.key),
    }
    send_all(librdkafka, topic(secure.kafka, 1))
    with KafkaProducer(
        bootstrap_servers=secure.kafka.address_of("SASLS"),
        security_protocol="SASL_SSL",
        ssl_cafile=str(secure.ca),
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username=USER,
        sasl_plain_password=PASSWORD,
    ) as producer:
        assert producer.send(topic(secure.kafka, 1), b"x").result(HANG_S).offset == 0


def test_a_wrong_password(secure: Secure) -> None:
    for mechanism in MECHANISMS:
        error = refused({**secure.options("SASLS"), **login(mechanism, "wrong-canary")})
        assert isinstance(error, SaslAuthenticationError), error
        assert mechanism in str(error) and USER in str(error) and "wrong-canary" not in str(error)


def test_a_mechanism_that_the_broker_does_not_take(secure: Secure) -> None:
    # The listener without SASL, asked by SASL, answers too; both say what to set.
    plain = {**secure.options("SASLP"), **login("PLAIN"), "bootstrap.servers": secure.kafka.bootstrap_servers}
    error = refused(plain)
    assert "security.protocol" in str(error), error


def test_an_authority_that_is_not_trusted(secure: Secure, tmp_path: Path) -> None:
    other = tmp_path / "other.crt"
    other.write_bytes(trustme.CA().cert_pem.bytes())
    error = refused(secure.options("SSL", **{"ssl.truststore.location": str(other)}))
    assert isinstance(error, SslAuthenticationError)
    assert "localhost" in str(error) and str(other) in str(error) and "authority" in str(error)


def test_another_name_in_the_certificate(secure: Secure) -> None:
    address = secure.kafka.address_of("SSL").replace("localhost", "127.0.0.1")
    error = refused(secure.options("SSL", **{"bootstrap.servers": address}))
    assert isinstance(error, SslAuthenticationError)
    assert "127.0.0.1" in str(error) and "ssl.endpoint.identification.algorithm" in str(error)


def test_no_client_certificate_and_a_foreign_one(secure: Secure, tmp_path: Path) -> None:
    options = secure.options("MTLS")
    del options["ssl.keystore.location"]
    error = refused(options)
    assert isinstance(error, SslAuthenticationError) and "ssl.keystore.location" in str(error), error
    foreign = identity(tmp_path, "foreign", trustme.CA().issue_cert("x.example"))
    error = refused(secure.options("MTLS", **{"ssl.keystore.location": str(foreign.both)}))
    assert isinstance(error, SslAuthenticationError) and "client certificate" in str(error), error


def test_tls_to_a_listener_without_and_the_other_way_round(secure: Secure) -> None:
    error = refused(secure.options("SSL", **{"bootstrap.servers": secure.kafka.bootstrap_servers}))
    assert "TLS" in str(error) and "security.protocol" in str(error), error
    error = refused({"bootstrap.servers": secure.kafka.address_of("SSL")})
    assert "TLS" in str(error) and "security.protocol" in str(error), error


@pytest.mark.parametrize(("listener", "protocol"), [("SASLP", "PLAINTEXT"), ("SASLS", "SSL")])
def test_without_a_login_at_a_listener_that_asks_for_one(secure: Secure, listener: str, protocol: str) -> None:
    error = refused(secure.options(listener, **{"security.protocol": protocol}), 4000)
    assert "If security.protocol names no SASL here, this listener may ask for a SASL login" in str(error)


def test_files_that_cannot_be_used_are_named_at_once(secure: Secure, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for option, path, words in (
        ("ssl.truststore.location", tmp_path / "nowhere.pem", "No such file"),
        ("ssl.truststore.location", empty, "is empty"),
        ("ssl.keystore.location", secure.client.chain, "key"),
        ("ssl.keystore.location", tmp_path / "nowhere.pem", "No such file"),
    ):
        with pytest.raises(ConfigError, match=option) as caught:
            KafkaProducer(secure.options("SSL", **{option: str(path)}))
        assert str(path) in str(caught.value) and words in str(caught.value)


def test_a_trust_store_that_is_mended(secure: Secure, topic: TopicFactory) -> None:
    """A certificate authority that is put right meanwhile: the producer recovers by itself, and keeps its records."""
    store = secure.folder / "late.crt"
    store.write_bytes(trustme.CA().cert_pem.bytes())
    name = topic(secure.kafka, 1)
    with KafkaProducer(secure.options("SSL", **{"ssl.truststore.location": str(store)})) as producer:
        with pytest.raises(SslAuthenticationError):
            producer.send(name, b"x").result(HANG_S)
        store.write_bytes(secure.ca.read_bytes())
        end = time.monotonic() + HANG_S
        while True:
            try:
                assert producer.send(name, b"y").result(HANG_S).offset == 0
                return
            except SslAuthenticationError:
                assert time.monotonic() < end, "it does not recover"
                time.sleep(0.2)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_authentication_again_while_records_flow(
    secure: Secure, topic: TopicFactory, read_back: ReadBackFactory, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = topic(secure.kafka, 1)
    sent = send_while_sessions_end({**secure.options("REAUTH"), **login(mechanism)}, name, caplog)
    found = read_back(secure.kafka, name).wait_for(len(sent))
    assert [record.value for record in found] == sent


def test_no_secret_is_printed(secure: Secure, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    options = {**secure.options("SASLS"), **login("SCRAM-SHA-256")}
    with KafkaProducer(options) as producer:
        assert producer.partitions_for("secrets")
        said = [repr(producer), repr(producer.config), producer.config.describe(), repr(producer.metrics())]
    said += [record.getMessage() for record in caplog.records]
    assert not [text for text in said if "canary" in text]
