"""Who waits for metadata is woken, by news and by its end."""

from __future__ import annotations

import threading

import pytest

from forebay._ticket import ThreadTicket
from forebay.errors import AuthenticationError, KafkaError

from .metadata_cases import Waker, metadata, update
from .replies import reply


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
