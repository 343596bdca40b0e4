"""The interpreted twin of ``_runtime/this_thread.pxd``: a mark, or a count, that a thread keeps of itself."""

from __future__ import annotations

from forebay._runtime.threads import local


class _ThisThread(local):  # type: ignore[misc]
    # On the class: a thread that never sets them finds them there, without an AttributeError first.
    marked = False
    count = 0


_this_thread = _ThisThread()


def mark_thread() -> None:
    _this_thread.marked = True


def thread_is_marked() -> bool:
    return _this_thread.marked


def count_on_thread(change: int) -> None:
    _this_thread.count += change


def count_of_thread() -> int:
    return _this_thread.count
