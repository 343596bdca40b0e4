"""What the driver refuses or warns of, and where a task finds its files; without Spark."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from forebay.errors import ConfigError
from forebay.spark import secrets

TLS = {"bootstrap.servers": "h:1", "security.protocol": "SSL"}
CHAIN = {"ssl.keystore.certificate.chain": "CERTIFICATE"}
PASSPHRASE = {"sasl.oauthbearer.assertion.private.key.passphrase": "hush"}


def test_a_private_key_in_the_options_is_refused() -> None:
    options = {**TLS, **CHAIN, "ssl.keystore.key": "canary"}
    with pytest.raises(ConfigError, match=r"kafka\.ssl\.keystore\.key.*forebay\.allow\.inline\.key=true") as caught:
        secrets.check(options, False)
    assert "canary" not in str(caught.value)
    with pytest.raises(ConfigError, match="private key"):
        secrets.check({**TLS, "ssl_certificate_pem": "x", "ssl_key_pem": "canary"}, False)
    secrets.check({**options, "ssl.keystore.key": "${env:KEY}", "config.providers": "env"}, False)


def test_it_is_taken_on_purpose_and_a_warning_says_what_spark_shows(caplog: pytest.LogCaptureFixture) -> None:
    secrets.check({**TLS, **CHAIN, "ssl.keystore.key": "canary"}, True)
    assert "Spark does not hide kafka.ssl.keystore.key" in caplog.text and "canary" not in caplog.text
    assert "chain" not in caplog.text, "a certificate is no secret"


@pytest.mark.parametrize(
    ("options", "conf", "said"),
    [
        ({"ssl.key.password": "hush"}, {}, False),
        ({"sasl.jaas.config": 'x.PlainLoginModule required username="u" password="p";'}, {}, False),
        ({"sasl.oauthbearer.client.secret": "hush"}, {}, False),
        (PASSPHRASE, {}, True),
        (PASSPHRASE, {"spark.redaction.regex": "passphrase"}, False),
        ({"ssl.key.password": "hush"}, {"spark.redaction.regex": "passphrase"}, True),
        ({"ssl.key.password": "hush"}, {"spark.redaction.regex": ""}, True),
        ({"ssl.key.password": "${env:X}", "config.providers": "env"}, {"spark.redaction.regex": ""}, False),
    ],
)
def test_what_the_sessions_patterns_do_not_cover_is_said(
    options: dict[str, str], conf: dict[str, str], said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    secrets.check({**TLS, **options}, False, conf.get)
    assert ("Spark does not hide" in caplog.text) is said and "hush" not in caplog.text


def test_a_task_finds_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ca.pem", "shipped.pem", "near.pem"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    options = {
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "ssl.keystore.location": "sparkfiles:shipped.pem",
        "ssl_keyfile": "near.pem",
        "linger.ms": "5",
    }
    assert secrets.in_task(options, lambda name: f"{tmp_path}/{name}") == {
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "ssl.keystore.location": str(tmp_path / "shipped.pem"),
        "ssl_keyfile": str(tmp_path / "near.pem"),
        "linger.ms": "5",
    }


def test_a_file_that_is_not_there_is_named_with_its_host(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        secrets.in_task({"ssl.ca.location": f"{tmp_path}/none.pem"})
    text = str(caught.value)
    assert f"{tmp_path}/none.pem" in text and platform.node() in text and "kafka.ssl.truststore.location" in text


def test_a_file_that_is_a_placeholder_is_left_to_the_connection() -> None:
    options = {"bootstrap.servers": "h:1", "config.providers": "env", "ssl.ca.location": "${env:FOREBAY_CA}"}
    assert secrets.in_task(options) == options
