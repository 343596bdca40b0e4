"""What options may name is bound by the environment: each option of a path or a URL, out of the table."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from forebay._runtime.allowed import PATHS, URLS
from forebay.config import ConfigError, Option, ProducerConfig, Type, table
from forebay.config._oauth import token_source
from forebay.config._proxy import parse_proxy

BASE = {"bootstrap.servers": "kafka.example:9092"}
LIKE_A_PATH = re.compile(r"(location|file|keytab|socket|cmd|paths|folder|directory|path)$")
LIKE_A_URL = re.compile(r"(url|uri|endpoint)s?$")
RUN_BY_NOBODY = {"sasl.kerberos.kinit.cmd"}
"""Java's path of kinit, which is never run."""
PATH_OPTIONS = [option for option in table() if option.path]
URL_OPTIONS = [option for option in table() if option.url]


def test_the_table_marks_each_path_and_url() -> None:
    texts = [option for option in table() if option.type in (Type.STRING, Type.PASSWORD, Type.LIST)]
    assert {option.name for option in texts if LIKE_A_PATH.search(option.name)} - RUN_BY_NOBODY == {
        option.name for option in PATH_OPTIONS
    }
    assert {option.name for option in texts if LIKE_A_URL.search(option.name)} == {
        option.name for option in URL_OPTIONS
    }
    assert len(PATH_OPTIONS) >= 11 and len(URL_OPTIONS) >= 3


@pytest.mark.parametrize("option", PATH_OPTIONS, ids=lambda option: option.name)
def test_a_path_beyond_the_limit_is_refused_by_the_options_name(
    option: Option, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "way").symlink_to("/etc")
    ProducerConfig({**BASE, option.name: "/etc/hosts"})
    monkeypatch.setenv(PATHS, str(tmp_path))
    ProducerConfig({**BASE, option.name: f"{tmp_path}/a"})
    for path in ("/etc/hosts", f"{tmp_path}/../x", f"{tmp_path}/way/hosts", f" {tmp_path}/way/hosts "):
        with pytest.raises(ConfigError, match=rf"Option {re.escape(option.name)} may not name .*{PATHS}"):
            ProducerConfig({**BASE, option.name: path})
    monkeypatch.setenv(PATHS, "")
    with pytest.raises(ConfigError, match=option.name):
        ProducerConfig({**BASE, option.name: f"{tmp_path}/a"})


@pytest.mark.parametrize("option", [one for one in PATH_OPTIONS if one.type is Type.LIST], ids=lambda one: one.name)
def test_each_path_of_a_list_is_looked_at(option: Option, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PATHS, str(tmp_path))
    for paths in (f"{tmp_path}/a,/etc", [f"{tmp_path}/a", "/etc"], [f"{tmp_path}/a,/etc"]):
        with pytest.raises(ConfigError, match=f"{option.name} may not name '/etc'"):
            ProducerConfig({**BASE, option.name: paths})


@pytest.mark.parametrize("option", URL_OPTIONS, ids=lambda option: option.name)
def test_a_url_beyond_the_limit_is_refused_by_the_options_name(option: Option, monkeypatch: pytest.MonkeyPatch) -> None:
    scheme = "socks5" if option.name == "proxy.url" else "https"
    inner = "http://169.254.169.254:80"
    ProducerConfig({**BASE, option.name: inner})
    monkeypatch.setenv(URLS, f"{scheme}://good.example:1080")
    ProducerConfig({**BASE, option.name: f"{scheme}://good.example:1080"})
    for url in (inner, f"{scheme}://good.example:1081", f"{scheme}://good.example.evil.example:1080"):
        with pytest.raises(ConfigError, match=rf"option {re.escape(option.name)}.*{URLS}|{option.name} .*{URLS}"):
            ProducerConfig({**BASE, option.name: url})
    monkeypatch.setenv(URLS, "")
    with pytest.raises(ConfigError, match=option.name):
        ProducerConfig({**BASE, option.name: f"{scheme}://good.example:1080"})


def test_a_login_of_a_proxy_is_no_part_of_the_comparison_and_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URLS, "http://proxy.example:3128")
    config = ProducerConfig({**BASE, "proxy.url": "http://user:canary@proxy.example:3128"})
    assert parse_proxy(config["proxy.url"]).username == "user"
    with pytest.raises(ConfigError) as refused:
        ProducerConfig({**BASE, "proxy.url": "http://user:canary@other.example:3128"})
    assert "canary" not in str(refused.value) and URLS in str(refused.value)


