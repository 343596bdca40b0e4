"""Leader epochs: which answers are believed, and what of them is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._network.metadata import Metadata
from forebay._network.metadata_snapshot import MetadataSnapshot, PartitionState, SeenEpochs, merge_leaders
from forebay._protocol.metadata import MetadataTopic
from forebay.model import Node, TopicPartition
from forebay.model._cluster import Cluster

from .metadata_cases import T0, T1, metadata, update
from .replies import NODES, partition, reply, topic


@pytest.mark.parametrize(("version", "epoch"), [*((v, -1) for v in range(9)), *((v, 10) for v in range(9, 14))])
def test_epochs_are_believed_from_version_nine(version: int, epoch: int) -> None:
    """N testIgnoreLeaderEpochInOlderMetadataResponse: v0 to v8 dropped, v9 and later kept."""
    fresh = metadata("topic-1")
    update(fresh, reply(topic("topic-1", partition(0, 1, 10))), version=version)
    info = fresh.cluster().partition("topic-1", 0)
    assert info is not None
    assert info.leader_epoch == epoch
    assert fresh.seen_epoch(T0) == (None if epoch == -1 else 10)


def test_stale_metadata() -> None:
    """N testStaleMetadata: an older epoch changes nothing, not even the in-sync replicas."""
    fresh = metadata("topic-1")
    update(fresh, reply(topic("topic-1", partition(0, 1, 10, isr=(1, 2, 3)))))
    update(fresh, reply(topic("topic-1", partition(0, 2, 9, isr=(1, 2)))))
    info = fresh.cluster().partition("topic-1", 0)
    assert info is not None
    assert (info.leader, info.leader_epoch, info.in_sync_replicas) == (NODES[0], 10, (1, 2, 3))


def test_epoch_after_topic_deletion() -> None:
    """N testEpochUpdateAfterTopicDeletion: a new topic of the same name begins anew."""
    fresh = metadata("topic-1")
    update(fresh, reply(topic("topic-1", partition(0, 1, 10), topic_id=b"a" * 16)))
    update(fresh, reply(topic("topic-1", error=3)))
    assert fresh.seen_epoch(T0) == 10
    update(fresh, reply(topic("topic-1", partition(0, 1, 5), topic_id=b"b" * 16)))
    assert fresh.seen_epoch(T0) == 5


def test_epoch_on_changed_topic_ids() -> None:
    """N testEpochUpdateOnChangedTopicIds: no id then 10, 12 under it, 3 and 20 under two other ids."""
    fresh = metadata("topic-1")
    steps = [(100, None, 100), (10, b"a" * 16, 10), (12, b"a" * 16, 12), (3, b"b" * 16, 3), (20, b"c" * 16, 20)]
    for epoch, topic_id, expected in steps:
        update(fresh, reply(topic("topic-1", partition(0, 1, epoch), topic_id=topic_id)))
        assert fresh.seen_epoch(T0) == expected
        info = fresh.cluster().partition("topic-1", 0)
        assert info is not None
        assert info.leader_epoch == expected


def test_reject_old_metadata() -> None:
    """N testRejectOldMetadata: 99 after 100 is refused, 100 again is taken, a lost partition keeps its epoch."""
    fresh = metadata("topic-1")

    def seen(epoch: int, isr: tuple[int, ...] = (1, 2, 3)) -> tuple[int, ...] | None:
        update(fresh, reply(topic("topic-1", partition(0, 1, epoch, isr=isr))), partial=False)
        info = fresh.cluster().partition("topic-1", 0)
        return None if info is None else (info.leader_epoch, *info.in_sync_replicas)

    assert seen(100) == (100, 1, 2, 3)
    assert seen(99, (1,)) == (100, 1, 2, 3)
    assert seen(100, (1, 2)) == (100, 1, 2)
    update(fresh, reply(), partial=False)
    assert fresh.cluster().partition("topic-1", 0) is None
    assert fresh.seen_epoch(T0) == 100
    assert seen(99) is None
    assert seen(101) == (101, 1, 2, 3)


def test_no_epoch() -> None:
    """N testNoEpoch: works all the same."""
    fresh = metadata("topic-1")
    update(fresh, reply(counts={"topic-1": 1}))
    assert fresh.seen_epoch(T0) is None
    info = fresh.cluster().partition("topic-1", 0)
    assert info is not None
    assert (info.leader, info.leader_epoch) == (NODES[0], -1)


def test_metadata_merge_on_id_downgrade() -> None:
    """N testMetadataMergeOnIdDowngrade: an answer without an id forgets the id, and the next id is a new one."""
    fresh = metadata("topic-1")
    update(fresh, reply(topic("topic-1", partition(0, 1, 10), topic_id=b"a" * 16)))
    update(fresh, reply(topic("topic-1", partition(0, 1, 11))), partial=True)
    update(fresh, reply(topic("topic-1", partition(0, 1, 2), topic_id=b"a" * 16)), partial=True)
    info = fresh.cluster().partition("topic-1", 0)
    assert info is not None
    assert info.leader_epoch == 2


def test_update_leadership() -> None:
    """N testTopicMetadataOnUpdatePartitionLeadership: tp1 moves to 2 with epoch 3, tp0 and the count stay."""
    fresh = metadata("topic-1")
    update(fresh, reply(topic("topic-1", partition(0, 1, 2), partition(1, 1, 2)), nodes=NODES[:1]))
    version = fresh.version
    unknown = TopicPartition("topic-1", 7)
    changed = fresh.update_leadership({T1: (2, 3), T0: (2, 2), unknown: (2, 9)}, NODES[1:2])
    assert changed == {T1}
    cluster = fresh.cluster()
    assert (cluster.leader(T0), cluster.leader(T1)) == (NODES[0], NODES[1])
    assert cluster.partition_count("topic-1") == 2
    assert fresh.seen_epoch(T1) == 3
    assert fresh.version == version + 1
    assert fresh.update_leadership({T1: (2, 3)}, ()) == frozenset()
    assert fresh.update_leadership({T1: (99, 4)}, ()) == frozenset()
    assert fresh.version == version + 1


def test_hints_of_leaders_that_are_no_news() -> None:
    """ConsumerMetadataTest testInvalidPartitionLeadershipUpdates: older, same, without a leader we can reach, of
    unknown topics and partitions: all ignored, and nobody is told."""
    told: list[Cluster] = []
    fresh = metadata("topic-1", seen=told)
    update(fresh, reply(topic("topic-1", partition(0, 1, 5), partition(1, 2, 5))))
    before = fresh.cluster()
    told.clear()
    for where, leader in (
        (T0, (2, 4)),
        (T0, (2, 5)),
        (T0, (9, 6)),
        (T0, (-1, 6)),
        (TopicPartition("topic-1", 2), (2, 6)),
        (TopicPartition("topic-2", 0), (2, 6)),
    ):
        assert fresh.update_leadership({where: leader}, ()) == frozenset()
    assert fresh.cluster() is before
    assert (fresh.seen_epoch(T0), told) == (5, [])


def test_a_hint_leaves_all_else_as_it_is() -> None:
    """ConsumerMetadataTest testValidPartitionLeadershipUpdate: replicas, ids, errors, brokers, controller stay."""
    fresh = metadata("topic-1", "other", "bad", "secret")
    topics = [
        topic("topic-1", partition(0, 1, 100, isr=(1, 2)), partition(1, 2, 200), topic_id=b"1" * 16),
        topic("other", partition(0, 2, 200), topic_id=b"2" * 16),
        topic("bad", error=17),
        topic("secret", error=29),
    ]
    update(fresh, reply(*topics))
    before = fresh.cluster()
    assert fresh.update_leadership({T0: (2, 101)}, NODES) == {T0}
    after = fresh.cluster()
    changed = after.partition("topic-1", 0)
    known = before.partition("topic-1", 0)
    assert changed is not None and known is not None
    assert changed == known._replace(leader=NODES[1], leader_epoch=101)
    for name, number in (("topic-1", 1), ("other", 0)):
        assert after.partition(name, number) == before.partition(name, number)
    for what in ("topics", "nodes", "cluster_id", "controller_id", "invalid_topics", "unauthorized_topics"):
        assert getattr(after, what) == getattr(before, what)
    assert [after.topic_id(name) for name in ("topic-1", "other")] == [b"1" * 16, b"2" * 16]


def test_a_hint_brings_the_leader_s_address() -> None:
    """The address beside a hint is newer than the one known."""
    fresh = metadata("topic-1")
    update(fresh, reply(topic("topic-1", partition(0, 1, 5), partition(1, 2, 5))))
    moved = NODES[1]._replace(host="elsewhere")
    assert fresh.update_leadership({T0: (2, 6)}, [moved]) == {T0}
    assert (fresh.cluster().leader(T0), fresh.cluster().leader(T1)) == (moved, moved)
    assert set(fresh.cluster().nodes) == {NODES[0], moved, NODES[2]}
    update(fresh, reply(topic("topic-1", partition(0, 1, 5), partition(1, 2, 5)), nodes=[NODES[0], moved]))
    assert fresh.cluster().leader(T0) == moved
    update(fresh, reply(topic("topic-1", partition(0, 1, 7), partition(1, 2, 5))))
    assert fresh.cluster().leader(T0) == NODES[0]


def test_two_events_in_the_wrong_order() -> None:
    """N testLeaderMetadataInconsistentWithBrokerMetadata: an older leader is not believed, nor the newer one reached.

    The answer of before the broker came back names another leader, and brokers without it.
    """
    fresh = metadata("topic-1")
    update(fresh, reply(topic("topic-1", partition(0, 1, 10))))
    update(fresh, reply(topic("topic-1", partition(0, 2, 8, isr=(2, 3))), nodes=NODES[1:]))
    assert fresh.cluster().leader(T0) is None
    assert fresh.seen_epoch(T0) == 10
    info = fresh.cluster().partition("topic-1", 0)
    assert info is not None
    assert (info.leader_epoch, info.in_sync_replicas) == (10, (1, 2, 3))


def test_a_leader_that_is_lost_and_found() -> None:
    """Without its broker it is none, with its epoch."""
    fresh = metadata("topic-1")
    update(fresh, reply(topic("topic-1", partition(0, 3, 10))))
    assert fresh.cluster().leader(T0) == NODES[2]
    update(fresh, reply(topic("topic-1", partition(0, 3, 10)), nodes=NODES[:2]))
    info = fresh.cluster().partition("topic-1", 0)
    assert info is not None
    assert (info.leader, info.leader_epoch) == (None, 10)
    assert fresh.cluster().available_partitions("topic-1") == ()
    update(fresh, reply(topic("topic-1", partition(0, 3, 10))))
    assert fresh.cluster().leader(T0) == NODES[2]


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=20))
def test_leader_epochs_never_go_back(story: list[tuple[int, bool]]) -> None:
    fresh = metadata("topic-1")
    newest = -1
    for epoch, hinted in story:
        if hinted:
            fresh.update_leadership({T0: (2, epoch)}, NODES)
            known = fresh.cluster().partition("topic-1", 0) is not None
        else:
            update(fresh, reply(topic("topic-1", partition(0, 1, epoch))))
            known = True
        newest = max(newest, epoch) if known else newest
        info = fresh.cluster().partition("topic-1", 0)
        assert (info.leader_epoch if info else -1) == newest
        assert (fresh.seen_epoch(T0) or 0) == max(newest, 0)


def shared(before: Cluster, after: Cluster) -> set[str]:
    """The topics of which nothing was made anew."""
    both = before.topics & after.topics
    return {
        name
        for name in both
        if after.partitions(name) is before.partitions(name)
        and after.available_partitions(name) is before.available_partitions(name)
    }


@pytest.mark.parametrize("epochs", [True, False], ids=["with epochs", "without"])
def test_what_an_answer_does_not_change_is_not_made_anew(epochs: bool) -> None:
    """Each way a picture comes: a full answer, a part, a hint, other addresses, a topic made again, starting over."""

    def told(name: str, leader: int, epoch: int, ident: bytes = b"1") -> MetadataTopic:
        led = (partition(0, leader, epoch if epochs else -1), partition(1, 2, 5 if epochs else -1))
        return topic(name, *led, topic_id=ident * 16)

    def answered(
        fresh: Metadata, *topics: MetadataTopic, nodes: Sequence[Node] = NODES, partial: bool = False
    ) -> set[str]:
        before = fresh.cluster()
        update(fresh, reply(*topics, nodes=nodes), partial=partial)
        assert fresh.cluster() is not before
        return shared(before, fresh.cluster())

    fresh = metadata("a", "b")
    assert answered(fresh, told("a", 1, 5), told("b", 1, 5)) == set()
    assert answered(fresh, told("a", 1, 5), told("b", 1, 5)) == {"a", "b"}
    assert answered(fresh, told("b", 1, 5), told("a", 2, 6)) == {"b"}
    assert fresh.cluster().leader(TopicPartition("a", 0)) == NODES[1]
    fresh.add_topic("c", 0)
    assert answered(fresh, told("c", 1, 5), partial=True) == {"a", "b"}
    all_three = (told("a", 2, 6), told("b", 1, 5), told("c", 1, 5))
    moved = (NODES[0]._replace(host="elsewhere"), *NODES[1:])
    assert answered(fresh, *all_three, nodes=moved) == set()
    assert fresh.cluster().leader(TopicPartition("b", 0)) == moved[0]
    assert answered(fresh, *all_three, nodes=moved) == {"a", "b", "c"}
    assert answered(fresh, *all_three[:2], nodes=moved) == {"a", "b"}
    before = fresh.cluster()
    assert fresh.update_leadership({TopicPartition("a", 0): (1, 9)}, moved)
    assert shared(before, fresh.cluster()) == {"b"}
    before = fresh.cluster()
    fresh.rebootstrap()
    assert shared(before, fresh.cluster()) == set()
    assert fresh.cluster().available_partitions("b") == ()


def test_hints_about_a_topic_copy_it_once() -> None:
    """A broker that goes is named for thousands of partitions of one topic in one answer."""

    class Counted(dict[int, PartitionState]):
        copies = 0

        def keys(self) -> Any:
            self.copies += 1
            return super().keys()

        def __iter__(self) -> Any:
            # Without it, dict() copies a subclass without asking for its keys.
            return super().__iter__()

    state = PartitionState(1, 5, (1, 2), (1, 2), ())
    known = Counted(dict.fromkeys(range(50), state))
    before = MetadataSnapshot({node.id: node for node in NODES}, {"t": known})
    hints = {TopicPartition("t", number): (2, 6) for number in range(40)}
    after, changed = merge_leaders(before, SeenEpochs(), hints, NODES)
    assert changed == set(hints)
    assert [after.topics["t"][number].leader_id for number in (0, 39, 40)] == [2, 2, 1]
    assert known.copies == 1
