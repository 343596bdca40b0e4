"""GilClaim: calls pass by for a while, then give way until the sender has what it waits for."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from forebay._gil import GilClaim

MOST_CALLS = 10_000
STEP_CALLS = 500


def test_calls_pass_by_for_a_while() -> None:
    claim = GilClaim()
    claim.waiting = True
    for number in range(1, MOST_CALLS):
        claim.pass_by(1000)
        assert claim.passed == number


def test_then_a_call_gives_way_until_the_sender_has_it() -> None:
    claim = GilClaim()
    claim.waiting = True
    for _ in range(MOST_CALLS - 1):
        claim.pass_by(1000)
    seen: list[int] = []

    def sender() -> None:
        while claim.passed == MOST_CALLS - 1:
            pass
        seen.append(claim.passed)
        claim.end(0)

    thread = threading.Thread(target=sender)
    thread.start()
    while claim.waiting:
        claim.pass_by(1000)
    thread.join()
    assert seen == [MOST_CALLS - STEP_CALLS]


def test_who_gets_it_in_the_senders_place_works_for_a_moment_and_gives_way_too() -> None:
    """Else several threads hand it round with nothing done in between."""
    claim = GilClaim()
    claim.waiting = True
    for _ in range(MOST_CALLS - 1):
        claim.pass_by(1000)

    def give_way() -> None:
        # As the sender takes it within a nap, and another thread gets it before the sender.
        claim.waiting = False
        claim.pass_by(1000)
        claim.waiting = True

    for _ in range(3):
        give_way()
        for number in range(1, STEP_CALLS):
            claim.pass_by(1000)
            assert claim.passed == MOST_CALLS - STEP_CALLS + number


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or sys.maxsize < 1 << 32, reason="needs a futex, and /proc to see who sleeps"
)
def test_each_turn_of_the_sender_lets_one_go_on_the_first_of_them() -> None:
    """The others would only stand in its way when it comes again."""
    claim = GilClaim()
    claim.begin(0)
    gone_on: list[tuple[int, bool]] = []
    threads = []

    def give_way(number: int) -> None:
        gone_on.append((number, claim.give_way_for(999_000_000, claim.turn)))

    for number in range(3):
        threads.append(threading.Thread(target=give_way, args=(number,)))
        threads[-1].start()
        while claim.asleep <= number or not sleeps(threads[-1]):
            pass
    for number in range(3):
        claim.end(0)
        claim.begin(0)
        threads[number].join()
        threading.Event().wait(0.02)  # the others have had the time to go on
        assert claim.asleep == 2 - number
    assert gone_on == [(0, False), (1, False), (2, False)]


def test_a_sender_that_came_before_the_thread_sleeps_is_not_missed() -> None:
    claim = GilClaim()
    claim.begin(0)
    seen = claim.turn
    claim.end(0)
    claim.begin(0)
    assert not claim.give_way_for(999_000_000, seen)


def test_who_is_not_waited_for_keeps_nobody() -> None:
    claim = GilClaim()
    assert not claim.give_way_for(999_000_000, claim.turn)
    claim.begin(0)
    assert claim.give_way_for(1_000, claim.turn)  # it did not come
    claim.end(0)
    assert not claim.give_way_for(999_000_000, claim.turn)
    assert claim.asleep == 0


def test_two_milliseconds_are_enough() -> None:
    """Few calls with much between them: the records' timestamps tell."""
    claim = GilClaim()
    claim.pass_by(1000)
    claim.pass_by(1001)
    assert claim.passed == 2
    claim.pass_by(1002)
    assert claim.passed == MOST_CALLS - STEP_CALLS


def test_timestamps_that_run_backwards_do_not_keep_the_sender_waiting() -> None:
    claim = GilClaim()
    claim.pass_by(1000)
    claim.pass_by(5)
    assert claim.passed == MOST_CALLS - STEP_CALLS


def test_a_sender_that_does_not_come_keeps_nobody_for_long() -> None:
    """A thread that computes may be quicker to take the GIL each time: patience begins anew."""
    claim = GilClaim()
    claim.waiting = True
    claim.pass_by(1)
    claim.pass_by(9)
    assert claim.waiting and (claim.passed, claim.first) == (1, 9)
    claim.pass_by(10)
    assert claim.passed == 2


def test_who_was_kept_waiting_for_long_looks_at_what_is_due_earlier() -> None:
    """What is due in 5 ms needs the GIL then, and somebody keeps it for 5."""
    claim = GilClaim()
    assert claim.ahead() == 0
    for begun in (100, 106):
        assert not claim.beside and claim.ahead() == 0
        claim.begin(begun)
        assert claim.waiting and (claim.passed, claim.since) == (0, begun)
        claim.end(begun + 5)
        assert not claim.waiting
    assert claim.beside and claim.ahead() == 5


def test_one_long_wait_now_and_then_is_something_else() -> None:
    """A collection of garbage, an import."""
    claim = GilClaim()
    for begun in range(100, 1000, 100):
        claim.begin(begun)
        claim.end(begun + 8)
        assert not claim.beside


def test_a_thread_that_computes_is_remembered_for_a_second() -> None:
    claim = GilClaim()
    kept(claim, at=100)
    for now in (500, 1104):
        claim.begin(now)
        claim.end(now)
        assert claim.beside
    claim.begin(1105)
    claim.end(1105)
    assert not claim.beside and claim.ahead() == 0


def test_a_thread_that_sends_without_a_pause_does_not_count_as_one_that_computes() -> None:
    claim = GilClaim()
    for begun in (100, 106):
        claim.begin(begun)
        for _ in range(500):
            claim.pass_by(1)
        claim.end(begun + 5)
    assert not claim.beside


def test_beside_a_thread_that_computes_nobody_gives_way_to_it_in_a_short_burst() -> None:
    """It would take the GIL, and the thread that sends nothing."""
    claim = GilClaim()
    kept(claim, at=100)
    claim.begin(200)
    for number in range(10):
        claim.is_long(205 + 0.1 * number)
        claim.pass_by(1000 * number)
        assert claim.passed == number + 1
    # Not a burst any more.
    for number in range(10, 21):
        claim.is_long(205 + 0.1 * number)
    claim.pass_by(11_000)
    assert claim.passed == 1 and claim.first == 11_000


def test_a_claim_from_before_is_long() -> None:
    claim = GilClaim()
    claim.begin(100)
    assert not claim.is_long(100.05)
    claim.begin(100)
    assert claim.is_long(100.2)


def test_only_the_first_call_with_the_gil_finds_a_long_claim() -> None:
    claim = GilClaim()
    claim.begin(100)
    assert claim.is_long(105)
    claim.pass_by(1)
    assert not claim.is_long(105.5)
    assert not claim.is_long(106.4)
    # The thread has waited in between, and finds it again.
    assert claim.is_long(107.4)


def test_a_claim_made_since_is_not_long_beside_a_thread_that_computes_either() -> None:
    """The sender is let past that one, which waits for the GIL, too; the call goes on with it."""
    claim = GilClaim()
    kept(claim, at=100)
    claim.begin(200)
    assert not claim.is_long(200.05)
    assert claim.is_long(201.5)


def sleeps(thread: threading.Thread) -> bool:
    """Whether the system has it asleep: it counts itself a moment before."""
    state = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
    return state.rpartition(")")[2].split()[0] == "S"


def kept(claim: GilClaim, *, at: float) -> None:
    """The sender waits for the GIL as long as a thread that computes keeps it, twice; until ``at`` + 5."""
    for begun in (at - 6, at):
        claim.begin(begun)
        claim.end(begun + 5)
