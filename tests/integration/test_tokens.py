"""OAUTHBEARER with a real Kafka and an identity provider: every grant, what is refused, and a provider that is away."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

import forebay
from forebay import KafkaProducer
from forebay._network.oidc import Endpoint, fetch, post_form, with_secret
from forebay._runtime.clock import SystemClock
from forebay.errors import KafkaError, NetworkError, SaslAuthenticationError
from tests.integration.programs import run_under_locks
from tests.support.fixtures import ReadBackFactory, TopicFactory, real_kafka
from tests.support.identity import CLIENT, SECRET, IdentityProvider
from tests.support.pace import HANG_S, within, within_ms
from tools.certificates import identity
from tools.kafka import Listener, RealKafka

pytestmark = pytest.mark.rest("an identity provider, and a broker that takes its tokens")

PACKAGE = str(Path(forebay.__file__).parent)

RECORDS = 500
URL = "sasl.oauthbearer.token.endpoint.url"
JAVA = "org.apache.kafka.common.security.oauthbearer"


class Cluster:
    """A broker that takes the identity provider's tokens, and how to reach it."""

    def __init__(self, kafka: RealKafka, provider: IdentityProvider, folder: Path) -> None:
        self.kafka, self.provider, self.folder = kafka, provider, folder
        self.options: dict[str, Any] = {
            "bootstrap.servers": kafka.address_of("OIDC"),
            "security.protocol": "SASL_SSL",
            "ssl.truststore.location": str(folder / "ca.crt"),
            "sasl.mechanism": "OAUTHBEARER",
        }
        self.secret = {
            **self.options,
            URL: provider.url(),
            "sasl.oauthbearer.client.credentials.client.id": CLIENT,
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("oidc")
    authority = trustme.CA()
    (folder / "ca.crt").write_bytes(authority.cert_pem.bytes())
    server = identity(folder, "server", authority.issue_cert("localhost"))
    provider = IdentityProvider()
    provider.start()
    (folder / "client.key").write_bytes(
        provider.client_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    listener = Listener(
        "OIDC",
        "SASL_SSL",
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(server.both),
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "oauthbearer.sasl.jaas.config": f"{JAVA}.OAuthBearerLoginModule required;",
            "oauthbearer.sasl.server.callback.handler.class": f"{JAVA}.OAuthBearerValidatorCallbackHandler",
            "oauthbearer.connections.max.reauth.ms": "3600000",
            "sasl.oauthbearer.jwks.endpoint.url": provider.url("/jwks"),
            "sasl.oauthbearer.expected.audience": "kafka",
        },
    )
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.url('/jwks')}"
    with real_kafka(advertised_host="localhost", listeners=[listener], jvm_options=[allowed]) as kafka:
        yield Cluster(kafka, provider, folder)
    provider.stop()


