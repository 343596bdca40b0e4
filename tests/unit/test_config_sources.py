"""Options from properties files and from the environment."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from pathlib import Path

import pytest

from forebay.cli.commands import execute
from forebay.config import ProducerConfig, is_option, table
from forebay.config._aliases import ALIASES
from forebay.config._hints import _NO_OPTION, _OTHER_NAMES
from forebay.config._placeholders import Placeholder
from forebay.config._sources import OF_A_SERVICE, OF_KAFKA
from forebay.errors import ConfigError
from forebay.producer import KafkaProducer
from forebay.producer.aio import AsyncKafkaProducer

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


SCRIPTS = """
    HEAP_OPTS OPTS JMX_OPTS JMX_PORT LOG4J_OPTS LOG4J_CMD_OPTS GC_LOG_OPTS JVM_PERFORMANCE_OPTS DEBUG MODE HOME DIR
    """
APACHE = """
    NODE_ID PROCESS_ROLES LISTENERS ADVERTISED_LISTENERS CONTROLLER_QUORUM_VOTERS CONTROLLER_LISTENER_NAMES LOG_DIRS
    INTER_BROKER_LISTENER_NAME LISTENER_SECURITY_PROTOCOL_MAP OFFSETS_TOPIC_REPLICATION_FACTOR NUM_PARTITIONS
    TRANSACTION_STATE_LOG_REPLICATION_FACTOR TRANSACTION_STATE_LOG_MIN_ISR GROUP_INITIAL_REBALANCE_DELAY_MS
    SSL_CLIENT_AUTH SSL_KEYSTORE_FILENAME SSL_KEYSTORE_CREDENTIALS SSL_KEY_CREDENTIALS SSL_TRUSTSTORE_FILENAME
    SSL_TRUSTSTORE_CREDENTIALS SSL_KEY_CREDENTIALS_LOCATION SSL_TRUSTSTORE_CREDENTIALS_LOCATION JMX_HOSTNAME CLUSTER_ID
    SSL_KEYSTORE_CREDENTIALS_LOCATION LOG4J_LOGGERS LOG4J_ROOT_LOGLEVEL SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR
    """
CONFLUENT = """
    VERSION ZOOKEEPER_CONNECT BROKER_ID ADVERTISED_HOST ADVERTISED_PORT DATA_DIRS SSL_SECRETS_DIR SUPER_USERS
    TOOLS_LOG4J_LOGLEVEL SECURITY_INTER_BROKER_PROTOCOL SASL_MECHANISM_INTER_BROKER_PROTOCOL SASL_ENABLED_MECHANISMS
    AUTHORIZER_CLASS_NAME AUTO_CREATE_TOPICS_ENABLE CONFLUENT_BALANCER_ENABLE CONFLUENT_METADATA_SERVER_LISTENERS
    LISTENER_NAME_INTERNAL_PLAIN_SASL_JAAS_CONFIG REST_BOOTSTRAP_SERVERS REST_LISTENERS REST_OPTS REST_HOST_NAME
    SASL_MECHANISM_CONTROLLER_PROTOCOL MIN_INSYNC_REPLICAS DEFAULT_REPLICATION_FACTOR LOG_RETENTION_HOURS
    """
BITNAMI = """
    INTER_BROKER_USER INTER_BROKER_PASSWORD CONTROLLER_USER CONTROLLER_PASSWORD CERTIFICATE_PASSWORD TLS_TRUSTSTORE_FILE
    TLS_TYPE TLS_CLIENT_AUTH CFG_SASL_ENABLED_MECHANISMS CFG_NODE_ID KRAFT_CLUSTER_ID SKIP_KRAFT_STORAGE_INIT
    CLIENT_LISTENER_NAME CLIENT_USERS CLIENT_PASSWORDS ZOOKEEPER_PROTOCOL ZOOKEEPER_PASSWORD ZOOKEEPER_USER
    ZOOKEEPER_TLS_VERIFY_HOSTNAME BASE_DIR VOLUME_DIR DATA_DIR CONF_DIR CONF_FILE MOUNTED_CONF_DIR CERTS_DIR LOG_DIR
    INITSCRIPTS_DIR DAEMON_USER DAEMON_GROUP ENABLE_KRAFT INITIAL_CONTROLLERS CLIENT_PASSWORDS_FILE
    INTER_BROKER_PASSWORD_FILE
    """
STRIMZI = """
    EXPORTER_VERSION EXPORTER_HOME EXPORTER_KAFKA_SERVER EXPORTER_TOPIC_REGEX JMX_EXPORTER_ENABLED DIST_DIR
    CONNECT_JMX_EXPORTER_ENABLED
    """
WURSTMEISTER = "CREATE_TOPICS ADVERTISED_HOST_NAME BROKER_RACK"
OF_IMAGES = [
    f"KAFKA_{name}" for text in (SCRIPTS, APACHE, CONFLUENT, BITNAMI, STRIMZI, WURSTMEISTER) for name in text.split()
]


@pytest.mark.parametrize("variable", OF_IMAGES)
def test_what_kafka_s_scripts_and_images_set_is_passed_over(variable: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "forebay.config"):
        config = ProducerConfig.from_env("KAFKA_", {**BROKER, variable: "x"})
    assert config.originals() == {"bootstrap.servers": "broker:9092"}
    assert [record.message for record in caplog.records if variable in record.message] == [
        f"Environment variables of Kafka's scripts and images are no options: {variable}"
    ]


def test_all_that_is_passed_over_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "forebay.config"):
        ProducerConfig.from_env("KAFKA_", {**BROKER, **dict.fromkeys(OF_IMAGES, "x")})
    (line,) = (record.message for record in caplog.records)
    assert all(variable in line for variable in OF_IMAGES)


def test_what_is_an_option_or_has_a_hint_is_not_passed_over() -> None:
    names = [*(option.name for option in table()), *ALIASES, *_OTHER_NAMES, *_NO_OPTION]
    taken = [name for name in names if OF_KAFKA.fullmatch("KAFKA_" + name.upper().replace(".", "_"))]
    assert [name for name in taken if not is_option(name)] == ["debug"]  # Kafka's scripts have it, too
    environ = {**BROKER, "KAFKA_SSL_KEYSTORE_LOCATION": "/k.jks", "KAFKA_SECURITY_PROTOCOL": "PLAINTEXT"}
    assert {"ssl.keystore.location", "security.protocol"} < {*ProducerConfig.from_env("KAFKA_", environ).originals()}
    with pytest.raises(ConfigError, match="^environment variable MY_HEAP_OPTS: Unknown option"):
        ProducerConfig.from_env("MY_", {"MY_BOOTSTRAP_SERVERS": "broker:9092", "MY_HEAP_OPTS": "x"})


SECURE = (
    "bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=me\nsasl.password=hush\n"
    "ssl.truststore.type=PEM\nssl.cipher.suites=A\nssl.check.hostname=true\n"
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sasl.mechanismm=PLAIN", "9: Unknown option 'sasl.mechanismm'"),
        ("acks=7", "9: Invalid value '7' for option acks"),
        ("ssl.enabled.protocols=TLSv9", "9: ssl.enabled.protocols: 'TLSv9' is not allowed"),
        ("ssl.protocol=TLSv9", "9: ssl.protocol is 'TLSv9'"),
        ("ssl.endpoint.identification.algorithm=x", "Option ssl.endpoint.identification.algorithm is given twice"),
        ("ssl.keystore.key=x", "9: ssl.keystore.key and ssl.keystore.certificate.chain need each other"),
        ("sasl.jaas.config=x", "4, {0}:5, {0}:9: sasl.jaas.config and sasl.username, sasl.password cannot both"),
        ("delivery.timeout.ms=1", "9: delivery.timeout.ms is 1: must be at least"),
    ],
)
def test_a_refusal_names_its_lines_and_nothing_else_is_said(
    line: str, expected: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = file(tmp_path, f"{SECURE}{line}\n")
    with pytest.raises(ConfigError) as refused:
        ProducerConfig.from_properties(path)
    assert expected.format(path) in str(refused.value) and str(refused.value).startswith(f"{path}:")
    assert "hush" not in str(refused.value)
    assert caplog.records == []
    assert execute(["topics", "-F", str(path)]) == 2  # the same words on the command line
    assert caplog.records == []


@pytest.mark.parametrize("variable", ["KAFKA_LINGER_MSS", "KAFKA_GROUP_ID", "KAFKA_BROKER_LIST"])
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
