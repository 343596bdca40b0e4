"""The system's threads and locks, even where gevent has replaced them, and how a greenlet waits.

A producer's threads sleep in poll(2) and in look-ups of names.  As greenlets they would stop all others, so they are
threads of the system in every process.  The system's locks guard what they share with the application's threads.
Nothing under these locks switches to another greenlet, so two greenlets of one thread never compete for one.  A
greenlet that waits for a sender leaves its thread to the other greenlets (``GreenletWait``).

eventlet is refused: its locks, also those of ``logging``, break when a thread of the system waits for one.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable
from typing import Any


def original(module: Any, name: str) -> Any:
    """The value that ``module`` had under this name before gevent or eventlet replaced it."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None:
        return monkey.get_original(module.__name__, name)
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is not None and patcher.is_monkey_patched(module):
        module = patcher.original(module.__name__)
    return getattr(module, name)


# Looked up once, so that a later patch of gevent's does not change them.
Lock: Callable[[], _thread.LockType] = original(_thread, "allocate_lock")
RLock = _thread.RLock  # gevent puts its own into threading alone
get_ident: Callable[[], int] = original(_thread, "get_ident")
local: Any = original(_thread, "_local")
_start_new_thread: Callable[..., int] = original(_thread, "start_new_thread")


def start_thread(target: Callable[..., object], name: str, *arguments: Any) -> threading.Thread | None:
    """Starts a daemon thread of the system; returns its object, or None in a process that gevent has patched.

    Raises:
        RuntimeError: no thread can be started, because the interpreter ends or a limit of the system is reached.
    """
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("threading"):
        _start_new_thread(target, arguments)
        return None
    thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
    thread.start()
    return thread


def refusal() -> str | None:
    """Why no producer can run in this process, if none can."""
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is None or not patcher.is_monkey_patched("thread"):
        return None
    return (
        "eventlet has replaced the threads of this process, and its locks cannot be shared with the sender's thread; "
        "use gevent, or leave threads as they are with eventlet.monkey_patch(thread=False)"
    )


def hub_of_caller() -> Any:
    """gevent's hub, if the caller runs in a greenlet that can leave its thread to other greenlets; else None."""
    hubs = sys.modules.get("gevent._hub_local")
    hub = None if hubs is None else hubs.get_hub_if_exists()
    if hub is None:
        return None  # no other greenlet can wait for this thread
    from gevent import getcurrent

    return None if getcurrent() is hub else hub  # a callback of the hub's own cannot wait in it


class GreenletWait:
    """One wait of a greenlet, while the other greenlets of its thread go on.  That greenlet makes and closes it."""

    def __init__(self, hub: Any) -> None:
        from gevent.hub import Waiter

        self._waiter = Waiter(hub)
        # gevent's way to be woken by another thread.  It also keeps the loop from ending.
        self._watcher = hub.loop.async_()
        self._watcher.start(self._waiter.switch, None)

    def look(self) -> None:
        """Makes the greenlet check again whether its wait is over; any thread.  Never raises."""
        try:
            self._watcher.send()
        except Exception:  # noqa: BLE001 - closed meanwhile, so the wait is over
            pass

    def until(self, is_over: Callable[[], bool], limit: float) -> bool:
        """Waits until ``is_over()`` after a ``look``; False if ``limit`` seconds passed first."""
        from gevent import Timeout

        over = is_over()
        with Timeout(limit if limit < threading.TIMEOUT_MAX else None, False):
            while not over:
                self._waiter.get()
                self._waiter.clear()
                over = is_over()
        return over or is_over()

    def close(self) -> None:
        self._watcher.close()


def pause(hub: Any, limit: float) -> None:
    """Leaves the caller's thread to its other greenlets for ``limit`` seconds."""
    hub.wait(hub.loop.timer(limit))
