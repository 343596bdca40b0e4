"""The interpreted twin of ``_runtime/this_thread.pxd``: a mark that a thread puts on itself."""

from __future__ import annotations

from forebay._runtime.threads import local


class _ThisThread(local):  # type: ignore[misc]
    # Of the class, so that no look-up on a thread that never sets it has to make an error first.
    marked = False


_this_thread = _ThisThread()


def mark_thread() -> None:
    _this_thread.marked = True


def thread_is_marked() -> bool:
    return _this_thread.marked
