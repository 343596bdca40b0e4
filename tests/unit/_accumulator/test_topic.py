"""A topic's queues under changing metadata."""

from __future__ import annotations

import contextlib
import itertools

import pytest

from forebay._accumulator.states import ANNOUNCED, IDLE, PARKED, PLACE_MOVES, PLACES, WATCHED
from forebay.errors import IllegalStateError
from forebay.model import Node, PartitionInfo
from forebay.model._cluster import Cluster
from tests.unit._accumulator.shelf import APPENDED, TOPIC, Shelf


def test_queues_follow_the_metadata() -> None:
    shelf = Shelf(leaders=(0, -1), epoch=7)
    assert shelf.topic.partition_count == 2
    assert [(queue.partition, queue.leader_id, queue.leader_epoch) for queue in shelf.topic.queues] == [
        (0, 0, 7),
        (1, -1, 7),
    ]
    shelf.leaders[2] = 1
    shelf.epochs[2] = 0
    shelf.move(1, 1, 8)
    assert [queue.leader_id for queue in shelf.topic.queues] == [0, 1, 1]
    assert shelf.topic.partition_count == 3


def test_older_metadata_changes_nothing() -> None:
    shelf = Shelf(leaders=(0,))
    old = shelf.cluster
    shelf.move(0, 1)
    shelf.accumulator.refresh(TOPIC, old)
    assert shelf.queue().leader_id == 1
    assert shelf.topic.cluster is shelf.cluster


def test_a_topic_that_is_gone_keeps_its_queues_without_leaders() -> None:
    shelf = Shelf(leaders=(0, 0, 1))
    shelf.append(2)
    shelf.leaders.clear()
    shelf.update()
    assert shelf.topic.partition_count == 3  # the last that was known: keys keep their partitions
    assert [queue.leader_id for queue in shelf.topic.queues] == [-1, -1, -1]
    assert shelf.ready().leaderless == {TOPIC}
    shelf.leaders[0] = 0
    shelf.update()
    assert shelf.topic.partition_count == 1 and len(shelf.topic.queues) == 3
    assert shelf.queue(0).leader_id == 0


def test_partitions_that_a_broker_leaves_out() -> None:
    """Their numbers count, not how many there are; nothing is read beyond the queues."""
    shelf = Shelf(leaders=(0,))
    node = Node(0, "localhost", 1111)
    infos = [PartitionInfo(TOPIC, partition, node) for partition in (0, 5)]
    state = shelf.accumulator.refresh(TOPIC, Cluster([node], infos, version=shelf.version + 1))
    assert len(state.queues) == 6
    assert [queue.leader_id for queue in state.queues] == [0, -1, -1, -1, -1, 0]
    shelf.append(5)
    shelf.append(3)
    found = shelf.ready()
    assert (found.nodes, found.leaderless) == ([0], {TOPIC})


def test_the_sticky_partition_leaves_with_its_leader() -> None:
    """Better than Java, which keeps a sticky partition whose leader is gone."""
    shelf = Shelf(leaders=(0, 0))
    shelf.append(-1)
    sticky = shelf.topic.partitioner.peek()
    shelf.move(sticky, -1)
    assert shelf.topic.partitioner.peek() == 1 - sticky


def test_how_it_prints() -> None:
    shelf = Shelf(leaders=(0, 1))
    shelf.append(1)
    queue = shelf.queue(1)
    queue.muted = True
    assert repr(queue) == "<PartitionQueue test-1: 1 batches, 0 in flight, leader 1, ANNOUNCED, muted>"
    assert repr(shelf.topic) == "<TopicState test: 2 partitions, sticky 0>"


def test_older_metadata_counts_if_newer_did_not_know_the_topic() -> None:
    """A thread that waited for the topic must not get a state without queues."""
    shelf = Shelf()
    node = Node(0, "localhost", 1111)
    older = Cluster([node], [PartitionInfo("other", 0, node)], version=shelf.version)
    shelf.accumulator.refresh("other", Cluster([node], [], version=shelf.version + 1))
    state = shelf.accumulator.refresh("other", older)
    assert (state.partition_count, len(state.queues), state.version) == (1, 1, shelf.version + 1)
    assert state.queues[0].leader_id == -1
    assert shelf.accumulator.appender.append_bytes(state, -1, b"value", now=shelf.now)[0] & APPENDED


def test_a_partition_that_does_not_exist_is_refused() -> None:
    shelf = Shelf()
    unknown = shelf.accumulator.topic("never heard of")
    with pytest.raises(IllegalStateError, match="never heard of"):
        shelf.accumulator.appender.append_bytes(unknown, -1, b"value", now=shelf.now)
    with pytest.raises(IllegalStateError, match="no 3"):
        shelf.append(3)


def test_a_topic_that_is_gone_is_missing_until_newer_metadata_knows_it() -> None:
    """4.3: a send looks at this and waits for metadata; the count stays for those that divide by it."""
    shelf = Shelf(leaders=(0, 0))
    known = shelf.cluster
    assert not shelf.topic.missing
    shelf.leaders.clear()
    shelf.update()
    assert shelf.topic.missing and shelf.topic.partition_count == 2
    shelf.accumulator.refresh(TOPIC, known)
    assert shelf.topic.missing
    shelf.leaders[0] = 0
    shelf.epochs[0] = 0
    shelf.update()
    assert not shelf.topic.missing


