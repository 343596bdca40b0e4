"""Options from properties files and from the environment."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from forebay.aio import AsyncKafkaProducer
from forebay.config import Placeholder, ProducerConfig
from forebay.config._sources import OF_A_SERVICE
from forebay.errors import ConfigError
from forebay.producer import KafkaProducer

BROKER = {"KAFKA_BOOTSTRAP_SERVERS": "broker:9092"}
OF_KUBERNETES = {
    "KAFKA_PORT": "tcp://10.0.0.1:9092",
    "KAFKA_SERVICE_HOST": "10.0.0.1",
    "KAFKA_SERVICE_PORT": "9092",
    "KAFKA_SERVICE_PORT_TCP_CLIENT": "9092",
    "KAFKA_PORT_9092_TCP": "tcp://10.0.0.1:9092",
    "KAFKA_PORT_9092_TCP_PROTO": "tcp",
    "KAFKA_PORT_9092_TCP_PORT": "9092",
    "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
    "KAFKA_BROKERS_SERVICE_HOST": "10.0.0.2",
    "KAFKA_BROKERS_PORT": "tcp://10.0.0.2:9092",
}


def file(folder: Path, text: str, *, encoding: str = "utf-8") -> Path:
    path = folder / "producer.properties"
    path.write_bytes(text.encode(encoding))
    return path


def test_a_file_as_java_writes_it(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "# of the platform team\nbootstrap.servers=a:1,\\\n  b:2\nlinger.ms : 7\n"
        "value.serializer=org.apache.kafka.common.serialization.StringSerializer\n",
    )
    config = ProducerConfig.from_properties(path)
    assert (config["bootstrap.servers"], config["linger.ms"]) == (("a:1", "b:2"), 7)
    assert config["value.serializer"].__name__ == "StringSerializer"


def test_overrides_win_in_any_spelling_and_by_any_name(tmp_path: Path) -> None:
    path = file(tmp_path, "bootstrap.servers=a:1\nlinger.ms=7\nssl.cafile=/nowhere/ca.pem\n")
    config = ProducerConfig.from_properties(path, linger_ms=9, ssl_cafile=None)
    assert config["linger.ms"] == 9
    assert not config.explicit("ssl.truststore.location")


def test_a_refusal_names_the_line(tmp_path: Path) -> None:
    path = file(tmp_path, "bootstrap.servers=a:1\n\nlinger.mss=7\n")
    with pytest.raises(ConfigError, match=r"producer\.properties:3: Unknown option 'linger.mss': did you mean"):
        ProducerConfig.from_properties(path)
    with pytest.raises(ConfigError, match=r"producer\.properties:2: no option's name"):
        ProducerConfig.from_properties(file(tmp_path, "a=b\n=c\n"))
    with pytest.raises(ConfigError, match="nowhere.properties' cannot be read: No such file"):
        ProducerConfig.from_properties(tmp_path / "nowhere.properties")


def test_a_password_in_a_file_is_in_no_message_and_a_placeholder_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=me\n"
        "config.providers=env\n"
        "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
    )
    monkeypatch.setenv("THE_SECRET", "hush")
    config = ProducerConfig.from_properties(file(tmp_path, text + "sasl.password=${env:THE_SECRET}\n"))
    assert isinstance(config.originals()["sasl.password"], Placeholder)
    with pytest.raises(ConfigError) as refused:
        ProducerConfig.from_properties(file(tmp_path, text + "sasl.password=hush\nacks=7\n"))
    assert "hush" not in str(refused.value) and ":8: " in str(refused.value)


def test_latin_1_as_in_java(tmp_path: Path) -> None:
    path = file(tmp_path, "bootstrap.servers=a:1\nclient.id=café\n", encoding="latin-1")
    assert ProducerConfig.from_properties(path)["client.id"] == "café"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (r"client.id=a\u12", r"\u must be followed by four hexadecimal digits"),
        (r"client.id=\ud83d", "half of a surrogate pair"),
        (r"\ude00=a", "half of a surrogate pair"),
    ],
)
def test_what_java_refuses_or_utf_8_cannot_hold_names_the_line(line: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"producer\.properties:2: .*{re.escape(why)}"):
        ProducerConfig.from_properties(file(tmp_path, f"bootstrap.servers=a:1\n{line}\n"))


def test_a_character_in_two_halves_is_one(tmp_path: Path) -> None:
    path = file(tmp_path, "bootstrap.servers=a:1\nclient.id=\\ud83d\\ude00\n")
    assert ProducerConfig.from_properties(path)["client.id"] == "😀"


def test_the_environment_by_prefix() -> None:
    environ = {**BROKER, "KAFKA_LINGER_MS": "7", "KAFKA_CLIENT_ID": "", "OTHER_ACKS": "7", "kafka_acks": "7"}
    config = ProducerConfig.from_env("KAFKA_", environ)
    assert config.originals() == {"bootstrap.servers": "broker:9092", "linger.ms": "7"}
    assert ProducerConfig.from_env("KAFKA_", environ, linger_ms=9)["linger.ms"] == 9


def test_what_kubernetes_sets_for_a_service_does_nothing() -> None:
    config = ProducerConfig.from_env("KAFKA_", {**BROKER, **OF_KUBERNETES})
    assert config.originals() == {"bootstrap.servers": "broker:9092"}


def test_no_option_is_taken_for_a_variable_of_kubernetes() -> None:
    names = [name.upper().replace(".", "_") for name in ProducerConfig(bootstrap_servers="a:1")]
    assert [name for name in names if OF_A_SERVICE.fullmatch(name)] == []


@pytest.mark.parametrize("variable", ["KAFKA_LINGER_MSS", "KAFKA_HEAP_OPTS"])
def test_an_unknown_name_is_an_error_that_names_the_variable(variable: str) -> None:
    with pytest.raises(ConfigError, match=f"^environment variable {variable}: Unknown option"):
        ProducerConfig.from_env("KAFKA_", {**BROKER, variable: "7"})


def test_the_package_s_own_variables_are_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    for ours in [name for name in os.environ if name.startswith("FOREBAY_")]:
        monkeypatch.delenv(ours)  # the tests' own
    monkeypatch.setenv("FOREBAY_BOOTSTRAP_SERVERS", "broker:9092")
    monkeypatch.setenv("FOREBAY_INTERPRETED", "1")
    assert ProducerConfig.from_env()["bootstrap.servers"] == ("broker:9092",)


def test_without_a_prefix_it_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a prefix"):
        ProducerConfig.from_env("", BROKER)


def test_producers_are_made_so_too(tmp_path: Path) -> None:
    path = file(tmp_path, "bootstrap.servers=127.0.0.1:1\nlinger.ms=7\n")
    with KafkaProducer.from_properties(path, acks="1", enable_idempotence=False) as producer:
        assert (producer.config["linger.ms"], producer.config["acks"]) == (7, 1)
    with KafkaProducer.from_env("KAFKA_", {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}) as producer:
        assert producer.config["bootstrap.servers"] == ("127.0.0.1:1",)
    other = AsyncKafkaProducer.from_properties(path)
    assert other.config["linger.ms"] == 7
    asyncio.run(other.close())
