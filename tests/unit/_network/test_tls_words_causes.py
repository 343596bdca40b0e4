"""Causes of refused connections by place: each is made, and its words say whose fault it is and what to look at."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509 import load_pem_x509_certificate

from forebay import KafkaProducer
from forebay._network.tls import SILENT, TlsFilter
from forebay._network.tls_context import TlsContexts, TlsSettings, make_context
from forebay._network.tokens import checked_jwt
from forebay.config import ProducerConfig, Secret
from forebay.errors import ConfigError, KafkaError, SaslAuthenticationError

CA, OTHER = trustme.CA(), trustme.CA()
HOST = "broker.example"
PAST = datetime.now(UTC) - timedelta(days=3)
NAMES = ("names other.example, second.example", "subject O=trustme", "issuer O=trustme", "expires Jan")


def served(
    name: str = HOST, ca: trustme.CA = CA, *, asks: bool = False, version: str = "1.3", ends: datetime | None = None
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    names = ("other.example", "second.example") if name == "other" else (name,)
    ca.issue_cert(*names, not_after=ends).configure_cert(context)
    context.maximum_version = ssl.TLSVersion.TLSv1_2 if version == "1.2" else ssl.TLSVersion.TLSv1_3
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        CA.configure_trust(context)
    return context


def failure(settings: TlsSettings, server: ssl.SSLContext) -> str:
    """What a client says of a broker with whom the handshake, or the first read behind it, fails."""
    context, store = make_context(settings)
    client = TlsFilter(context, HOST, store)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    peer = server.wrap_bio(incoming, outgoing, server_side=True)

    def talk() -> None:
        client.start()
        done = False
        for _ in range(10):
            incoming.write(client.outgoing())
            try:
                peer.do_handshake()
            except ssl.SSLError:
                pass
            data = outgoing.read()
            if data:
                client.feed(memoryview(data))
            done = done or client.shake_hands()
            if done:
                client.receive(memoryview(bytearray(100)))

    with pytest.raises(KafkaError) as caught:
        talk()
    return str(caught.value)


def trusting(folder: Path, **more: object) -> TlsSettings:
    (folder / "ca.pem").write_bytes(CA.cert_pem.bytes())
    return TlsSettings(truststore=str(folder / "ca.pem"), **more)  # type: ignore[arg-type]


def own(folder: Path, ca: trustme.CA = CA, ends: datetime | None = None) -> str:
    path = folder / "client.pem"
    path.write_bytes(ca.issue_cert("client", not_after=ends).private_key_and_cert_chain_pem.bytes())
    return str(path)


MUST = "no client certificate is set here"
CAUSES: dict[str, tuple[Callable[[Path], str], tuple[str, ...]]] = {
    "another name": (lambda f: failure(trusting(f), served("other")), ("is for another host", *NAMES)),
    "unknown authority": (
        lambda f: failure(trusting(f), served("other", OTHER)),
        ("not in that store", "ssl.truststore.location=", *NAMES),
    ),
    "expired": (
        lambda f: failure(trusting(f), served(ends=PAST)),
        ("has expired", f"names {HOST}", PAST.strftime("%Y GMT")),
    ),
    **{
        f"no client certificate, TLS {version}": (
            lambda f, version=version: failure(trusting(f), served(asks=True, version=version)),  # type: ignore[misc]
            (MUST, "ssl.keystore.location"),
        )
        for version in ("1.2", "1.3")
    },
    **{
        f"a client certificate of others, TLS {version}": (
            lambda f, version=version: failure(  # type: ignore[misc]
                trusting(f, keystore=own(f, OTHER)), served(asks=True, version=version)
            ),
            ("does not trust", "it was sent ssl.keystore.location=", "expires on 3"),
        )
        for version in ("1.2", "1.3")
    },
    "an expired client certificate": (
        lambda f: failure(trusting(f, keystore=own(f, CA, PAST)), served(asks=True)),
        ("expired", "it was sent ssl.keystore.location=", PAST.strftime("%Y-%m-%d")),
    ),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_the_words_of_a_refusal(cause: str, tmp_path: Path) -> None:
    make, words = CAUSES[cause]
    text = make(tmp_path)
    assert HOST in text and text.isprintable()
    for word in words:
        assert word in text, text


def files(folder: Path) -> dict[str, str]:
    issued = CA.issue_cert("client")
    texts = {
        "key": issued.private_key_pem.bytes(),
        "certificate": issued.cert_chain_pems[0].bytes(),
        "empty": b" \n",
    }
    for name, data in texts.items():
        (folder / name).write_bytes(data)
    (folder / "folder").mkdir()
    return {name: str(folder / name) for name in (*texts, "folder", "absent")}


CONFIGURED = {
    "key store without a key": ({"keystore": "certificate"}, "has no private key"),
    "key store without a certificate": ({"keystore": "key"}, "has no certificate in it, only 1 .*PRIVATE KEY"),
    "trust store without a certificate": ({"truststore": "key"}, "has no certificate in it, only 1 .*PRIVATE KEY"),
    "folder without hashed names": ({"truststore": "folder"}, "openssl rehash"),
    "empty": ({"truststore": "empty"}, "is empty"),
    "absent": ({"keystore": "absent"}, "No such file"),
    "a list without a list": ({"crl": "certificate"}, "has no X509 CRL in it"),
}


@pytest.mark.parametrize("cause", CONFIGURED)
def test_the_words_of_a_file(cause: str, tmp_path: Path) -> None:
    given, words = CONFIGURED[cause]
    paths = files(tmp_path)
    with pytest.raises(ConfigError, match=words) as caught:
        make_context(TlsSettings(**{name: paths[path] for name, path in given.items()}))  # type: ignore[arg-type]
    assert ".location=" in str(caught.value)


def test_an_own_certificate_that_has_expired_is_told_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    TlsContexts(TlsSettings(keystore=own(tmp_path, CA, PAST)), lambda: datetime.now(UTC).timestamp() * 1000)
    assert "client certificate of ssl.keystore.location=" in caplog.text and "has expired" in caplog.text


def test_a_key_that_everybody_can_read_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own(tmp_path)
    TlsContexts(TlsSettings(keystore=path), lambda: 0.0)
    assert "every user" not in caplog.text, "nobody else can enter the folder"
    monkeypatch.setattr("forebay._network.tls_context.open_to_others", lambda path: True)
    TlsContexts(TlsSettings(keystore=path), lambda: 0.0)
    assert f"ssl.keystore.location={path} can be read by every user" in caplog.text


def test_a_silent_port() -> None:
    context, store = make_context(TlsSettings())
    filter_ = TlsFilter(context, HOST, store)
    assert filter_.silence() == ""
    filter_.start()
    assert filter_.silence() == SILENT and "security.protocol" in SILENT


def test_a_token_without_its_end() -> None:
    with pytest.raises(SaslAuthenticationError, match="it has no claim exp"):
        checked_jwt("e30.eyJzdWIiOiAieCJ9.x", "sub", 0)


def test_a_variable_that_is_missing_is_told_with_its_option() -> None:
    config = ProducerConfig(
        bootstrap_servers="h:1", ssl_key_password="${env:FOREBAY_NOT_THERE}", config_providers="env"
    )
    with pytest.raises(
        ConfigError, match=r"ssl.key.password=\$\{env:FOREBAY_NOT_THERE\}: there is no such environment"
    ):
        config["ssl.key.password"].reveal()
    assert isinstance(Secret("x"), Secret)


def stores(folder: Path) -> dict[str, str]:
    """Files that are behind the password "right": a PEM with its key, a PKCS12 with it, and one of authorities."""
    issued = CA.issue_cert("client")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    chain = load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    authority = load_pem_x509_certificate(CA.cert_pem.bytes())
    lock = serialization.BestAvailableEncryption(b"right")
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    texts = {
        "pem": key.private_bytes(pem, pkcs8, lock) + issued.cert_chain_pems[0].bytes(),
        "p12": pkcs12.serialize_key_and_certificates(b"client", key, chain, None, lock),
        "trust": pkcs12.serialize_key_and_certificates(None, None, None, [authority], lock),
    }
    for name, data in texts.items():
        (folder / name).write_bytes(data)
    return {name: str(folder / name) for name in texts}


JAAS = 'x.OAuthBearerLoginModule required clientId="a" clientSecret="b" {};'
PASSWORDS: dict[str, tuple[dict[str, str], str]] = {
    "of a key in PEM": (
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": "pem", "ssl.key.password": "wrong"},
        r"its password \(ssl\.key\.password\) may be another one",
    ),
    "of a key in PEM, not given": (
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": "pem"},
        r"is encrypted; set ssl\.key\.password",
    ),
    "of a key store": (
        {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "p12", "ssl.keystore.password": "wrong"},
        r"has another password, or is damaged; see ssl\.keystore\.password",
    ),
    "of a key store, not given": (
        {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "p12"},
        r"needs its password; see ssl\.keystore\.password",
    ),
    "of a trust store": (
        {"ssl.truststore.type": "PKCS12", "ssl.truststore.location": "trust", "ssl.truststore.password": "wrong"},
        r"has another password, or is damaged; see ssl\.truststore\.password",
    ),
}


@pytest.mark.parametrize("which", PASSWORDS)
def test_which_password_is_meant(which: str, tmp_path: Path) -> None:
    given, words = PASSWORDS[which]
    paths = stores(tmp_path)
    options = {key: paths.get(value, value) for key, value in given.items()}
    with pytest.raises(ConfigError, match=words) as caught:
        KafkaProducer({"bootstrap.servers": "h:1", "security.protocol": "SSL", **options})
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('ssl.truststore.location="/absent/ca.pem"', r"ssl\.truststore\.location=/absent/ca\.pem: No such file"),
        ('ssl.trustore.location="x"', r"sasl\.jaas\.config: Unknown option 'ssl\.trustore\.location': did you mean"),
        ('ssl.truststore.type="XYZ" ssl.truststore.location="x"', r"sasl\.jaas\.config: Invalid value 'XYZ'"),
    ],
)
def test_tls_of_a_token_endpoint_in_jaas_is_checked_at_once(keys: str, words: str) -> None:
    options = {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://h:2/token",
        "sasl.jaas.config": JAAS.format(keys),
    }
    with pytest.raises(ConfigError, match=words):
        KafkaProducer(options)