def test_a_topic_is_in_use_while_it_has_batches_and_when_one_was_drained() -> None:
    """12: a record into a batch that stays open for long does not tell the metadata that the topic is wanted."""
    shelf = Shelf()
    assert not shelf.accumulator.in_use("elsewhere", 0)
    assert not shelf.accumulator.in_use(TOPIC, shelf.now)
    shelf.clock.advance(100)
    shelf.append()
    assert shelf.accumulator.in_use(TOPIC, shelf.now + 10_000)
    shelf.clock.advance(50)
    drained = shelf.now
    (batch,) = shelf.drain(0)
    shelf.finish(batch)
    assert shelf.accumulator.in_use(TOPIC, drained)
    assert not shelf.accumulator.in_use(TOPIC, drained + 1)


def seen(shelf: Shelf) -> tuple[bytes | None, int]:
    return shelf.topic.incarnation.topic_id, shelf.topic.incarnation.number


def test_an_id_that_becomes_known_is_no_other_topic_and_another_id_is() -> None:
    shelf = Shelf()
    assert seen(shelf) == (None, 0)
    old, new = b"o" * 16, b"n" * 16
    # None says nothing: a topic that is away for a while, or a broker of before 2.8.
    for topic_id, expected in [(old, (old, 0)), (None, (old, 0)), (old, (old, 0)), (new, (new, 1)), (None, (new, 1))]:
        shelf.topic_id = topic_id
        shelf.update()
        assert seen(shelf) == expected


def test_each_of_the_last_two_topics_keeps_its_number() -> None:
    """A broker that is behind speaks of the one before; a third is a third, whichever of the two came last."""
    shelf = Shelf()
    a, b, c = (letter * 16 for letter in (b"a", b"b", b"c"))
    for topic_id, number in [(a, 0), (b, 1), (a, 0), (b, 1), (a, 0), (c, 2), (a, 0), (c, 2), (b, 3)]:
        shelf.topic_id = topic_id
        shelf.update()
        assert seen(shelf) == (topic_id, number)


def test_a_topic_that_is_gone_keeps_its_id_until_another_has_its_name() -> None:
    shelf = Shelf()
    shelf.topic_id = b"o" * 16
    shelf.update()
    leaders, shelf.topic_id = dict(shelf.leaders), None
    shelf.leaders.clear()
    shelf.update()
    assert shelf.topic.missing and seen(shelf) == (b"o" * 16, 0)
    shelf.leaders.update(leaders)
    shelf.topic_id = b"n" * 16
    shelf.update()
    assert not shelf.topic.missing and seen(shelf) == (b"n" * 16, 1)


def test_older_metadata_brings_back_no_id() -> None:
    shelf = Shelf()
    shelf.topic_id = b"o" * 16
    shelf.update()
    old = shelf.cluster
    shelf.topic_id = b"n" * 16
    shelf.update()
    shelf.accumulator.refresh(TOPIC, old)
    assert seen(shelf) == (b"n" * 16, 1)


WAYS: dict[int, list[int]] = {IDLE: [], ANNOUNCED: [ANNOUNCED], WATCHED: [WATCHED], PARKED: [WATCHED, PARKED]}


@pytest.mark.parametrize(("source", "target"), [*itertools.product(WAYS, WAYS)])
def test_a_queue_makes_the_moves_of_the_table_and_no_other(source: int, target: int) -> None:
    queue = Shelf(leaders=(0,)).queue()
    with getattr(queue, "lock", contextlib.nullcontext()):  # compiled it is a C field, and there is no other thread
        for place in WAYS[source]:
            queue.move(place)
        if target in PLACE_MOVES[source]:
            queue.move(target)
            assert queue.place == target
            return
        with pytest.raises(IllegalStateError, match=f"is {PLACES[source]} and cannot become {PLACES[target]}"):
            queue.move(target)
        assert queue.place == source


def test_leaders_are_not_set_again_where_a_picture_shares_the_one_before() -> None:
    shelf = Shelf(leaders=(0, 1))
    known = shelf.cluster

    def next_picture(before: Cluster, infos: tuple[PartitionInfo, ...] = ()) -> Cluster:
        shelf.version += 1
        unchanged = [] if infos else [TOPIC]
        return Cluster(known.nodes, infos, version=shelf.version, before=before, unchanged=unchanged)

    same = next_picture(known)
    moved = next_picture(same, (PartitionInfo(TOPIC, 0, known.node(2)), PartitionInfo(TOPIC, 1, known.node(1))))
    still = next_picture(moved)
    shelf.accumulator.refresh(TOPIC, same)
    assert [queue.leader_id for queue in shelf.topic.queues] == [0, 1]
    assert shelf.topic.cluster is same
    assert shelf.topic.version == same.version
    shelf.accumulator.refresh(TOPIC, still)  # the one between was never applied
    shelf.accumulator.refresh(TOPIC, moved)
    assert [queue.leader_id for queue in shelf.topic.queues] == [2, 1]
    assert shelf.topic.cluster is still
    gone = Cluster(known.nodes, (), version=shelf.version + 1)
    shelf.accumulator.refresh(TOPIC, gone)
    assert [queue.leader_id for queue in shelf.topic.queues] == [-1, -1]
    back = Cluster(known.nodes, still.partitions(TOPIC), version=shelf.version + 2)
    shelf.accumulator.refresh(TOPIC, back)
    assert [queue.leader_id for queue in shelf.topic.queues] == [2, 1]