def test_a_proxy_of_a_placeholder_is_judged_once_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URLS, "http://proxy.example:3128")
    monkeypatch.setenv("PROXY", "http://other.example:3128")
    config = ProducerConfig({**BASE, "config.providers": "env", "proxy.url": "${env:PROXY}"})
    with pytest.raises(ConfigError, match=URLS):
        parse_proxy(config["proxy.url"])


SECRETS = [option for option in table() if option.secret or option.placeholders]


@pytest.mark.parametrize("option", SECRETS, ids=lambda option: option.name)
@pytest.mark.parametrize("placeholder", ["${file:/etc/hosts:key}", "${directory:/etc:hosts}"])
def test_a_file_of_a_placeholder_is_bound_in_each_option(
    option: Option, placeholder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATHS, "/run/secrets")
    with pytest.raises(ConfigError, match=rf"{re.escape(option.name)} may not name '/etc/hosts': .*{PATHS}"):
        ProducerConfig({**BASE, "config.providers": "file,directory", option.name: f"a{placeholder}b"})


def test_a_file_of_a_placeholder_is_looked_at_when_it_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "p").write_text("canary")
    given = {**BASE, "config.providers": "directory", "sasl.password": f"${{directory:{tmp_path}:p}}"}
    monkeypatch.setenv(PATHS, str(tmp_path))
    config = ProducerConfig(given)
    assert config["sasl.password"].reveal() == "canary"
    (tmp_path / "p").unlink()
    (tmp_path / "p").symlink_to("/etc/hosts")
    with pytest.raises(ConfigError, match=f"sasl.password=.*{PATHS}"):
        config["sasl.password"].reveal()


def test_a_configuration_out_of_a_pickle_is_bound_where_it_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickle.dumps(ProducerConfig({**BASE, "ssl.truststore.location": "/etc/hosts"}))
    monkeypatch.setenv(PATHS, "")
    with pytest.raises(ConfigError, match="ssl.truststore.location"):
        pickle.loads(data)


KERBEROS = {**BASE, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
MODULE = 'com.sun.security.auth.module.Krb5LoginModule required serviceName="kafka"'


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("keyTab", 'useKeyTab=true keyTab="/etc/k" principal="a@B"'),
        ("keyTab", 'useKeyTab=true keyTab="file:/etc/k" principal="a@B"'),
        ("ticketCache", 'useTicketCache=true ticketCache="/etc/k"'),
        ("ticketCache", 'useTicketCache=true ticketCache="FILE:/etc/k"'),
        ("ticketCache", 'useTicketCache=true ticketCache="DIR::/etc/k"'),
        ("ticketCache", 'useTicketCache=true ticketCache="KEYRING:persistent:0"'),
    ],
)
def test_files_of_a_kerberos_module_are_bound(name: str, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jaas = f"{MODULE} {options};"
    ProducerConfig({**KERBEROS, "sasl.jaas.config": jaas})
    monkeypatch.setenv(PATHS, "/run/secrets")
    with pytest.raises(ConfigError, match=rf"sasl.jaas.config: {name} of Krb5LoginModule .*{PATHS}"):
        ProducerConfig({**KERBEROS, "sasl.jaas.config": jaas})
    ProducerConfig(
        {
            **KERBEROS,
            "sasl.jaas.config": jaas.replace("/etc/k", "/run/secrets/k").replace(
                "KEYRING:persistent:0", "/run/secrets/k"
            ),
        }
    )


def test_a_token_file_is_bound_as_a_url_and_as_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        **BASE, "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "file:///run/tokens/../../etc/hosts",
    }  # fmt: skip
    assert token_source(ProducerConfig(given)).kind == "file"
    for variable, value in ((PATHS, "/run/tokens"), (URLS, "file:///run/tokens")):
        with monkeypatch.context() as patch:
            patch.setenv(variable, value)
            with pytest.raises(ConfigError, match=rf"token.endpoint.url may not name this URL.*{variable}"):
                ProducerConfig(given)


def test_the_variables_are_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"FOREBAY_BOOTSTRAP_SERVERS": "a:1", PATHS: "/x", URLS: ""}
    assert ProducerConfig.from_env(environ=environ).originals() == {"bootstrap.servers": "a:1"}
