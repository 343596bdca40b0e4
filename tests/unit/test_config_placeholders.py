"""Placeholders: where they may stand, when they are resolved, and what a provider refuses."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from forebay.config import Option, ProducerConfig, Secret, Type, refusal, table
from forebay.config._placeholders import Placeholder, Providers
from forebay.config._security_rules import credentials
from forebay.errors import ConfigError
from tests.support.nobody import as_nobody, shared_folder

SASL = {"bootstrap.servers": "h:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
ALL = Providers(("env", "file", "directory"))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOREBAY_CANARY", "from-env")
    (tmp_path / "secrets.properties").write_text("# none\nuser = alice\npass\\ word=p\\u00e4=ss\n")
    (tmp_path / "password").write_text("from-directory\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${env:FOREBAY_CANARY}", "from-env"),
        ("a${env:FOREBAY_CANARY}b${env:FOREBAY_CANARY}", "afrom-envbfrom-env"),
        ("${file:{}/secrets.properties:user}", "alice"),
        ("${file:{}/secrets.properties:pass word}", "pä=ss"),
        ("${directory:{}:password}", "from-directory"),
        ("${vault:x:y}", "${vault:x:y}"),
        ("$env:x} ${env}", "$env:x} ${env}"),
    ],
)
def test_values(files: Path, text: str, value: str) -> None:
    assert ALL.resolve(text.replace("{}", str(files))) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("${env:FOREBAY_NOT_THERE}", "no such environment variable"),
        ("${file:{}/none:user}", "No such file"),
        ("${file:{}:user}", "Is a directory"),
        ("${file:{}/secrets.properties:none}", "no key 'none'"),
        ("${file:user}", "write"),
        ("${file:{}/fifo:user}", "is no file"),
        ("${file:{}/latin:user}", "UTF-8"),
        ("${file:{}/large:user}", "more than"),
        ("${file:{}/loop:user}", "symbolic links"),
        ("${directory:{}:none}", "No such file"),
        ("${directory:{}/x:../password}", "must be a file of that folder"),
        ("${directory:{}:..}", "must be a file of that folder"),
    ],
)
def test_what_cannot_be_resolved(files: Path, text: str, why: str) -> None:
    os.mkfifo(files / "fifo")
    (files / "latin").write_bytes(b"user=\xff")
    (files / "large").write_bytes(b"user=" + b"c" * 1024 * 1024)
    (files / "loop").symlink_to(files / "loop")
    with pytest.raises(ConfigError, match=why):
        ALL.resolve(text.replace("{}", str(files)))


def test_a_file_that_may_not_be_read() -> None:
    with shared_folder() as folder:
        (folder / "x").write_text("k=canary")
        (folder / "x").chmod(0)
        with as_nobody(), pytest.raises(ConfigError, match=r"x:k\}: .*/x: Permission denied"):
            ALL.resolve(f"${{file:{folder}/x:k}}")


def test_what_is_not_allowed(files: Path) -> None:
    (files / "allowed").mkdir()
    (files / "allowed" / "a").write_text("k=v")
    (files / "allowed" / "link").symlink_to(files / "secrets.properties")
    some = Providers(("env", "file", "directory"), (str(files / "allowed"),), (str(files / "allowed"),), "KAFKA_.*")
    assert some.resolve(f"${{file:{files}/allowed/a:k}}") == "v"
    for text in (
        f"${{file:{files}/secrets.properties:user}}",
        f"${{file:{files}/allowed/../secrets.properties:user}}",
        f"${{file:{files}/allowed/link:user}}",
        f"${{directory:{files}:password}}",
        "${env:FOREBAY_CANARY}",
    ):
        with pytest.raises(ConfigError, match="allow"):
            some.resolve(text)


def login_of(options: dict[str, Any]) -> Any:
    found = credentials(ProducerConfig({**SASL, **options}))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"sasl.username": "u", "sasl.password": "${env:FOREBAY_CANARY}"},
        {"sasl.username": "${env:FOREBAY_USER}", "sasl.password": "${env:FOREBAY_CANARY}"},
        {"sasl.jaas.config": 'x.PlainLoginModule required username="u" password="${env:FOREBAY_CANARY}";'},
        {"sasl.jaas.config": "${env:FOREBAY_JAAS}"},
    ],
)
def test_a_configuration_and_its_pickle_hold_the_placeholder(
    options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is not there when the configuration is made may be there where the connection is.
    config = ProducerConfig({**SASL, **options, "config.providers": "env"})
    monkeypatch.setenv("FOREBAY_CANARY", "canary")
    monkeypatch.setenv("FOREBAY_USER", "u")
    monkeypatch.setenv("FOREBAY_JAAS", 'x.PlainLoginModule required username="u" password="canary";')
    dumped = pickle.dumps(config)
    assert b"canary" not in dumped
    login = credentials(pickle.loads(dumped))
    assert login is not None and login.deferred
    assert login.read() == ("u", Secret("canary"), False)
    assert "canary" not in repr(config) + config.describe() + repr(login.read())
    monkeypatch.setenv("FOREBAY_CANARY", "other")
    assert login.deferred, "it is read at each login"


@pytest.mark.parametrize("name", ["truststore", "keystore", "key", "crl"])
def test_the_files_of_tls_may_be_placeholders(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    option = f"ssl.{name}.location"
    more = {"ssl.keystore.location": "x"} if name == "key" else {}
    given = {"bootstrap.servers": "h:1", "security.protocol": "SSL", **more, option: "${env:FOREBAY_FOLDER}/a.pem"}
    config = ProducerConfig({**given, "config.providers": "env"})
    monkeypatch.setenv("FOREBAY_FOLDER", "/srv")
    assert pickle.loads(pickle.dumps(config))[option].reveal() == "/srv/a.pem"
    assert ProducerConfig(given)[option] == "${env:FOREBAY_FOLDER}/a.pem", "as it is, without a provider"


def test_a_placeholder_shows_itself_and_what_is_beside_it_does_not() -> None:
    assert repr(Placeholder("${env:PW}", ALL)) == "${env:PW}"
    assert repr(Placeholder("canary${env:PW}", ALL)) == "[hidden]"


def test_without_providers_it_is_a_password_and_a_warning_says_so() -> None:
    config = ProducerConfig({**SASL, "sasl.username": "u", "sasl.password": "${env:PW}"})
    assert config["sasl.password"].reveal() == "${env:PW}"
    assert any("sasl.password looks like a placeholder" in note.text for note in config.notes)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"config.providers": "vault"}, "only env, file, directory"),
        ({"config.providers": "env", "linger.ms": "${env:LINGER}"}, "linger.ms=.*no such environment variable"),
        ({"config.providers": "env", "config.providers.env.param.allowlist.pattern": "("}, "regular expression"),
        ({"config.providers": "file", "config.providers.file.class": "a.B"}, "FileConfigProvider"),
    ],
)
def test_options_that_are_refused(options: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        ProducerConfig({"bootstrap.servers": "h:1", **options})


ORDINARY = [
    option
    for option in table()
    if not (option.secret or option.placeholders or option.name.startswith("config.providers"))
    and option.type in (Type.STRING, Type.LIST, Type.INT, Type.LONG, Type.BOOLEAN)
    and not option.convert
]


@pytest.mark.parametrize("option", ORDINARY, ids=lambda option: option.name)
def test_each_other_option_is_resolved_when_the_configuration_is_made(
    option: Option, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = {Type.BOOLEAN: "true", Type.INT: "70000", Type.LONG: "70000"}.get(option.type, "x")
    plain = option.choices[0] if option.choices else "h:1" if option.name == "bootstrap.servers" else plain
    given = {"bootstrap.servers": "h:1", option.name: plain}
    refused = refusal(option.name, plain)
    monkeypatch.setenv("FOREBAY_VALUE", plain)
    asked = {**given, option.name: "${env:FOREBAY_VALUE}", "config.providers": "env"}
    if refused is not None:
        with pytest.raises(ConfigError, match=re.escape(option.name)):
            ProducerConfig(asked)
        return
    config = ProducerConfig(asked)
    assert config[option.name] == ProducerConfig(given)[option.name]
    assert pickle.loads(pickle.dumps(config))[option.name] == config[option.name]
    assert f"{option.name} = ${{env:FOREBAY_VALUE}} (given)" in config.describe() or option.guarded
    monkeypatch.delenv("FOREBAY_VALUE")
    with pytest.raises(ConfigError, match=re.escape(f"{option.name}=${{env:FOREBAY_VALUE}}: there is no such")):
        ProducerConfig(asked)


def test_what_a_placeholder_stands_for_is_in_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_VALUE", "canary")
    for name in ("linger.ms", "acks", "enable.idempotence", "security.protocol", "compression.zstd.level"):
        with pytest.raises(
            ConfigError, match=re.escape(f"option {name}: what stands for ${{env:FOREBAY_VALUE}}")
        ) as error:
            ProducerConfig({"bootstrap.servers": "h:1", name: "${env:FOREBAY_VALUE}", "config.providers": "env"})
        assert "canary" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["config.providers.env.param.allowlist.pattern", "config.providers.file.param.allowed.paths"]
)
def test_no_placeholder_says_what_placeholders_may_read(name: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(name)):
        ProducerConfig({"bootstrap.servers": "h:1", name: "${env:HOME}", "config.providers": "env"})
