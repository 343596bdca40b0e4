"""When the next update is due, and what it asks for."""

from __future__ import annotations

import pytest

from forebay._network.metadata import MetadataQuery
from forebay.model import Node

from .metadata_cases import metadata, update
from .replies import reply


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
    """N testRequestUpdate: the version to exceed is the one there is; the flag falls with the answer."""
    fresh = metadata("a")
    for version in range(4):
        assert fresh.request_update() == version
        assert fresh.update_requested
        update(fresh, reply(counts={"a": 1}), 1000 * version)
        assert (fresh.version, fresh.update_requested) == (version + 1, False)


def test_a_failure_does_not_forget_what_was_new() -> None:
    """N testPartialMetadataUpdate: after its back-off the new topic is asked for alone again."""
    fresh = metadata("old")
    update(fresh, reply(counts={"old": 1}), 0)
    fresh.add_topic("new", 20)
    first = fresh.next_query(20)
    fresh.failed_update(30)
    assert fresh.update_requested
    assert fresh.time_to_next_update(30) == 100
    assert fresh.next_query(130) == first == MetadataQuery(("new",), True, first.asked)
