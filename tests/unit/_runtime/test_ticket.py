"""A ticket lets one waiter go on, once for each wake, in whatever order the two come."""

from __future__ import annotations

import threading

import pytest

from forebay._runtime.ticket import Latch, ThreadTicket, Ticket
from tests.fakes.tickets import CountingTicket
from tests.support.pace import HANG_MS, HANG_S


def test_a_wake_before_the_wait_is_not_lost() -> None:
    ticket = ThreadTicket()
    ticket.wake()
    assert ticket.wait(0)


def test_many_wakes_are_one() -> None:
    ticket = ThreadTicket()
    for _ in range(3):
        ticket.wake()
    assert [ticket.wait(0), ticket.wait(0)] == [True, False]


def test_it_serves_for_the_next_wait_too() -> None:
    ticket = ThreadTicket()
    for _ in range(2):
        assert not ticket.wait(0)
        ticket.wake()
        assert ticket.wait(0)


@pytest.mark.parametrize("timeout", [0, -5, 0.5])
def test_without_a_wake_the_wait_ends_at_its_limit(timeout: float) -> None:
    assert ThreadTicket().wait(timeout) is False


def test_another_thread_wakes_the_waiter() -> None:
    ticket, outcome = ThreadTicket(), []
    waiter = threading.Thread(target=lambda: outcome.append(ticket.wait(HANG_MS)))
    waiter.start()
    ticket.wake()
    waiter.join(HANG_S)
    assert outcome == [True]


def test_an_endless_limit_is_within_what_a_lock_takes() -> None:
    ticket = ThreadTicket()
    ticket.wake()
    assert ticket.wait(float("inf"))


def test_the_base_has_no_way_to_wake() -> None:
    with pytest.raises(TypeError, match="subclass"):
        Ticket().wake()


def test_a_latch_wakes_those_that_subscribed() -> None:
    latch, first, second = Latch(), CountingTicket(), CountingTicket()
    assert not latch.subscribe(first) and not latch.subscribe(second)
    latch.unsubscribe(second)
    latch.set()
    assert (first.woken, second.woken) == (1, 0)
    assert latch.subscribe(second) and latch.wait(0) and second.woken == 0


def test_a_latch_lets_everybody_go_on_who_waits_and_who_comes_later() -> None:
    latch, outcome = Latch(), []
    assert not latch.wait(0) and not latch.is_set()
    waiters = [threading.Thread(target=lambda: outcome.append(latch.wait(HANG_MS))) for _ in range(3)]
    for waiter in waiters:
        waiter.start()
    latch.set()
    for waiter in waiters:
        waiter.join(HANG_S)
    assert outcome == [True] * 3 and latch.is_set() and latch.wait(0)
