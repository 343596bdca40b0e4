from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._cluster import Cluster
from forebay._network.metadata import Metadata, MetadataQuery
from forebay._protocol.metadata import MetadataResponse
from forebay._ticket import ThreadTicket, Ticket
from forebay.errors import (
    AuthenticationError,
    InvalidTopicError,
    KafkaError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
)
from forebay.model import Node, TopicPartition

from .replies import NODES, partition, reply, topic

T0, T1 = TopicPartition("topic-1", 0), TopicPartition("topic-1", 1)


class Waker(Ticket):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def wake(self) -> None:
        self.count += 1


def metadata(*topics: str, idle_ms: float = 1e12, seen: list[Cluster] | None = None) -> Metadata:
    """Back-off 100 up to 1000, age 1000, no jitter."""
    made = Metadata(
        refresh_backoff_ms=100,
        refresh_backoff_max_ms=1000,
        max_age_ms=1000,
        max_idle_ms=idle_ms,
        random=lambda: 0.5,
        on_update=[] if seen is None else [seen.append],
    )
    made.bootstrap([Node(-1, "boot", 9092)])
    for name in topics:
        made.add_topic(name, 0)
    return made


def update(
    target: Metadata, response: MetadataResponse, now: float = 0, *, version: int = 12, partial: bool | None = None
) -> MetadataQuery:
    query = target.next_query(now)
    if partial is not None:
        query = query._replace(partial=partial)
    target.update(query, response, version, now)
    return query


def test_due_at_once_after_bootstrap() -> None:
    """N testUpdateMetadataAllowedImmediatelyAfterBootstrap: nothing to wait for, and version 0."""
    fresh = metadata()
    assert fresh.time_to_next_update(0) == 0
    assert (fresh.version, fresh.cluster().nodes) == (0, (Node(-1, "boot", 9092),))


def test_time_to_next_update_by_age() -> None:
    """N testTimeToNextUpdate: the age alone, an explicit request at once."""
    fresh = metadata("t")
    update(fresh, reply(counts={"t": 1}), 50)
    for now in (50, 500, 1049):
        assert fresh.time_to_next_update(now) == 1050 - now
    assert fresh.time_to_next_update(1050) == 0
    fresh.request_update()
    assert fresh.time_to_next_update(500) == 0


def test_time_to_next_update_after_failures() -> None:
    """N testTimeToNextUpdateRetryBackoff: a failure makes even an explicit request wait, later it is due."""
    fresh = metadata()
    fresh.failed_update(0)
    assert fresh.time_to_next_update(0) == 100
    fresh.request_update()
    assert fresh.time_to_next_update(0) == 100
    assert fresh.time_to_next_update(100) == 0
    for failure, wait in ((1, 200), (2, 400), (3, 800), (4, 1000), (5, 1000)):
        fresh.failed_update(1000 * failure)
        assert fresh.time_to_next_update(1000 * failure) == wait


def test_failed_update() -> None:
    """N testFailedUpdate: the last success stays what it was, and a success ends the back-off."""
    fresh = metadata("t")
    update(fresh, reply(counts={"t": 1}), 100)
    assert fresh.time_to_next_update(1000) == 100
    fresh.failed_update(1100)
    assert fresh.time_to_next_update(1100) == 100
    assert fresh.last_success == 100
    update(fresh, reply(counts={"t": 1}, epoch=5), 1200)
    assert fresh.last_success == 1200
    fresh.request_update()
    assert fresh.time_to_next_update(1200) == 0


def test_answers_that_bring_nothing_new_back_off() -> None:
    """N testTimeToNextUpdateWithEquivalent...: the same leaders again wait longer each time; news or reset ends it."""
    fresh = metadata("t")
    update(fresh, reply(counts={"t": 1}, epoch=3), 0)
    waits = []
    now = 0.0
    for _ in range(6):
        fresh.request_update(reset_equivalent=False)
        waits.append(fresh.time_to_next_update(now))
        now += waits[-1]
        update(fresh, reply(counts={"t": 1}, epoch=3), now)
    assert waits == [0, 100, 200, 400, 800, 1000]
    fresh.request_update(reset_equivalent=True)
    assert fresh.time_to_next_update(now) == 0
    update(fresh, reply(counts={"t": 1}, epoch=3), now)
    fresh.request_update(reset_equivalent=False)
    assert fresh.time_to_next_update(now) == 100
    update(fresh, reply(counts={"t": 1}, epoch=4), now + 100)
    fresh.request_update(reset_equivalent=False)
    assert fresh.time_to_next_update(now + 100) == 0


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


def test_out_of_band_epoch() -> None:
    """N testOutOfBandEpochUpdate: known elsewhere, the cached partition stays but is not current until metadata is."""
    fresh = metadata("topic-1")
    update(fresh, reply(counts={"topic-1": 5}, epoch=100))
    assert fresh.current_partition(T0) is not None
    assert fresh.note_epoch(T0, 101)
    assert not fresh.note_epoch(T0, 99)
    assert fresh.update_requested
    assert fresh.cluster().partition("topic-1", 0) is not None
    assert fresh.current_partition(T0) is None
    assert fresh.current_partition(T1) is not None
    assert fresh.cluster().partition_count("topic-1") == 5
    update(fresh, reply(counts={"topic-1": 5}, epoch=101))
    info = fresh.current_partition(T0)
    assert info is not None
    assert info.leader_epoch == 101


