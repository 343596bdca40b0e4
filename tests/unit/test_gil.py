"""GilClaim: calls pass by for a while, then give way until the sender has what it waits for."""

from __future__ import annotations

import threading

from forebay._gil import GilClaim

MOST_CALLS = 10_000


def test_calls_pass_by_for_a_while() -> None:
    claim = GilClaim()
    claim.waiting = True
    for number in range(1, MOST_CALLS):
        claim.pass_by(1000)
        assert claim.passed == number


def test_from_then_on_each_call_gives_way_until_the_sender_has_it() -> None:
    claim = GilClaim()
    claim.waiting = True
    for _ in range(MOST_CALLS - 1):
        claim.pass_by(1000)
    seen: list[int] = []

    def sender() -> None:
        while (passed := claim.passed) < MOST_CALLS:
            pass
        seen.append(passed)
        claim.waiting = False

    thread = threading.Thread(target=sender)
    thread.start()
    while claim.waiting:
        claim.pass_by(1000)
    thread.join()
    assert seen == [MOST_CALLS]


def test_two_milliseconds_are_enough() -> None:
    """Few calls with much between them: the records' timestamps tell."""
    claim = GilClaim()
    claim.pass_by(1000)
    claim.pass_by(1001)
    assert claim.passed == 2
    claim.pass_by(1002)
    assert claim.passed == MOST_CALLS


def test_timestamps_that_run_backwards_do_not_keep_the_sender_waiting() -> None:
    claim = GilClaim()
    claim.pass_by(1000)
    claim.pass_by(5)
    assert claim.passed == MOST_CALLS


def test_a_sender_that_does_not_come_keeps_nobody_for_long() -> None:
    """A thread that computes may be quicker to take the GIL each time: patience begins anew."""
    claim = GilClaim()
    claim.waiting = True
    claim.pass_by(1)
    claim.pass_by(9)
    assert claim.waiting and (claim.passed, claim.first) == (1, 9)
    claim.pass_by(10)
    assert claim.passed == 2


def test_who_waits_for_long_wakes_earlier() -> None:
    """What is due in 5 ms needs the GIL then, and somebody keeps it for 5."""
    claim = GilClaim()
    assert claim.early(7) == 7
    claim.begin(100)
    assert claim.waiting and (claim.passed, claim.since) == (0, 100)
    claim.end(105)
    assert not claim.waiting
    assert (claim.early(7), claim.early(3), claim.early(float("inf"))) == (2, 0, float("inf"))


def test_after_a_few_short_waits_it_is_forgotten() -> None:
    claim = GilClaim()
    claim.begin(100)
    claim.end(105)
    for turn in range(3):
        claim.begin(200 + turn)
        claim.end(200 + turn)
    assert claim.early(7) == 7
