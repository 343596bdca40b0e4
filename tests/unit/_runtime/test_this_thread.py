"""A mark that a thread puts on itself."""

from __future__ import annotations

import threading

from forebay._runtime import this_thread as _this_thread


def test_the_twin_marks_one_thread() -> None:
    seen: list[object] = []

    def run() -> None:
        seen.append(_this_thread.thread_is_marked())
        _this_thread.mark_thread()
        seen.append(_this_thread.thread_is_marked())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [False, True] and not _this_thread.thread_is_marked()


def test_the_twin_counts_on_one_thread() -> None:
    seen: list[object] = []

    def run() -> None:
        for change in (1, 1, -1, -1):
            _this_thread.count_on_thread(change)
            seen.append(_this_thread.count_of_thread())
        seen.append(_this_thread.thread_is_marked())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [1, 2, 1, 0, False] and _this_thread.count_of_thread() == 0
