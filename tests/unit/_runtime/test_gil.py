"""GilClaim: threads that send go on for 2 ms, then give way until the sender has the GIL."""

from __future__ import annotations

import threading

from forebay._runtime.gil import GilClaim

LOOK_EVERY = 64
PATIENCE_MS = 2.0
LONG_AGO = -1e9


def test_only_some_calls_look_at_the_clock() -> None:
    claim = GilClaim()
    claim.begin(100)
    looks = [number for number in range(1, 3 * LOOK_EVERY + 1) if claim.pass_by()]
    assert looks == [LOOK_EVERY, 2 * LOOK_EVERY, 3 * LOOK_EVERY]


def test_each_claim_counts_anew() -> None:
    claim = GilClaim()
    for since in (100.0, 200.0):
        claim.begin(since)
        assert (claim.waiting, claim.passed, claim.since) == (True, 0, since)
        claim.pass_by()
        claim.end()
        assert not claim.waiting


def test_nobody_gives_way_before_the_sender_has_waited() -> None:
    """Were it otherwise, this call would sleep: nobody ends the claim."""
    claim = GilClaim()
    claim.begin(100)
    claim.give_way(100 + PATIENCE_MS - 0.01)
    assert claim.waiting and claim.asleep == 0


def test_a_thread_gives_way_until_the_sender_has_it() -> None:
    claim = GilClaim()
    claim.begin(LONG_AGO)
    gone_on: list[bool] = []

    def send() -> None:
        now = 0.0
        while claim.waiting:
            claim.give_way(now)  # it sleeps for 2 ms at most
            now += 2 * PATIENCE_MS  # and then has patience again
        gone_on.append(claim.waiting)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    while claim.asleep == 0:
        pass
    assert gone_on == []
    claim.end()
    thread.join()
    assert gone_on == [False] and claim.asleep == 0


def test_a_sender_that_does_not_come_is_not_waited_for() -> None:
    """A delivery callback may wait for a lock that the thread holds."""
    claim = GilClaim()
    claim.begin(LONG_AGO)
    claim.give_way(0)
    assert claim.waiting and claim.asleep == 0
    assert claim.since == 2.0  # this thread has as much patience again once it has slept


def test_where_the_sender_has_come_meanwhile_nobody_sleeps() -> None:
    claim = GilClaim()
    claim.begin(LONG_AGO)
    claim.end()
    claim.give_way(0)
    assert claim.asleep == 0
