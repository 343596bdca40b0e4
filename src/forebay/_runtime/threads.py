"""The system's threads and locks, even where gevent has replaced them, and how a greenlet waits.

A producer's threads sleep in poll(2) and in look-ups of names.  As greenlets they would stop all others, so they are
threads of the system in every process.  The system's locks guard what they share with the application's threads.
Nothing under these locks switches to another greenlet, so two greenlets of one thread never compete for one.  A
greenlet that waits for a sender leaves its thread to the other greenlets (``GreenletWait``).

eventlet is refused: its locks, also those of ``logging``, break when a thread of the system waits for one.
"""

from __future__ import annotations

import _thread
import importlib
import os
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


def run_apart(call: Callable[..., object], *arguments: Any) -> None:
    """Has a thread of the system make a call that may wait for a lock of the application's or of Python's.

    The sender's thread must not take such a lock: a handler may have interrupted its holder and be waiting for the
    sender.  It is not a ``threading.Thread``, whose start takes such a lock.

    Raises:
        RuntimeError: no thread can be started.
    """
    _start_new_thread(call, arguments)


def is_imported(name: str) -> bool:
    """Whether an import of the module would take no lock: it is there, and not half there."""
    module = sys.modules.get(name)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


def after_import(call: Callable[[Exception | None], object], *names: str) -> None:
    """Makes ``call`` once the modules are imported: now, or apart (``run_apart``), by a thread that imports them first.

    Where no thread can be started (the interpreter exits, or the system has a limit), the caller imports them.  It may
    then wait for a lock of Python's, but without the modules it could never do its work.

    Python forgets that nothing handled a KeyboardInterrupt if a thread makes a named tuple after it.  A program that
    Ctrl-C ends during such an import then exits with 1, not 130.

    Args:
        call: gets the error because of which one is not imported, or None; must not raise.
    """
    if all(is_imported(name) for name in names):
        call(None)
        return
    try:
        run_apart(_import_and_call, call, names)
    except RuntimeError:
        _import_and_call(call, names)


def _import_and_call(call: Callable[[Exception | None], object], names: tuple[str, ...]) -> None:
    failed: Exception | None = None
    try:
        with _importing:
            for name in names:
                importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - the caller says what it means
        failed = error
    call(failed)


_importing = RLock()
"""Held by a thread that imports for ``after_import``, and by one that forks.

A child that is forked amid an import would wait for ever for the lock of that module: it does not have the thread which
holds it.  Re-entrant, because a signal handler that forks may interrupt a fork.
"""
FORK_WAIT_S = 5.0
"""The longest that a fork waits.  It may hold a lock which the import needs: that of a module whose import forks."""


def _before_fork() -> None:
    _importing.acquire(timeout=FORK_WAIT_S)


def _after_fork_in_parent() -> None:
    try:
        _importing.release()
    except RuntimeError:
        pass  # it waited in vain


def _after_fork_in_child() -> None:
    global _importing
    _importing = RLock()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


class BackgroundImport:
    """A module that a sender's thread may need, and that is not wanted at each start.

    Args:
        name: of the module.
        failed: gets the error if it cannot be imported; must not raise.
    """

    def __init__(self, name: str, failed: Callable[[Exception], object]) -> None:
        self._name = name
        self._failed = failed
        self._begun = False
        """Set by the sender's thread, cleared by the thread that imports."""

    def is_there(self) -> bool:
        """Whether its import takes no time; if not, a thread imports it, and the caller looks again later."""
        if not self._begun and not is_imported(self._name):
            self._begun = True
            after_import(self._end, self._name)
        return is_imported(self._name)

    def _end(self, error: Exception | None) -> None:
        self._begun = False
        if error is not None:
            self._failed(error)


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
