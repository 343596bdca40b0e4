"""What metadata knows of the cluster: topics, their errors, leaders, and starting over."""

from __future__ import annotations

import pytest

from forebay._network.metadata import Metadata, MetadataQuery
from forebay.errors import InvalidTopicError, KafkaError, TopicAuthorizationError, UnknownTopicOrPartitionError
from forebay.model import Node, TopicPartition
from forebay.model._cluster import Cluster

from .metadata_cases import Waker, metadata, update
from .replies import NODES, partition, reply, topic


def test_picture_holds_what_the_response_said() -> None:
    """N testClusterCopy: counts, nodes, cluster id, and the refused topics."""
    fresh = metadata("topic1", "topic2", "bad", "secret")
    update(fresh, reply(topic("bad", error=17), topic("secret", error=29), counts={"topic1": 2, "topic2": 3}))
    cluster = fresh.cluster()
    assert (cluster.partition_count("topic1"), cluster.partition_count("topic2")) == (2, 3)
    assert (cluster.cluster_id, set(cluster.nodes)) == ("dummy", set(NODES))
    assert (set(cluster.invalid_topics), set(cluster.unauthorized_topics)) == ({"bad"}, {"secret"})
    assert cluster.topics == {"topic1", "topic2"}


def test_metadata_merge() -> None:
    """N testMetadataMerge: a partial answer adds and replaces, the unwanted vanishes, brokers are the new ones."""
    fresh = metadata("a", "b", "bad", "secret")
    update(fresh, reply(topic("bad", error=17), topic("secret", error=29), counts={"a": 2, "b": 3}))
    fresh.add_topic("c", 0)
    query = update(fresh, reply(topic("bad", error=17), counts={"c": 4}, nodes=NODES[:2], cluster_id="other"))
    assert query == MetadataQuery(("c",), True, query.asked)
    cluster = fresh.cluster()
    assert {name: cluster.partition_count(name) for name in cluster.topics} == {"a": 2, "b": 3, "c": 4}
    assert (set(cluster.invalid_topics), set(cluster.unauthorized_topics)) == ({"bad"}, {"secret"})
    assert (cluster.cluster_id, set(cluster.nodes)) == ("other", set(NODES[:2]))
    led_by_the_lost = cluster.partition("b", 2)
    assert led_by_the_lost is not None
    assert led_by_the_lost.leader is None
    update(fresh, reply(topic("a", error=29), topic("bad", partition(0)), topic("secret", partition(0))), partial=True)
    cluster = fresh.cluster()
    assert cluster.topics == {"b", "c", "bad", "secret"}
    assert (set(cluster.invalid_topics), set(cluster.unauthorized_topics)) == (set(), {"a"})


def test_dropped_topics_vanish_from_every_set() -> None:
    """N testMetadataMerge, second half: nothing is left of topics that are not wanted any more."""
    fresh = metadata("a", "bad", "secret", idle_ms=5000)
    update(fresh, reply(topic("bad", error=17), topic("secret", error=29), counts={"a": 2}), 0)
    update(fresh, reply(topic("bad", error=17), topic("secret", error=29), counts={"a": 2}), 6000)
    cluster = fresh.cluster()
    assert not (cluster.topics | cluster.invalid_topics | cluster.unauthorized_topics)
    assert fresh.topics == ()


@pytest.mark.parametrize(("code", "kind"), [(17, InvalidTopicError), (29, TopicAuthorizationError)])
def test_topic_errors(code: int, kind: type[KafkaError]) -> None:
    """N testInvalidTopicError, testTopicAuthorizationError: known to its callers, and gone with a good answer."""
    fresh = metadata("bad", "good")
    asked_at = fresh.request_update_for_topic("bad")
    update(fresh, reply(topic("bad", error=code), counts={"good": 1}))
    error = fresh.topic_error("bad", asked_at)
    assert isinstance(error, kind)
    assert "bad" in str(error)
    # Who asks again waits for the next answer instead of taking this one; others still see it.
    assert fresh.topic_error("bad", fresh.version) is None
    assert isinstance(fresh.topic_error("bad"), kind)
    update(fresh, reply(counts={"good": 1, "bad": 1}))
    assert fresh.topic_error("bad") is None


def test_topic_errors_concern_their_topic_only() -> None:
    """N testMetadataTopicErrors: one topic's error is not another's, and a partial answer keeps the others' errors."""
    fresh = metadata("bad", "secret", "good")
    update(fresh, reply(topic("bad", error=17), topic("secret", error=29), counts={"good": 1}))
    assert isinstance(fresh.topic_error("bad"), InvalidTopicError)
    assert isinstance(fresh.topic_error("secret"), TopicAuthorizationError)
    assert fresh.topic_error("good") is None
    fresh.raise_if_failed()
    update(fresh, reply(topic("bad", partition(0))), partial=True)
    assert fresh.topic_error("bad") is None
    assert isinstance(fresh.topic_error("secret"), TopicAuthorizationError)


@pytest.mark.parametrize("code", [3, 5])
def test_passing_topic_errors_are_asked_again(code: int, caplog: pytest.LogCaptureFixture) -> None:
    fresh = metadata("topic-1")
    update(fresh, reply(topic("topic-1", error=code)))
    assert fresh.topic_error("topic-1") is None
    assert fresh.update_requested
    assert fresh.time_to_next_update(0) == 100
    assert "topic-1=" in caplog.text


