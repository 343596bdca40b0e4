"""An exactly-once write of a user whom a real Kafka allows only some of what it needs.

The broker has an authorizer, and the user of each test the rights that ``docs/exactly_once.md`` names, or all but one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka import admin as confluent

from forebay.errors import KafkaError, TopicAuthorizationError, TransactionalIdAuthorizationError
from forebay.spark.kept_topic import remedies
from forebay.spark.writer import DeliveryError
from tests.integration.test_exactly_once_steps import BEFORE_THE_SECOND_END, EXPECTED, TIMEOUT_MS, Sink
from tests.spark.committed import assert_exactly
from tests.support.fixtures import TopicFactory, real_kafka
from tests.support.pace import HANG_S
from tests.support.secure import PASSWORD, USER, sasl_properties
from tools.kafka import Listener, RealKafka

pytestmark = pytest.mark.rest("starts a broker that asks for rights")

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Who comes by the plain listener: the brokers themselves, and the tests.
    "super.users": "User:ANONYMOUS",
}


class Right(NamedTuple):
    """What the user may do with one resource."""

    resource: str
    operation: str


IDS, CONTROL, DATA = "transactional ids", "control topic", "topic"
NEEDED = (
    *(Right(IDS, operation) for operation in ("WRITE", "DESCRIBE")),
    *(Right(CONTROL, operation) for operation in ("READ", "WRITE", "DESCRIBE", "CREATE", "DESCRIBE_CONFIGS")),
    *(Right(DATA, operation) for operation in ("WRITE", "DESCRIBE")),
)
"""As the page says."""


@pytest.fixture(scope="module")
def guarded() -> Iterator[RealKafka]:
    """A broker that asks for rights."""
    with real_kafka(properties=PROPERTIES, listeners=[Listener("SASLP", "SASL_PLAINTEXT", sasl_properties())]) as kafka:
        yield kafka


@pytest.fixture
def sink(guarded: RealKafka, topic: TopicFactory) -> Iterator[Sink]:
    """Of a user who has no right yet."""
    made = Sink(
        guarded.address_of("SASLP"),
        topic(guarded, 3),
        TIMEOUT_MS,
        **{
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": USER,
            "kafka.sasl.password": PASSWORD,
            "kafka.max.block.ms": "5000",
        },
    )
    yield made
    made.close()


def allow(kafka: RealKafka, topic: str, *rights: Right) -> None:
    """Gives the user these rights on the topic, its control topic and the ids with its name as prefix."""
    names: Any = confluent  # they are exported, but not by __all__
    places = {
        IDS: (names.ResourceType.TRANSACTIONAL_ID, f"{topic}-", names.ResourcePatternType.PREFIXED),
        CONTROL: (names.ResourceType.TOPIC, f"__{topic}_spark_commits", names.ResourcePatternType.LITERAL),
        DATA: (names.ResourceType.TOPIC, topic, names.ResourcePatternType.LITERAL),
    }
    admin = names.AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    wanted = [
        names.AclBinding(
            *places[right.resource],
            f"User:{USER}",
            "*",
            names.AclOperation[right.operation],
            names.AclPermissionType.ALLOW,
        )
        for right in rights
    ]
    for done in admin.create_acls(wanted).values():
        done.result(HANG_S)


def run(sink: Sink, crash_at: int | None = None) -> None:
    """As Spark's planner and commit processes do."""
    settings = sink.options.exactly_once
    assert settings is not None
    with remedies(settings):
        sink.run(crash_at)


def run_twice(sink: Sink) -> None:
    """The first time nothing is read, because the control topic is empty."""
    run(sink)
    run(sink)


def test_with_the_rights_of_the_page_a_write_goes_and_what_a_crash_left_is_ended(
    guarded: RealKafka, sink: Sink
) -> None:
    allow(guarded, sink.topic, *NEEDED)
    sink.copies = True
    run(sink, BEFORE_THE_SECOND_END)
    run(sink)
    assert_exactly(guarded.bootstrap_servers, sink.topic, EXPECTED)


def without(resource: str, operation: str) -> list[Right]:
    left = [right for right in NEEDED if right != (resource, operation)]
    assert len(left) == len(NEEDED) - 1
    return left


@pytest.mark.parametrize(
    ("resource", "operation", "error", "words"),
    [
        (IDS, "WRITE", TransactionalIdAuthorizationError, "needs Write and Describe on transactional ids that begin"),
        (CONTROL, "READ", TopicAuthorizationError, "needs Read, Write and Describe on its control topic"),
        (CONTROL, "WRITE", TopicAuthorizationError, "needs Read, Write and Describe on its control topic"),
        (CONTROL, "CREATE", TopicAuthorizationError, "Create if it has to be made"),
        (DATA, "WRITE", DeliveryError, "TopicAuthorizationError: Not authorized to access topics"),
    ],
    ids=["write-ids", "read-control", "write-control", "create-control", "write-topic"],
)
def test_each_right_that_is_missing_is_an_error_that_names_it(
    guarded: RealKafka, sink: Sink, resource: str, operation: str, error: type[KafkaError], words: str
) -> None:
    allow(guarded, sink.topic, *without(resource, operation))
    with pytest.raises(error) as raised:
        run_twice(sink)
    assert words in str(raised.value) and sink.topic in str(raised.value)


def test_a_control_topic_whose_configuration_may_not_be_asked_is_one_warning(
    guarded: RealKafka, sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    allow(guarded, sink.topic, *without(CONTROL, "DESCRIBE_CONFIGS"))
    guarded.create_topic(f"__{sink.topic}_spark_commits", config={"cleanup.policy": "compact"})
    with caplog.at_level(logging.WARNING, "forebay.spark"):
        run(sink)
    (told,) = [record for record in caplog.records if record.name == "forebay.spark"]
    assert "could not be asked" in told.getMessage()
    assert_exactly(guarded.bootstrap_servers, sink.topic, EXPECTED)
