from __future__ import annotations

from forebay._network.metadata_snapshot import MetadataSnapshot, SeenEpochs, apply_response, merge_leaders
from forebay.model import TopicPartition

from .replies import NODES, partition, reply, topic

WHERE = TopicPartition("t", 0)


def test_missing_leader_endpoint() -> None:
    """M MetadataSnapshotTest testMissingLeaderEndpoint: no leader in the cluster, its id and replicas are kept."""
    seen = SeenEpochs()
    response = reply(topic("t", partition(0, 99, 10)))
    applied = apply_response(MetadataSnapshot(), seen, response, 12, partial=False, retained=lambda name: True)
    info = applied.snapshot.cluster(1).partition("t", 0)
    assert info is not None
    assert (info.leader, info.replicas) == (None, (1, 2, 3))
    state = applied.snapshot.partition(WHERE)
    assert state is not None
    assert (state.leader_id, state.leader_epoch) == (99, 10)


def test_merge_keeps_other_topics() -> None:
    """M MetadataSnapshotTest testMergeWithThatPreExistingPartitionIsRetainedPostMerge and its kin."""
    seen = SeenEpochs()
    first = apply_response(
        MetadataSnapshot(),
        seen,
        reply(counts={"a": 1, "b": 1, "gone": 1}),
        12,
        partial=False,
        retained=lambda name: True,
    ).snapshot
    second = apply_response(
        first, seen, reply(counts={"b": 2, "c": 1}), 12, partial=True, retained=lambda name: name != "gone"
    ).snapshot
    assert {name: len(partitions) for name, partitions in second.topics.items()} == {"a": 1, "b": 2, "c": 1}
    assert first.topics.keys() == {"a", "b", "gone"}  # the old picture is as it was


def test_leader_epoch_for() -> None:
    """M MetadataSnapshotTest testLeaderEpochFor: 10 where it is known, none where it is not."""
    seen = SeenEpochs()
    response = reply(topic("t", partition(0, 1, 10), partition(1, 1)))
    applied = apply_response(MetadataSnapshot(), seen, response, 12, partial=False, retained=lambda name: True)
    assert (seen.get(WHERE), seen.get(TopicPartition("t", 1)), seen.get(TopicPartition("u", 0))) == (10, None, None)
    assert applied.news


def test_asks_once_whether_a_topic_is_wanted() -> None:
    asked: list[str] = []

    def retained(name: str) -> bool:
        asked.append(name)
        return True

    old = apply_response(
        MetadataSnapshot(), SeenEpochs(), reply(counts={"a": 1}), 12, partial=False, retained=lambda name: True
    ).snapshot
    apply_response(old, SeenEpochs(), reply(counts={"a": 1, "b": 1}), 12, partial=True, retained=retained)
    assert sorted(asked) == ["a", "b"]


def test_nothing_changes_without_news() -> None:
    snapshot = MetadataSnapshot()
    assert merge_leaders(snapshot, SeenEpochs(), {WHERE: (1, 5)}, NODES) == (snapshot, frozenset())


def test_a_cluster_knows_the_ids_of_its_topics() -> None:
    """Also of those that an answer about others left as they are, and after a rebootstrap; an error brings none."""
    seen = SeenEpochs()
    both = reply(topic("t", partition(0, 1), topic_id=b"t" * 16), topic("u", partition(0, 1)))
    snapshot = apply_response(MetadataSnapshot(), seen, both, 12, partial=False, retained=lambda name: True).snapshot
    assert [snapshot.cluster(1).topic_id(name) for name in "tuv"] == [b"t" * 16, None, None]
    more = reply(topic("v", partition(0, 1), topic_id=b"v" * 16))
    snapshot = apply_response(snapshot, seen, more, 12, partial=True, retained=lambda name: True).snapshot
    assert [snapshot.cluster(2).topic_id(name) for name in "tuv"] == [b"t" * 16, None, b"v" * 16]
    assert snapshot.rebootstrapped(NODES).cluster(3).topic_id("t") == b"t" * 16
    gone = reply(topic("t", error=3))
    snapshot = apply_response(snapshot, seen, gone, 12, partial=True, retained=lambda name: True).snapshot
    assert snapshot.cluster(4).topic_id("t") is None