def test_last_error_says_what_stands_behind_an_absence() -> None:
    fresh = metadata("topic-1")
    assert fresh.last_error("topic-1") is None
    lost = KafkaError("refused")
    fresh.note_failure(lost)
    assert fresh.last_error("topic-1") is lost
    update(fresh, reply(topic("topic-1", error=3)))
    assert isinstance(fresh.last_error("topic-1"), UnknownTopicOrPartitionError)
    update(fresh, reply(counts={"topic-1": 1}))
    assert fresh.last_error("topic-1") is None


def test_partition_without_leader_is_asked_again() -> None:
    fresh = metadata("topic-1")
    update(fresh, reply(topic("topic-1", partition(0, -1, 4, error=5), partition(1, 2, 4))))
    assert fresh.update_requested
    assert fresh.cluster().available_partitions("topic-1") == (1,)


def test_listener_hears_of_the_cluster() -> None:
    """N testClusterListenerGetsNotifiedOfUpdate: not of the bootstrap servers, then of cluster "dummy"."""
    seen: list[Cluster] = []
    fresh = metadata(seen=seen)
    assert seen == []
    update(fresh, reply())
    assert [cluster.cluster_id for cluster in seen] == ["dummy"]


def test_a_failing_listener_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def explode(cluster: Cluster) -> None:
        raise RuntimeError("no")

    fresh = Metadata(
        refresh_backoff_ms=1,
        refresh_backoff_max_ms=1,
        max_age_ms=1,
        max_idle_ms=1,
        random=lambda: 0,
        on_update=[explode],
    )
    update(fresh, reply())
    assert fresh.version == 1
    assert "failed on a metadata update" in caplog.text


def test_idle_topics_are_dropped() -> None:
    fresh = metadata(idle_ms=5000)
    fresh.add_topic("kept", 0)
    fresh.add_topic("idle", 0)
    update(fresh, reply(counts={"kept": 1, "idle": 1}), 0)
    fresh.add_topic("kept", 3000)
    update(fresh, reply(counts={"kept": 1, "idle": 1}), 5000)
    assert (fresh.retains("kept"), fresh.retains("idle")) == (True, False)
    assert fresh.cluster().topics == {"kept"}
    assert fresh.add_topic("idle", 5000)  # new again


def test_a_topic_in_use_is_not_idle() -> None:
    fresh = metadata(idle_ms=5000)
    used: dict[str, float] = {"used": 700}
    fresh.in_use = lambda name, since: used.get(name, -1) >= since
    fresh.add_topic("used", 0)
    fresh.add_topic("idle", 0)
    update(fresh, reply(counts={"used": 1, "idle": 1}), 0)
    update(fresh, reply(counts={"used": 1, "idle": 1}), 5700)
    assert (fresh.retains("used"), fresh.retains("idle")) == (True, False)
    update(fresh, reply(counts={"used": 1}), 5701)
    assert not fresh.retains("used")


def test_a_topic_never_answered_is_not_idle() -> None:
    fresh = metadata(idle_ms=5000)
    fresh.add_topic("slow", 0)
    query = fresh.next_query(9000)
    fresh.update(query, reply(), 12, 9000)
    assert fresh.retains("slow")


def test_empty_cluster_id_and_missing_leader() -> None:
    """M MetadataSnapshotTest: a leader without an address is no leader, its replicas stay."""
    fresh = metadata("topic-1")
    update(fresh, reply(topic("topic-1", partition(0, 3, 10)), nodes=NODES[:2], cluster_id=None))
    info = fresh.cluster().partition("topic-1", 0)
    assert info is not None
    assert (info.leader, info.leader_epoch, info.replicas) == (None, 10, (1, 2, 3))
    assert fresh.cluster().leader(TopicPartition("topic-1", 9)) is None


def test_rebootstrap_keeps_partitions_without_leaders() -> None:
    fresh = metadata("t")
    update(fresh, reply(counts={"t": 3}, epoch=7))
    version = fresh.version
    fresh.rebootstrap()
    assert fresh.is_bootstrap
    assert fresh.cluster().nodes == (Node(-1, "boot", 9092),)
    assert (fresh.cluster().partition_count("t"), fresh.cluster().available_partitions("t")) == (3, ())
    assert fresh.version == version + 1
    assert fresh.update_requested
    update(fresh, reply(counts={"t": 3}, epoch=7))
    assert len(fresh.cluster().available_partitions("t")) == 3


def test_a_bootstrap_server_is_replaced_by_its_names() -> None:
    fresh = metadata("t")
    fresh.bootstrap([Node(-1, "kafka", 9092), Node(-2, "two", 9092), Node(-3, "two", 9093)])
    ticket = Waker()
    assert not fresh.await_version(fresh.version, ticket)
    fresh.expand_bootstrap(Node(-1, "kafka", 9092), ["one", "two", "three"], 0)
    nodes = {Node(-1, "one", 9092), Node(-2, "two", 9092), Node(-3, "two", 9093), Node(-4, "three", 9092)}
    assert set(fresh.cluster().nodes) == nodes
    assert (fresh.version, ticket.count) == (0, 0)
    fresh.expand_bootstrap(Node(-1, "kafka", 9092), ["again"], 0)
    assert set(fresh.cluster().nodes) == nodes


def test_names_that_come_after_the_brokers_are_for_starting_over() -> None:
    fresh = metadata("t")
    update(fresh, reply(counts={"t": 1}))
    fresh.expand_bootstrap(Node(-1, "boot", 9092), ["one"], 0)
    assert set(fresh.cluster().nodes) == set(NODES)
    assert fresh.version == 1
    fresh.rebootstrap()
    assert fresh.cluster().nodes == (Node(-1, "one", 9092),)
    assert fresh.cluster().partition_count("t") == 1
