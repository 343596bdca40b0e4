"""Who waits for metadata is woken, by news and by its end."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from forebay._runtime.ticket import ThreadTicket
from forebay.errors import AuthenticationError, DisconnectError, InvalidTopicError, KafkaError
from tests.support.pace import HANG_MS, HANG_S

from .metadata_cases import Waker, metadata, update
from .replies import reply, topic


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


def frames(error: BaseException) -> int:
    count, at = 0, error.__traceback__
    while at is not None:
        count, at = count + 1, at.tb_next
    return count


@pytest.mark.parametrize("cause", [DisconnectError("gone"), OSError("gone")])
def test_a_stored_error_does_not_grow_with_each_raise(cause: Exception) -> None:
    fresh = metadata("t")
    stored = AuthenticationError("who are you", node="n")
    stored.__cause__ = cause
    fresh.fatal(stored)
    seen: list[AuthenticationError] = []
    for _ in range(3):
        with pytest.raises(AuthenticationError) as raised:
            fresh.raise_if_failed()
        seen.append(raised.value)
    assert len({id(error) for error in (stored, *seen)}) == 4
    assert len({frames(error) for error in seen}) == 1
    assert stored.__traceback__ is None
    for error in seen:
        assert (str(error), error.context) == (str(stored), stored.context)
        assert error.__cause__ is cause


def test_each_caller_gets_a_topic_error_of_its_own() -> None:
    fresh = metadata("bad")
    update(fresh, reply(topic("bad", error=17)))
    first, second = fresh.topic_error("bad"), fresh.topic_error("bad")
    assert first is not None and second is not None
    assert first is not second
    with pytest.raises(InvalidTopicError):
        raise first.with_context(phase="mine")
    assert second.__traceback__ is None
    assert "phase" not in second.context
    assert str(fresh.topic_error("bad")) == str(second)


def test_close_wakes_and_refuses() -> None:
    fresh = metadata("t")
    ticket = Waker()
    fresh.await_version(0, ticket)
    fresh.close()
    assert ticket.count == 1
    assert fresh.await_version(0, Waker())
    with pytest.raises(KafkaError, match="Requested metadata update after close"):
        fresh.raise_if_failed()


def test_threads_that_wait_are_all_woken() -> None:
    fresh = metadata("t")
    woken: list[bool] = []
    begun = threading.Barrier(5)

    def wait() -> None:
        ticket = ThreadTicket()
        there = fresh.await_version(0, ticket)
        begun.wait(HANG_S)
        woken.append(there or ticket.wait(HANG_MS))

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait(HANG_S)
    update(fresh, reply(counts={"t": 1}))
    for thread in threads:
        thread.join(HANG_S)
    assert woken == [True] * 4


def test_a_picture_is_never_half_of_two() -> None:
    """N testConcurrentUpdateAndFetchForSnapshotAndCluster: counts, epochs and version that a thread reads agree."""
    fresh = metadata("t")
    update(fresh, reply(counts={"t": 1}, epoch=1))
    torn: list[tuple[int, ...]] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            cluster = fresh.cluster()
            count, version = cluster.partition_count("t"), cluster.version
            epochs = {info.leader_epoch for info in map(partial(cluster.partition, "t"), range(count)) if info}
            if epochs != {count} or version != count:
                torn.append((count, version, *epochs))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(2, 100):
        update(fresh, reply(counts={"t": number}, epoch=number))
    over.set()
    for thread in threads:
        thread.join(HANG_S)
    assert torn == []
    assert fresh.version == 99
