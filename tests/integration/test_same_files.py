"""The same properties file for Java's console producer, for confluent-kafka and for forebay; each logs in with it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from forebay import KafkaProducer
from forebay.cli.properties import load_properties
from tests.integration.test_security import JAAS
from tests.support.fixtures import ReadBackFactory, TopicFactory
from tests.support.pace import HANG_S
from tests.support.secure import PASSWORD, USER, Secure, java_escaped

pytestmark = pytest.mark.rest("each file is read by a Java client, too, which is a JVM of its own")

SCRAM, PLAIN = "scram.ScramLoginModule", "plain.PlainLoginModule"


def tls(secure: Secure) -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(secure.ca)}


def java_login(secure: Secure, listener: str, mechanism: str, module: str) -> dict[str, str]:
    jaas = JAAS.format(module=module, user=USER, password=PASSWORD)
    return {**secure.options(listener), **tls(secure), "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}


def rdkafka(secure: Secure, listener: str, **more: str) -> dict[str, str]:
    options = secure.options(listener)
    options.pop("ssl.keystore.location", None)
    store = options.pop("ssl.truststore.location", None)
    return {**options, **({"ssl.ca.location": store} if store else {}), **more}


FILES_OF_JAVA: dict[str, Callable[[Secure], Mapping[str, str]]] = {
    "tls": lambda secure: {**secure.options("SSL"), **tls(secure)},
    "mutual tls": lambda secure: {**secure.options("MTLS"), **tls(secure), "ssl.keystore.type": "PEM"},
    "keys in the file": lambda secure: {
        "bootstrap.servers": secure.kafka.address_of("MTLS"),
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": secure.ca.read_text(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": secure.client.key.read_text(),
        "ssl.keystore.certificate.chain": secure.client.chain.read_text(),
    },
    "scram over tls": lambda secure: java_login(secure, "SASLS", "SCRAM-SHA-512", SCRAM),
    "plain over tls": lambda secure: java_login(secure, "SASLS", "PLAIN", PLAIN),
}
LOGIN = {"sasl.username": USER, "sasl.password": PASSWORD}
FILES_OF_LIBRDKAFKA: dict[str, Callable[[Secure], Mapping[str, str]]] = {
    "tls": lambda secure: rdkafka(secure, "SSL"),
    "mutual tls": lambda secure: rdkafka(
        secure,
        "MTLS",
        **{"ssl.certificate.location": str(secure.client.chain), "ssl.key.location": str(secure.client.key)},
    ),
    "keys in the file": lambda secure: {
        "bootstrap.servers": secure.kafka.address_of("MTLS"),
        "security.protocol": "ssl",
        "ssl.ca.pem": secure.ca.read_text(),
        "ssl.certificate.pem": secure.client.chain.read_text(),
        "ssl.key.pem": secure.client.key.read_text(),
        "enable.ssl.certificate.verification": "true",
        "ssl.endpoint.identification.algorithm": "https",
    },
    "scram over tls": lambda secure: rdkafka(secure, "SASLS", **{"sasl.mechanisms": "SCRAM-SHA-256", **LOGIN}),
    "plain": lambda secure: rdkafka(secure, "SASLP", **{"sasl.mechanism": "PLAIN", **LOGIN}),
}


def written(options: Mapping[str, str], folder: Path) -> Path:
    """A properties file as Java reads it: Latin-1, with line ends and backslashes escaped."""
    path = folder / "client.properties"
    lines = []
    for name, value in options.items():
        text = java_escaped(value.replace("\\", "\\\\").replace("\n", "\\n"))
        lines.append(f"{name}={text}\n")
    path.write_text("".join(lines), encoding="latin-1")
    return path


def ours(options: Mapping[str, Any], topic: str) -> None:
    with KafkaProducer(options) as producer:
        producer.send(topic, b"forebay").result(HANG_S)


@pytest.mark.parametrize("name", FILES_OF_JAVA)
def test_a_file_of_javas(
    secure: Secure, topic: TopicFactory, read_back: ReadBackFactory, tmp_path: Path, name: str
) -> None:
    place = topic(secure.kafka, 1)
    path = written(FILES_OF_JAVA[name](secure), tmp_path)
    options = {key: value for _, key, value in load_properties(str(path))}
    ours(options, place)
    command = secure.kafka.tool_command(
        "org.apache.kafka.tools.ConsoleProducer",
        *("--bootstrap-server", options["bootstrap.servers"], "--topic", place, "--command-config", str(path)),
    )
    done = subprocess.run(command, input="java\n", capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = read_back(secure.kafka, place).wait_for(2)
    assert [record.value for record in found] == [b"forebay", b"java"], done.stderr[-2000:]


@pytest.mark.parametrize("name", FILES_OF_LIBRDKAFKA)
def test_a_file_of_librdkafkas(
    secure: Secure, topic: TopicFactory, read_back: ReadBackFactory, tmp_path: Path, name: str
) -> None:
    place = topic(secure.kafka, 1)
    options = {
        key: value for _, key, value in load_properties(str(written(FILES_OF_LIBRDKAFKA[name](secure), tmp_path)))
    }
    ours(options, place)
    theirs: Any = Producer({**options})
    theirs.produce(place, b"confluent-kafka")
    assert theirs.flush(HANG_S) == 0
    found = read_back(secure.kafka, place).wait_for(2)
    assert [record.value for record in found] == [b"forebay", b"confluent-kafka"]