@pytest.fixture(autouse=True)
def usual(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.provider.lifetime_s = 300.0
    cluster.provider.signing_key = cluster.provider.key


def send_all(options: Mapping[str, Any], topic: str) -> list[bytes]:
    values = [b"%d" % number for number in range(RECORDS)]
    with KafkaProducer(options) as producer:
        for future in [producer.send(topic, value) for value in values]:
            future.result(HANG_S)
    return values


def refused(options: Mapping[str, Any]) -> KafkaError:
    with (
        KafkaProducer({**options, "max.block.ms": str(within_ms(15_000))}) as producer,
        pytest.raises(KafkaError) as caught,
    ):
        producer.send("never", b"x").result(HANG_S)
    return caught.value


def assertion(cluster: Cluster) -> dict[str, Any]:
    prefix = "sasl.oauthbearer.assertion"
    return {
        **cluster.options,
        URL: cluster.provider.url(),
        f"{prefix}.private.key.file": str(cluster.folder / "client.key"),
        f"{prefix}.claim.iss": CLIENT,
        f"{prefix}.claim.sub": CLIENT,
        f"{prefix}.claim.aud": "tests",
    }


def ways(cluster: Cluster) -> dict[str, dict[str, Any]]:
    (cluster.folder / "token").write_text(cluster.provider.token())
    jaas = f'{JAVA}.OAuthBearerLoginModule required clientId="{CLIENT}" clientSecret="{SECRET}" scope="a b";'
    return {
        "secret": cluster.secret,
        "jaas": {**cluster.options, URL: cluster.provider.url(), "sasl.jaas.config": jaas},
        "assertion": assertion(cluster),
        "jwt-bearer": {**assertion(cluster), "sasl.oauthbearer.jwt.retriever.class": f"{JAVA}.JwtBearerJwtRetriever"},
        "file": {**cluster.options, URL: f"file://{cluster.folder}/token"},
        "callable": {**cluster.options, "sasl.oauthbearer.token.provider": cluster.provider.token},
        "oauth_cb": {**cluster.options, "oauth_cb": lambda _: (cluster.provider.token(), time.time() + 300)},
        "idempotent": {**cluster.secret, "transactional.id": "tokens"},
    }


@pytest.mark.parametrize("way", ["secret", "jaas", "assertion", "jwt-bearer", "file", "callable", "oauth_cb"])
def test_every_way_in(cluster: Cluster, topic: TopicFactory, read_back: ReadBackFactory, way: str) -> None:
    name = topic(cluster.kafka, 1)
    values = send_all(ways(cluster)[way], name)
    assert [record.value for record in read_back(cluster.kafka, name).wait_for(RECORDS)] == values


@pytest.mark.parametrize("way", ["secret", "assertion", "callable"])
def test_no_thread_waits_for_a_lock_that_a_handler_may_have_interrupted(
    cluster: Cluster, topic: TopicFactory, way: str
) -> None:
    """As in test_signals.py; the login's thread is one of them."""
    token = {**cluster.options, "token": cluster.provider.token()}
    config = token if way == "callable" else ways(cluster)[way]
    assert run_under_locks(config["bootstrap.servers"], topic(cluster.kafka, 3), config) == "done\n"


def test_a_wrong_secret(cluster: Cluster) -> None:
    error = refused({**cluster.secret, "sasl.oauthbearer.client.credentials.client.secret": "wrong-canary"})
    assert isinstance(error, SaslAuthenticationError), error
    assert "HTTP 401" in str(error) and "invalid_client" in str(error) and "canary" not in str(error)


def test_a_signature_that_the_broker_does_not_take(cluster: Cluster) -> None:
    cluster.provider.signing_key = cluster.provider.client_key
    error = refused(cluster.secret)
    assert isinstance(error, SaslAuthenticationError) and "invalid_token" in str(error), error


def test_an_identity_provider_that_is_killed_and_started_again(
    cluster: Cluster, topic: TopicFactory, read_back: ReadBackFactory
) -> None:
    """Sessions end with their tokens: records wait for the provider, and each arrives once."""
    name = topic(cluster.kafka, 1)
    cluster.provider.lifetime_s = within(4)
    options = {
        **cluster.secret,
        "linger.ms": "0",
        "sasl.login.refresh.min.period.seconds": "0",
        "sasl.login.refresh.buffer.seconds": "0",
        "sasl.login.retry.backoff.max.ms": "500",
    }
    values: list[bytes] = []
    with KafkaProducer(options) as producer:

        def flow(seconds: float) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                values.append(b"%d" % len(values))
                producer.send(name, values[-1])
                time.sleep(0.01)

        flow(within(6))  # past the first token's end
        producer.flush(HANG_S)
        fetched = len(cluster.provider.requests)
        cluster.provider.stop()
        flow(within(7))  # past the last token's end
        cluster.provider.start()
        producer.flush(HANG_S)
        assert len(cluster.provider.requests) > fetched
    assert [record.value for record in read_back(cluster.kafka, name).wait_for(len(values))] == values


def test_records_flow_while_the_provider_blocks(cluster: Cluster, topic: TopicFactory) -> None:
    blocked, go = threading.Event(), threading.Event()
    asked: list[str] = []

    def provider() -> tuple[str, float]:
        asked.append(threading.current_thread().name)
        if len(asked) > 1:
            blocked.set()
            go.wait(HANG_S)
        return cluster.provider.token(), time.time() + within(2)

    options = {
        **cluster.options,
        "sasl.oauthbearer.token.provider": provider,
        "linger.ms": "0",
        "sasl.login.refresh.min.period.seconds": "0",
        "sasl.login.refresh.buffer.seconds": "0",
    }
    name = topic(cluster.kafka, 1)
    with KafkaProducer(options) as producer:
        producer.send(name, b"first").result(HANG_S)
        assert blocked.wait(HANG_S), "the token is renewed while nobody logs in"
        for number in range(200):
            producer.send(name, b"%d" % number).result(HANG_S)
        assert not go.is_set()
        go.set()
    assert set(asked) == {f"forebay-login | {producer.client_id}"}


def test_an_endpoint_with_tls(cluster: Cluster, topic: TopicFactory, tmp_path: Path) -> None:
    """Judged by ssl.* of the login module; by the system's authorities alone without these."""
    authority = trustme.CA()
    ca = tmp_path / "idp.crt"
    ca.write_bytes(authority.cert_pem.bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    secure = IdentityProvider(context)
    secure.key = secure.signing_key = cluster.provider.key
    secure.start()
    try:
        error = refused({**cluster.secret, URL: secure.url()})
        assert isinstance(error, SaslAuthenticationError) and "ssl.truststore.location" in str(error), error
        login = f'clientId="{CLIENT}" clientSecret="{SECRET}" ssl.truststore.location="{ca}"'
        jaas = f"{JAVA}.OAuthBearerLoginModule required {login};"
        options = {**cluster.options, URL: secure.url(), "sasl.jaas.config": jaas}
        send_all(options, topic(cluster.kafka, 1))
        both = tmp_path / "both.crt"
        both.write_bytes(ca.read_bytes() + (cluster.folder / "ca.crt").read_bytes())
        error = refused({**cluster.secret, URL: secure.url(), "ssl.truststore.location": str(both)})
        assert isinstance(error, SaslAuthenticationError) and "the system's" in str(error), error
    finally:
        secure.stop()


@pytest.mark.parametrize(
    ("path", "kind", "why"),
    [
        ("/redirect", SaslAuthenticationError, "not followed"),
        ("/large", SaslAuthenticationError, "more than 1048576 bytes"),
        ("/drip", NetworkError, "sasl.login.read.timeout.ms"),
        ("/nojson", SaslAuthenticationError, "no JSON"),
        ("/empty", SaslAuthenticationError, "neither access_token nor id_token"),
        ("/busy", NetworkError, "HTTP 503 busy"),
        ("/close", NetworkError, "no token from"),
    ],
)
def test_bad_answers_end_in_bounded_time(path: str, kind: type[KafkaError], why: str) -> None:
    provider = IdentityProvider()
    provider.start()
    clock = SystemClock()
    endpoint = Endpoint(provider.url(path), None, 2000, 500, 10, 300)
    begun = clock.now()
    try:
        with pytest.raises(kind, match=why) as caught:
            fetch(endpoint, with_secret("id", SECRET, None, False), clock.now, lambda ms: time.sleep(ms / 1000))
    finally:
        provider.stop()
    assert "canary" not in str(caught.value)
    assert clock.now() - begun < 20_000
    assert all(asked == path for asked, _ in provider.requests), "a redirect is not followed"


def test_a_tls_handshake_that_drips_ends_in_bounded_time() -> None:
    """The limit is on the handshake as a whole, not on each read: what drips would go on for hours otherwise."""
    ended = threading.Event()
    dripped: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            peer, _ = listener.accept()
            with peer, contextlib.suppress(OSError):
                peer.recv(65536)
                peer.sendall(b"\x16\x03\x03\x40\x00")  # a handshake's record of 16 KiB
                while not ended.wait(0.05):
                    peer.sendall(b"\x02")
                    dripped.append(1)

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/token"
        endpoint = Endpoint(
            url, lambda: (ssl.create_default_context(), ""), connect_ms=1000, read_ms=1000, backoff_max_ms=0
        )
        begun = time.monotonic()
        try:
            with pytest.raises(NetworkError, match="does not answer in time|timed out"):
                post_form(endpoint, with_secret(CLIENT, SECRET, None, False), SystemClock().now)
            taken = time.monotonic() - begun
        finally:
            ended.set()
            thread.join()
    assert 0.9 < taken < within(10) and len(dripped) > 3


def test_nobody_at_the_endpoint() -> None:
    provider = IdentityProvider()
    provider.start()
    provider.stop()
    with pytest.raises(NetworkError, match="refuses the connection"):
        post_form(Endpoint(provider.url()), with_secret("id", "s", None, False), SystemClock().now)


def test_no_secret_is_printed(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    tokens: list[str] = []

    def provider() -> str:
        tokens.append(cluster.provider.token())
        return tokens[-1]

    for options in ({**cluster.options, "sasl.oauthbearer.token.provider": provider}, cluster.secret):
        with KafkaProducer(options) as producer:
            assert producer.partitions_for("secrets")
            said += [repr(producer), repr(producer.config), producer.config.describe(), repr(producer.metrics())]
    for options in ({**cluster.secret, URL: cluster.provider.url("/nojson")}, cluster.secret):
        if options is cluster.secret:
            cluster.provider.signing_key = cluster.provider.client_key
        error = refused(options)
        chain = traceback.TracebackException.from_exception(error, capture_locals=True)
        # This test's own frames hold the options as they were given.
        said += [
            line
            for summary in (chain, chain.__cause__, chain.__context__)
            if summary is not None
            for frame in summary.stack
            if frame.filename.startswith(PACKAGE)
            for line in (frame.locals or {}).values()
        ]
        said += [str(error), repr(error)]
    said += [record.getMessage() + str(record.exc_info or "") for record in caplog.records]
    assert tokens and not [text for text in said if "canary" in text or tokens[0] in text]
