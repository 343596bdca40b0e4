"""Topics, made on demand and described."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from forebay._protocol.versions import ApiKey
from forebay.errors import (
    IllegalArgumentError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    PolicyViolationError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from tests.fakes.broker import Partition, Received, Topic
from tests.unit.admin.world import AdminWorld

CREATE, DELETE = ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS


def test_a_topic_is_made_as_it_was_asked_for() -> None:
    world = AdminWorld()
    assert world.admin.create_topic(
        "t", partitions=3, replication_factor=2, configs={"cleanup.policy": "compact", "retention.ms": 5, "x": None}
    )
    (request,) = world.asked(CREATE)
    (topic,) = request.body.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("t", 3, 2)
    configs = {config.name: config.value for config in topic.configs}
    assert configs == {"cleanup.policy": "compact", "retention.ms": "5", "x": None}
    assert (request.body.timeout, request.body.validate_only) == (timedelta(milliseconds=2000), False)


def test_one_that_is_there_is_no_error() -> None:
    world = AdminWorld()
    world.codes[CREATE].append(36)
    assert world.admin.create_topic("t") is False


@pytest.mark.parametrize(("code", "kind"), [(17, InvalidTopicError), (44, PolicyViolationError)])
def test_a_refusal_has_the_controller_s_words(code: int, kind: type[Exception]) -> None:
    world = AdminWorld()
    world.codes[CREATE].append(code)
    with pytest.raises(kind, match=r"because \(topic=t, node=1\)"):
        world.admin.create_topic("t")


def test_a_controller_that_moved_is_looked_up_again() -> None:
    world = AdminWorld()
    world.codes[CREATE].extend([41, 41])
    assert world.admin.create_topic("t") is True
    assert len(world.asked(CREATE)) == 3


def test_a_topic_is_deleted_by_its_name() -> None:
    world = AdminWorld()
    assert world.admin.delete_topic("t") is True
    (request,) = world.asked(DELETE)
    assert [topic.name for topic in request.body.topics] == ["t"]
    assert request.body.timeout == timedelta(milliseconds=2000)


def test_to_delete_one_that_is_not_there_is_no_error() -> None:
    world = AdminWorld()
    world.codes[DELETE].append(3)
    assert world.admin.delete_topic("t") is False


def test_a_controller_that_moved_is_looked_up_again_for_a_deletion() -> None:
    world = AdminWorld()
    world.codes[DELETE].extend([41, 41])
    assert world.admin.delete_topic("t") is True
    assert len(world.asked(DELETE)) == 3


def test_a_cluster_that_deletes_no_topics_says_so() -> None:
    world = AdminWorld()
    world.codes[DELETE].append(73)
    with pytest.raises(KafkaError, match=r"because \(topic=t, node=1\)"):
        world.admin.delete_topic("t")


@pytest.mark.parametrize("name", ["", "a b", None])
def test_what_is_no_topic_is_not_deleted(name: Any) -> None:
    world = AdminWorld()
    with pytest.raises(KafkaError):
        world.admin.delete_topic(name)
    assert not world.asked(DELETE)


def test_a_quota_is_waited_for_until_time_is_over() -> None:
    world = AdminWorld()
    world.codes[CREATE].extend([89] * 100)
    with pytest.raises(KafkaTimeoutError, match="create_topic was not done within 1 s: because"):
        world.admin.create_topic("t", timeout=1)


def test_without_defaults_an_old_broker_will_do() -> None:
    world = AdminWorld()
    world.broker().ranges[CREATE] = (2, 3)
    assert world.admin.create_topic("t", partitions=1, replication_factor=1)
    with pytest.raises(UnsupportedVersionError, match="CreateTopics versions 2 to 3 only; versions 4 to 7"):
        world.admin.create_topic("t", partitions=1)


def test_a_cluster_is_described_without_making_a_topic() -> None:
    world = AdminWorld(2)
    world.cluster.topics["a"] = Topic([Partition(leader=2), Partition(leader=-1)])

    def answer(request: Received) -> None:
        names = None if request.body.topics is not None else tuple(world.cluster.topics)
        request.answer(world.cluster.metadata(request, names))

    for broker in world.cluster.brokers.values():
        broker.script[ApiKey.METADATA] = answer
    found = world.admin.describe_cluster()
    assert [node.id for node in found.nodes] == [1, 2]
    assert found.controller is not None and found.controller.id == 1
    a, t = found.topics
    assert (a.name, t.name, a.error, a.is_internal) == ("a", "t", None, False)
    assert [(each.partition, each.leader and each.leader.id) for each in a.partitions] == [(0, 2), (1, None)]
    assert [topic.name for topic in world.admin.describe_cluster("t").topics] == ["t"]
    (gone,) = world.admin.describe_cluster("gone").topics
    assert isinstance(gone.error, UnknownTopicOrPartitionError) and gone.partitions == ()
    assert "gone" not in world.cluster.topics
    *_, named = world.asked(ApiKey.METADATA)
    assert named.body.allow_auto_topic_creation is False
    with pytest.raises(IllegalArgumentError, match="topic must be a non-empty str"):
        world.admin.describe_cluster("")


@pytest.mark.parametrize(
    ("newest", "bits", "told"),
    [(13, 1 << 4 | 1 << 8, {"WRITE", "DESCRIBE"}), (8, 1 << 3, {"READ"}), (8, 0, set()), (7, 1 << 4, None)],
)
def test_a_named_topic_tells_what_may_be_done_to_it(newest: int, bits: int, told: set[str] | None) -> None:
    world = AdminWorld()
    world.cluster.topics["t"].operations = bits
    world.broker().ranges[ApiKey.METADATA] = (0, newest)
    assert [topic.operations for topic in world.admin.describe_cluster("t").topics] == [told]
    assert [topic.operations for topic in world.admin.describe_cluster().topics if topic.name == "t"] in ([], [None])


def test_a_topics_configuration_is_read_by_key() -> None:
    world = AdminWorld()
    world.configs["t"] = {"cleanup.policy": "compact", "retention.ms": None, "other": "x"}
    found = world.admin.topic_configs("t", ["cleanup.policy", "retention.ms", "no.such.key"])
    assert found == {"cleanup.policy": "compact", "retention.ms": None}
    (request,) = world.asked(ApiKey.DESCRIBE_CONFIGS)
    (asked,) = request.body.resources
    assert (asked.resource_type, asked.resource_name) == (2, "t")
    assert (request.body.include_synonyms, request.body.include_documentation) == (False, False)


def test_a_configuration_that_may_not_be_read_is_an_error() -> None:
    world = AdminWorld()
    world.codes[ApiKey.DESCRIBE_CONFIGS].extend([29, 3])
    with pytest.raises(TopicAuthorizationError, match="because"):
        world.admin.topic_configs("t", ["cleanup.policy"])
    # A topic that was made a moment ago is not known everywhere.
    assert world.admin.topic_configs("t", ["cleanup.policy"]) == {}
