"""What options of TLS and SASL are refused together, and what is said of weak ones."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.config import ProducerConfig, Secret
from forebay.config._security_rules import checks_name, credentials, tls_versions
from forebay.errors import ConfigError

SSL = {"bootstrap.servers": "h:1", "security.protocol": "SSL"}
SASL = {"bootstrap.servers": "h:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
JAAS = 'x.PlainLoginModule required username="u" password="p";'
TOKEN = 'x.ScramLoginModule required username="u" password="p" tokenauth="true";'


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"ssl.enabled.protocols": "SSLv3"}, "SSLv3"),
        ({"ssl.enabled.protocols": "TLSv1,TLSv1.2,SSLv3"}, "SSLv3"),
        ({"ssl.protocol": "TLSv1.2", "ssl.enabled.protocols": "TLSv1.3"}, "none of"),
        ({"ssl.protocol": "fast"}, "ssl.protocol"),
        ({"ssl.truststore.certificates": "x", "ssl.truststore.location": "y"}, "both"),
        ({"ssl.keystore.certificate.chain": "x", "ssl.keystore.key": "z", "ssl.keystore.location": "y"}, "both"),
        ({"ssl.keystore.key": "x"}, "need each other"),
        ({"ssl.key.location": "x"}, "ssl.keystore.location"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "https"),
        ({"ssl.context": object(), "ssl.truststore.location": "y"}, "ssl.context"),
        ({"ssl.ca.location": "x", "ssl.truststore.location": "y"}, "given twice"),
    ],
)
def test_tls_that_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        ProducerConfig({**SSL, **options})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sasl.mechanism": None}, "GSSAPI by default"),
        ({}, "needs sasl.username"),
        ({"sasl.username": "u"}, "need each other"),
        ({"sasl.username": "u", "sasl.password": "p", "sasl.jaas.config": JAAS}, "both"),
        ({"sasl.jaas.config": "x.OAuthBearerLoginModule required;"}, "needs PlainLoginModule"),
        ({"sasl.jaas.config": 'x.PlainLoginModule required username="u";'}, "password"),
    ],
)
def test_sasl_that_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        ProducerConfig({**SASL, **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({**SSL, "ssl_check_hostname": False}, "host name is not checked"),
        ({**SSL, "enable.ssl.certificate.verification": False}, "can read all records"),
        ({**SSL, "ssl.enabled.protocols": "TLSv1.1"}, "not safe"),
        ({**SSL, "ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "TLSv1.1 is not used"),
        ({**SSL, "ssl.enabled.protocols": "TLSv1,TLSv1.1,TLSv1.3"}, "TLSv1, TLSv1.1 is not used"),
        ({**SSL, "ssl.provider": "BCJSSE"}, "ssl.provider='BCJSSE': no effect outside of a Java"),
        ({**SSL, "ssl.secure.random.implementation": "SHA1PRNG"}, "no effect outside of a Java"),
        ({**SSL, "ssl.keymanager.algorithm": "PKIX"}, "no effect outside of a Java"),
        ({**SSL, "ssl.trustmanager.algorithm": "SunX509"}, "no effect outside of a Java"),
        ({**SSL, "sasl.username": "u", "sasl.password": "p"}, "no effect"),
        ({"bootstrap.servers": "h:1", "ssl.truststore.location": "x"}, "no effect"),
        ({**SASL, "security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": JAAS}, "sends the password as it is"),
    ],
)
def test_what_is_weak_is_said(options: dict[str, Any], words: str) -> None:
    assert any(words in note.text for note in ProducerConfig(options).notes)


def test_what_follows_from_the_options() -> None:
    made = ProducerConfig(
        {**SASL, "sasl.mechanism": "scram-sha-256", "sasl.jaas.config": TOKEN, "ssl.protocol": "TLSv1.2"}
    )
    login = credentials(made)
    assert login is not None and not login.deferred and login.read() == ("u", Secret("p"), True)
    assert tls_versions(made) == ("TLSv1.2",) and checks_name(made)
    assert not checks_name({"ssl.endpoint.identification.algorithm": "none"})
    assert tls_versions(ProducerConfig({**SSL})) == ("TLSv1.2", "TLSv1.3")


def test_other_clients_names_are_taken() -> None:
    made = ProducerConfig(
        bootstrap_servers="h:1", security_protocol="SASL_SSL", sasl_mechanisms="PLAIN", sasl_plain_username="u",
        sasl_plain_password="p", ssl_cafile="/ca", ssl_certfile="/crt", ssl_keyfile="/key", ssl_password="s",
    )  # fmt: skip
    assert made["ssl.truststore.location"] == "/ca" and made["ssl.key.location"] == "/key"
    login = credentials(made)
    assert login is not None and login.read() == ("u", Secret("p"), False)
    assert "'s'" not in made.describe()


@pytest.mark.parametrize(
    ("named", "used"),
    [
        ("TLSv1.1,TLSv1.2", ("TLSv1.2",)),
        ("TLSv1,TLSv1.3", ("TLSv1.3",)),
        ("TLSv1,TLSv1.1,TLSv1.2,TLSv1.3", ("TLSv1.2", "TLSv1.3")),
        ("TLSv1,TLSv1.1", ("TLSv1", "TLSv1.1")),
        ("TLSv1.1", ("TLSv1.1",)),
    ],
)
def test_old_versions_beside_newer_ones_are_left_out(named: str, used: tuple[str, ...]) -> None:
    assert tls_versions(ProducerConfig({**SSL, "ssl.enabled.protocols": named})) == used


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("module", ["PlainLoginModule", "ScramLoginModule"])
@pytest.mark.parametrize("token", [True, False])
def test_either_login_module_serves_each_mechanism_of_passwords(mechanism: str, module: str, token: bool) -> None:
    jaas = f'x.{module} required username="u" password="p"' + (" tokenauth=true;" if token else ";")
    login = credentials(ProducerConfig({**SASL, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}))
    is_token = token and module == "ScramLoginModule" and mechanism != "PLAIN"
    assert login is not None and login.read() == ("u", Secret("p"), is_token)