def test_no_epoch() -> None:
    """N testNoEpoch: works all the same."""
    fresh = metadata("topic-1")
    update(fresh, reply(counts={"topic-1": 1}))
    assert fresh.seen_epoch(T0) is None
    info = fresh.current_partition(T0)
    assert info is not None
    assert (info.leader, info.leader_epoch) == (NODES[0], -1)


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


def test_metadata_merge_on_id_downgrade() -> None:
    """N testMetadataMergeOnIdDowngrade: an answer without an id forgets the id, and the next id is a new one."""
    fresh = metadata("topic-1")
    update(fresh, reply(topic("topic-1", partition(0, 1, 10), topic_id=b"a" * 16)))
    update(fresh, reply(topic("topic-1", partition(0, 1, 11))), partial=True)
    update(fresh, reply(topic("topic-1", partition(0, 1, 2), topic_id=b"a" * 16)), partial=True)
    info = fresh.cluster().partition("topic-1", 0)
    assert info is not None
    assert info.leader_epoch == 2


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
    assert fresh.topic_error("bad") is error
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


def test_new_topic_is_asked_for_at_once_and_alone() -> None:
    fresh = metadata("old")
    update(fresh, reply(counts={"old": 1}), 0)
    fresh.failed_update(10)
    assert fresh.add_topic("new", 20)
    assert not fresh.add_topic("new", 20)
    assert fresh.time_to_next_update(20) == 0
    query = fresh.next_query(20)
    assert (query.topics, query.partial) == (("new",), True)
    fresh.update(query, reply(counts={"new": 1}), 12, 20)
    assert fresh.cluster().topics == {"old", "new"}
    assert not fresh.update_requested
    assert fresh.last_success == 0


def test_a_full_update_wins_over_a_partial_one() -> None:
    fresh = metadata("old")
    update(fresh, reply(counts={"old": 1}), 0)
    fresh.add_topic("new", 20)
    fresh.request_update()
    assert fresh.next_query(20) == MetadataQuery(("old", "new"), False, fresh.next_query(20).asked)
    fresh.update(fresh.next_query(20), reply(counts={"old": 1, "new": 1}), 12, 20)
    assert not fresh.update_requested
    fresh.add_topic("newer", 30)
    assert not fresh.next_query(1020).partial  # the age is up, too


@pytest.mark.parametrize("full", [False, True])
def test_requests_made_during_an_update_are_not_lost(full: bool) -> None:
    fresh = metadata("a")
    update(fresh, reply(counts={"a": 1}))
    fresh.add_topic("b", 0)
    query = fresh.next_query(0)
    if full:
        fresh.request_update()
    else:
        fresh.add_topic("c", 0)
    fresh.update(query, reply(counts={"b": 1}), 12, 0)
    assert fresh.update_requested
    again = fresh.next_query(0)
    assert again.partial is not full
    assert again.topics == (("a", "b") if full else ("c",))


def test_request_for_a_topic() -> None:
    fresh = metadata("a")
    update(fresh, reply(counts={"a": 1}))
    assert fresh.request_update_for_topic("a") == 1
    assert not fresh.next_query(0).partial
    update(fresh, reply(counts={"a": 1}))
    fresh.add_topic("b", 0)
    assert fresh.request_update_for_topic("b") == 2
    assert fresh.next_query(0).partial


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


def test_waiting_for_a_version() -> None:
    fresh = metadata("t")
    ticket, other = Waker(), Waker()
    above = fresh.request_update_for_topic("t")
    assert not fresh.await_version(above, ticket)
    assert not fresh.await_version(above + 1, other)
    update(fresh, reply(counts={"t": 1}))
    assert (ticket.count, other.count) == (1, 0)
    assert fresh.await_version(above, ticket)
    update(fresh, reply(counts={"t": 1}))
    assert (ticket.count, other.count) == (1, 1)


def test_forgotten_tickets_are_not_woken() -> None:
    fresh = metadata("t")
    ticket = Waker()
    assert not fresh.await_version(0, ticket)
    fresh.forget(ticket)
    update(fresh, reply(counts={"t": 1}))
    assert ticket.count == 0


def test_a_fatal_error_reaches_everybody_and_ends_with_a_success() -> None:
    fresh = metadata("t")
    tickets = [Waker(), Waker()]
    for ticket in tickets:
        assert not fresh.await_version(0, ticket)
    fresh.fatal(AuthenticationError("who are you"))
    assert [ticket.count for ticket in tickets] == [1, 1]
    assert fresh.await_version(0, Waker())
    for _ in range(2):
        with pytest.raises(AuthenticationError, match="who are you"):
            fresh.raise_if_failed()
    update(fresh, reply(counts={"t": 1}))
    fresh.raise_if_failed()
    assert fresh.version == 1


def test_close_wakes_and_refuses() -> None:
    fresh = metadata("t")
    ticket = Waker()
    fresh.await_version(0, ticket)
    fresh.close()
    assert ticket.count == 1
    assert fresh.await_version(0, Waker())
    with pytest.raises(KafkaError, match="Requested metadata update after close"):
        fresh.raise_if_failed()


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


def test_threads_that_wait_are_all_woken() -> None:
    fresh = metadata("t")
    woken: list[bool] = []
    begun = threading.Barrier(5)

    def wait() -> None:
        ticket = ThreadTicket()
        there = fresh.await_version(0, ticket)
        begun.wait(5)
        woken.append(there or ticket.wait(5000))

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait(5)
    update(fresh, reply(counts={"t": 1}))
    for thread in threads:
        thread.join(5)
    assert woken == [True] * 4


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
