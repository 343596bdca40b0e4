"""When the next update is due, and what it asks for."""

from __future__ import annotations

import pytest

from forebay._network.metadata import MetadataQuery
from forebay._network.metadata_timing import UpdateTiming
from forebay._protocol.metadata import MetadataResponse
from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay.model import Node

from .metadata_cases import metadata, update
from .replies import NODES, partition, reply, topic

VERSIONS = range(SUPPORTED[ApiKey.METADATA][0], SUPPORTED[ApiKey.METADATA][1] + 1)


def test_a_request_for_new_topics_does_not_answer_one_for_all() -> None:
    timing = UpdateTiming(100, 100, 60_000, lambda: 0.5)
    timing.ask_for_all()
    wanted = timing.asked
    timing.ask_for_new_topics(at_once=True)
    assert timing.wants_any and timing.wants_new_topics and timing.due_at() == float("-inf")
    timing.answered(timing.asked, 1000, partial=True, news=True)
    assert not timing.wants_new_topics and not timing.full_answered(wanted) and timing.wants_any
    assert timing.begin(1100) and timing.due_at() == 1100
    timing.answered(timing.asked, 1200, partial=False, news=True)
    assert timing.full_answered(wanted) and not timing.wants_any and timing.due_at() == 61_200


def test_due_at_once_after_bootstrap() -> None:
    """N testUpdateMetadataAllowedImmediatelyAfterBootstrap: nothing to wait for, and version 0."""
    fresh = metadata()
    assert fresh.time_to_next_update(0) == 0
    assert (fresh.version, fresh.cluster().nodes) == (0, (Node(-1, "boot", 9092),))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("backoff", "age"), [(100, 1000), (1000, 100), (0, 0), (0, 100), (100, 0)])
def test_time_to_next_update(backoff: int, age: int, version: int) -> None:
    """N testTimeToNextUpdate: the larger of back-off and age after an answer; the back-off alone for a request."""
    fresh = metadata(backoff_ms=backoff, backoff_max_ms=backoff, age_ms=age)
    now = 10_000
    assert fresh.time_to_next_update(now) == 0
    for _ in range(2):
        update(fresh, reply(nodes=()), now, version=version)
        assert fresh.time_to_next_update(now) == max(backoff, age)
        fresh.request_update(reset_equivalent=True)
        assert fresh.time_to_next_update(now) == backoff
    update(fresh, reply(nodes=()), now, version=version)
    now += max(backoff, age)
    assert [fresh.time_to_next_update(now), fresh.time_to_next_update(now + 1)] == [0, 0]


def test_only_a_new_topic_overwrites_the_back_off() -> None:
    """ProducerMetadataTest testTimeToNextUpdateOverwriteBackoff: at once for a new topic, not for one answered."""
    fresh = metadata("t", age_ms=5000)
    update(fresh, reply(counts={"t": 1}), 10_000)
    fresh.add_topic("new", 10_000)
    assert fresh.time_to_next_update(10_000) == 0
    update(fresh, reply(counts={"new": 1}), 10_000)
    assert not fresh.add_topic("new", 10_000)
    assert not fresh.update_requested
    fresh.request_update_for_topic("new")
    assert fresh.time_to_next_update(10_000) == 100
    fresh.add_topic("newer", 10_000)
    assert fresh.time_to_next_update(10_000) == 0


def test_jitter_never_shortens_the_back_off() -> None:
    """At most one request in retry.backoff.ms, although the first back-off is drawn from 80 to 120 % of it."""
    for random, wait in ((0.0, 100), (0.5, 100), (0.99, pytest.approx(119.6))):
        fresh = metadata("t", random=random)
        update(fresh, reply(counts={"t": 1}, epoch=3), 0)
        fresh.request_update()
        assert fresh.time_to_next_update(0) == wait
        fresh.failed_update(200)
        assert fresh.time_to_next_update(200) == wait


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
    assert fresh.time_to_next_update(1200) == 100


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("epoch", [3, -1])
def test_answers_that_bring_nothing_new_back_off(version: int, epoch: int) -> None:
    """ProducerMetadataTest testMetadataEquivalentResponsesBackoff: the same answer again waits longer each time.

    A request for what is new ends it.  In Java an answer without epochs ends it, too, whatever it says.
    """
    fresh = metadata("t", age_ms=1e9)
    waits = []
    now = 0.0
    for _ in range(7):
        update(fresh, reply(counts={"t": 1}, epoch=epoch), now, version=version)
        fresh.request_update(reset_equivalent=False)
        waits.append(fresh.time_to_next_update(now))
        now += waits[-1]
    assert waits == [100, 100, 200, 400, 800, 1000, 1000]
    fresh.request_update(reset_equivalent=True)
    assert fresh.time_to_next_update(now - 900) == 0
    update(fresh, reply(counts={"t": 1}, epoch=epoch), now, version=version)
    fresh.request_update(reset_equivalent=False)
    assert fresh.time_to_next_update(now) == 100


