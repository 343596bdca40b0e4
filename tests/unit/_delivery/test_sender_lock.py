"""What a thread holds that a sender's thread needs, and whether it may wait for that thread."""

from __future__ import annotations

import threading

import pytest

from forebay._delivery import sender_lock as _sender_lock
from forebay._delivery.sender_lock import IN_HAND, SenderLock, may_wait
from tests.support.pace import HANG_S


def test_who_holds_a_lock_may_not_wait() -> None:
    first, second = SenderLock(), SenderLock()
    assert may_wait()
    with first:
        assert not may_wait()
        with first, second:
            assert not may_wait()
        assert not may_wait()
    assert may_wait()


def test_others_may_wait_and_wait_for_the_lock() -> None:
    lock = SenderLock()
    seen: list[object] = []

    def other() -> None:
        seen.append(may_wait())
        with lock:
            seen.append("in")
        seen.append(may_wait())

    thread = threading.Thread(target=other)
    with lock:
        thread.start()
        thread.join(0.05)
        assert "in" not in seen
    thread.join()
    assert seen == [True, "in", True]


def test_an_error_inside_lets_go() -> None:
    lock = SenderLock()
    with pytest.raises(KeyboardInterrupt), lock:
        raise KeyboardInterrupt
    assert may_wait()
    thread = threading.Thread(target=lock.__enter__, daemon=True)
    thread.start()
    thread.join(HANG_S)
    assert not thread.is_alive()


def test_what_is_in_hand_is_left_to_the_sender_by_its_own_thread_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    mine, other = threading.get_ident(), -1
    monkeypatch.setattr(_sender_lock, "IN_HAND", IN_HAND)
    entries = [(mine, lambda: left.append("mine")), (other, lambda: left.append("other"))]
    IN_HAND.extend(entries)
    try:
        assert may_wait()
        assert left == ["mine"]
        with SenderLock():
            assert not may_wait()
        assert left == ["mine", "mine"]
    finally:
        for entry in entries:
            IN_HAND.remove(entry)