OLD = reply(topic("t", partition(0, 1), partition(1, 2)))
CHANGED = {
    "a leader": reply(topic("t", partition(0, 3), partition(1, 2))),
    "no leader": reply(topic("t", partition(0, -1, error=5), partition(1, 2))),
    "in-sync replicas": reply(topic("t", partition(0, 1, isr=(1, 2)), partition(1, 2))),
    "one partition more": reply(topic("t", partition(0, 1), partition(1, 2), partition(2, 3))),
    "one partition less": reply(topic("t", partition(0, 1))),
    "the topic is gone": reply(topic("t", error=3)),
    "a topic's id": reply(topic("t", partition(0, 1), partition(1, 2), topic_id=b"t" * 16)),
    "a broker less": reply(topic("t", partition(0, 1), partition(1, 2)), nodes=NODES[:2]),
    "a broker's address": reply(
        topic("t", partition(0, 1), partition(1, 2)), nodes=(*NODES[:2], NODES[2]._replace(host="elsewhere"))
    ),
    "the controller": OLD._replace(controller_id=2),
}


def waits_after(answers: list[MetadataResponse], version: int) -> list[float]:
    """How long a request waits after each answer; the first is the third of its kind."""
    fresh = metadata("t", age_ms=1e9)
    waits = []
    for answer in (answers[0], answers[0], *answers):
        update(fresh, answer, version=version)
        fresh.request_update(reset_equivalent=False)
        waits.append(fresh.time_to_next_update(0))
    return waits[2:]


@pytest.mark.parametrize("change", CHANGED)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_new_in_an_answer_without_epochs(version: int, change: str) -> None:
    """What really changed: it ends the growing back-off, whatever the broker leaves out; but not retry.backoff.ms."""
    same = OLD._replace(brokers=OLD.brokers[::-1])
    changed = CHANGED[change]
    # From v9 on an answer that names no partition says nothing about epochs, and so nothing new: as in Java.
    after = 800 if version >= 9 and change == "the topic is gone" else 100
    assert waits_after([OLD, same, changed], version) == [200, 400, after]


@pytest.mark.parametrize("version", [9, 12, 13])
def test_what_is_new_in_an_answer_with_epochs(version: int) -> None:
    """A newer epoch, or an id that was never seen, and nothing else: as in Java."""
    same = reply(topic("t", partition(0, 1, 5)))
    for answer, wait in (
        (reply(topic("t", partition(0, 1, 6))), 100),
        (reply(topic("t", partition(0, 1, 5), topic_id=b"t" * 16)), 100),
        (reply(topic("t", partition(0, 1, 5), partition(1, 1, 0))), 100),
        (reply(topic("t", partition(0, 1, 5, isr=(1,)))), 400),
        (reply(topic("t", partition(0, 1, 5)), nodes=NODES[:2]), 400),
        (reply(topic("t", partition(0, 2, 4))), 400),
    ):
        assert waits_after([same, answer], version) == [200, wait]


def test_what_is_out_of_date_is_asked_for_all_the_same() -> None:
    """Answers that bring nothing new put off what was asked for, not the update that the age makes due."""
    fresh = metadata("t", backoff_max_ms=100_000, age_ms=1000)
    for _ in range(8):
        update(fresh, reply(counts={"t": 1}, epoch=3), 0)
    assert fresh.time_to_next_update(0) == 1000
    fresh.request_update(reset_equivalent=False)
    assert fresh.time_to_next_update(0) == 1000


def test_calls_for_the_same_new_topic_are_one_request() -> None:
    """However many there are, while its request is under way, and after one that failed or did not speak of it."""
    fresh = metadata("t")
    update(fresh, reply(counts={"t": 1}), 0)
    fresh.add_topic("new", 20)
    query = fresh.next_query(20)
    for _ in range(3):
        assert fresh.request_update_for_topic("new") == 1
    fresh.failed_update(30)
    for _ in range(3):
        fresh.request_update_for_topic("new")
        assert fresh.time_to_next_update(30) == 100
    fresh.update(query, reply(), 12, 40)
    assert not fresh.update_requested
    for _ in range(3):
        assert fresh.request_update_for_topic("new") == 2
        assert fresh.time_to_next_update(40) == 100
    assert fresh.next_query(140).topics == ("new",)


def test_a_topic_that_comes_during_an_update_is_asked_for_behind_it() -> None:
    fresh = metadata("t")
    query = fresh.next_query(0)
    fresh.add_topic("new", 10)
    fresh.update(query, reply(counts={"t": 1}), 12, 20)
    assert fresh.time_to_next_update(20) == 0
    assert fresh.next_query(20).topics == ("new",)


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


def test_every_answer_is_a_version_and_settles_what_was_asked() -> None:
    """The version to exceed is the one there is; the flag falls with the answer."""
    fresh = metadata("a")
    for version in range(4):
        assert fresh.request_update() == version
        assert fresh.update_requested
        update(fresh, reply(counts={"a": 1}), 1000 * version)
        assert (fresh.version, fresh.update_requested) == (version + 1, False)


def test_a_failure_does_not_forget_what_was_new() -> None:
    """After its back-off the new topic is asked for alone again."""
    fresh = metadata("old")
    update(fresh, reply(counts={"old": 1}), 0)
    fresh.add_topic("new", 20)
    first = fresh.next_query(20)
    fresh.failed_update(30)
    assert fresh.update_requested
    assert fresh.time_to_next_update(30) == 100
    assert fresh.next_query(130) == first == MetadataQuery(("new",), True, first.asked)
