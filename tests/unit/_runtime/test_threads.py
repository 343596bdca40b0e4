"""Threads and locks of the system beside a gevent that has replaced them, and a greenlet's wait in its hub.

Processes that are really patched are in tests/integration/test_greenlets.py.
"""

from __future__ import annotations

import _imp
import _thread
import importlib
import os
import select
import shutil
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from typing import Any

import pytest

from forebay._runtime import threads as _threads
from forebay._runtime.threads import (
    BackgroundImport,
    after_import,
    hub_of_caller,
    is_imported,
    original,
    refusal,
    run_apart,
    start_thread,
)
from forebay._runtime.ticket import Latch, ThreadTicket
from tests.support.pace import HANG_MS, HANG_S


def replace_modules(monkeypatch: pytest.MonkeyPatch, **modules: Any) -> None:
    """Puts ``a__b`` in place of module ``a.b``; None takes that away."""
    for name, content in modules.items():
        dotted = name.replace("__", ".")
        if content is None:
            monkeypatch.delitem(sys.modules, dotted, raising=False)
        else:
            monkeypatch.setitem(sys.modules, dotted, types.SimpleNamespace(**content))


def in_thread(work: Callable[[], None]) -> None:
    """Runs ``work`` in a thread of its own, whose hub ends with it; raises what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        from gevent import get_hub

        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised.append(error)
        finally:
            get_hub().destroy()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(HANG_S)
    if raised:
        raise raised[0]
    assert not thread.is_alive()


@pytest.fixture
def gevent() -> Any:
    return pytest.importorskip("gevent", reason="gevent is not installed: it has no wheel for this Python")


def test_an_unpatched_process_has_the_modules_own(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_modules(monkeypatch, gevent__monkey=None, eventlet__patcher=None)
    assert original(_thread, "allocate_lock") is _thread.allocate_lock
    assert isinstance(_threads.RLock(), type(threading.RLock()))
    assert _threads.get_ident() == threading.get_ident()
    assert refusal() is None


def test_what_gevent_has_replaced_comes_from_gevent(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_modules(monkeypatch, gevent__monkey={"get_original": lambda module, name: f"gevent's {module}.{name}"})
    assert original(select, "poll") == "gevent's select.poll"


@pytest.mark.parametrize(("patched", "found"), [(True, "the first poll"), (False, select.poll)])
def test_what_eventlet_has_replaced_comes_from_eventlet(
    monkeypatch: pytest.MonkeyPatch, patched: bool, found: object
) -> None:
    patcher = {
        "is_monkey_patched": lambda module: patched,
        "original": lambda name: types.SimpleNamespace(poll="the first poll"),
    }
    replace_modules(monkeypatch, gevent__monkey=None, eventlet__patcher=patcher)
    assert original(select, "poll") == found


@pytest.mark.parametrize("patched", [True, False])
def test_a_process_whose_threads_are_eventlet_s_is_refused(monkeypatch: pytest.MonkeyPatch, patched: bool) -> None:
    replace_modules(monkeypatch, eventlet__patcher={"is_monkey_patched": lambda name: patched and name == "thread"})
    reason = refusal()
    assert (reason is not None) == patched
    assert reason is None or "eventlet has replaced the threads of this process" in reason


def test_a_thread_has_its_name_and_holds_nothing_up() -> None:
    seen: list[object] = []
    thread = start_thread(seen.append, "forebay-test", 7)
    assert thread is not None
    thread.join(HANG_S)
    assert (thread.name, thread.daemon, seen) == ("forebay-test", True, [7])


def test_where_threads_are_greenlets_one_of_the_system_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_modules(monkeypatch, gevent__monkey={"is_module_patched": lambda name: name == "threading"})
    monkeypatch.setattr(threading, "Thread", None)
    ran = Latch()
    assert start_thread(ran.set, "forebay-test") is None
    assert ran.wait(HANG_MS)


def test_a_thread_without_a_hub_waits_as_a_thread(gevent: Any) -> None:
    def work() -> None:
        assert hub_of_caller() is None
        ticket = ThreadTicket()
        assert not ticket.wait(1)
        assert hub_of_caller() is None

    in_thread(work)


def test_a_greenlet_waits_in_its_hub_and_a_callback_of_the_hub_does_not(gevent: Any) -> None:
    found: list[Any] = []

    def work() -> None:
        hub = gevent.get_hub()
        assert hub_of_caller() is hub
        hub.loop.run_callback(lambda: found.append(hub_of_caller()))
        gevent.sleep(0)

    in_thread(work)
    assert found == [None]


@pytest.mark.parametrize("by", ["thread", "greenlet", "before"])
def test_the_others_go_on_while_a_greenlet_waits(gevent: Any, by: str) -> None:
    steps: list[object] = []

    def work() -> None:
        ticket = ThreadTicket()

        def other() -> None:
            steps.append("other")
            if by == "greenlet":
                ticket.wake()
            elif by == "thread":
                start_thread(ticket.wake, "forebay-test")

        gevent.spawn(other)
        if by == "before":
            ticket.wake()
        steps.append(ticket.wait(HANG_MS))

    in_thread(work)
    assert steps == ([True] if by == "before" else ["other", True])


def test_a_greenlet_s_wait_has_its_limit_and_leaves_the_ticket_good(gevent: Any) -> None:
    def work() -> None:
        ticket = ThreadTicket()
        assert not ticket.wait(1)
        ticket.wake()
        assert ticket.wait(1)
        assert not ticket.wait(0)
        gevent.spawn(ticket.wake)
        assert ticket.wait(float("inf"))

    in_thread(work)


def test_a_wait_is_not_over_because_somebody_looked(gevent: Any) -> None:
    """A wake that came to the wait before, which was over by then, looks once too often."""
    steps: list[str] = []

    def work() -> None:
        waiting = _threads.GreenletWait(gevent.get_hub())

        def look_twice() -> None:
            waiting.look()
            gevent.sleep(0.001)
            steps.append("looked")
            waiting.look()

        gevent.spawn(look_twice)
        assert waiting.until(lambda: bool(steps), 60)
        waiting.close()
        waiting.look()

    in_thread(work)
    assert steps == ["looked"]


def test_what_is_thrown_into_a_greenlet_ends_its_wait(gevent: Any) -> None:
    def work() -> None:
        ticket = ThreadTicket()
        with gevent.Timeout(0.001, False):
            ticket.wait(HANG_MS)
            raise AssertionError("gevent's own limit was not heeded")
        ticket.wake()
        assert ticket.wait(0)

    in_thread(work)


def test_a_pause_leaves_the_thread_to_the_others(gevent: Any) -> None:
    steps: list[str] = []

    def work() -> None:
        gevent.spawn(steps.append, "other")
        _threads.pause(gevent.get_hub(), 0.001)
        steps.append("after")

    in_thread(work)
    assert steps == ["other", "after"]


def module_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str = "") -> str:
    """Writes a module that nobody has imported; its name."""
    name = f"rare_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def test_a_call_apart_waits_for_no_lock_of_threading() -> None:
    made = Latch()
    with threading._active_limbo_lock:  # type: ignore[attr-defined]  # as a handler that interrupted Thread.start
        run_apart(made.set)
        assert made.wait(HANG_MS)


def test_a_module_that_is_there_needs_no_thread() -> None:
    called: list[Any] = []
    after_import(lambda error: called.append((get_ident(), error)), "json", "sys")
    assert called == [(get_ident(), None)]


def test_a_module_is_imported_by_another_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = module_on_path(tmp_path, monkeypatch)
    called: list[Any] = []
    done = Latch()

    def call(error: Exception | None) -> None:
        called.append((get_ident() == caller, error, name in sys.modules))
        done.set()

    caller = get_ident()
    _imp.acquire_lock()
    try:
        after_import(call, name)
        assert called == []  # it waits, and the caller does not
    finally:
        _imp.release_lock()
    assert done.wait(HANG_MS) and called == [(False, None, True)]


def test_a_module_that_is_half_there_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = module_on_path(
        tmp_path, monkeypatch, "from forebay._runtime.threads import is_imported\nfound = is_imported(__name__)"
    )
    assert importlib.import_module(name).found is False
    assert is_imported(name)


def no_thread(*_: Any) -> int:
    raise RuntimeError("can't create new thread at interpreter shutdown")


def test_where_no_thread_can_be_started_the_caller_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = module_on_path(tmp_path, monkeypatch)
    monkeypatch.setattr(_threads, "_start_new_thread", no_thread)
    told: list[Exception | None] = []
    after_import(told.append, name)
    after_import(told.append, "no_such_module")
    assert is_imported(name) and told[0] is None and isinstance(told[1], ModuleNotFoundError)


def test_where_no_thread_can_be_started_a_rare_import_is_there_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = module_on_path(tmp_path, monkeypatch)
    monkeypatch.setattr(_threads, "_start_new_thread", no_thread)
    errors: list[Exception] = []
    assert BackgroundImport(name, errors.append).is_there() and errors == []


class Importing:
    """Stands for the lock of imports, and says when somebody begins to wait for it."""

    def __init__(self, lock: Any, waits: Callable[[], object], times_out: bool = False) -> None:
        self.lock = lock
        self.waits = waits
        self.times_out = times_out

    def acquire(self, timeout: float) -> bool:
        assert timeout == _threads.FORK_WAIT_S
        self.waits()
        return self.lock.acquire(timeout=0 if self.times_out else timeout)  # type: ignore[no-any-return]

    def release(self) -> None:
        self.lock.release()

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def half_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Latch, Latch]:
    """A module which another thread imports just now, until the first latch is set; the second tells of its end."""
    begun, go, ended = Latch(), Latch(), Latch()
    latches = types.SimpleNamespace(begun=begun, go=go)
    monkeypatch.setitem(sys.modules, "latches", latches)
    name = module_on_path(tmp_path, monkeypatch, "import latches\nlatches.begun.set()\nlatches.go.wait(60_000)")
    after_import(lambda error: ended.set(), name)
    assert begun.wait(HANG_MS)
    return name, go, ended


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_waits_for_such_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child would wait for ever for the lock of a module that nobody goes on to import."""
    lock = _threads._importing
    name, go, ended = half_imported(tmp_path, monkeypatch)
    monkeypatch.setattr(_threads, "_importing", Importing(lock, go.set))
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if is_imported(name) and _threads._importing.acquire(timeout=0) else 1)
    finally:
        go.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ended.wait(HANG_MS) and lock.acquire(timeout=HANG_S)
    lock.release()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that forks may hold what the import waits for."""
    lock = _threads._importing
    name, go, ended = half_imported(tmp_path, monkeypatch)
    monkeypatch.setattr(_threads, "_importing", Importing(lock, bool, times_out=True))
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if not is_imported(name) and _threads._importing.acquire(timeout=0) else 1)
    finally:
        go.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ended.wait(HANG_MS) and lock.acquire(timeout=HANG_S)
    lock.release()


def test_a_rare_import_is_made_once_and_tried_again_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = module_on_path(tmp_path, monkeypatch, "raise OSError('no descriptor')")
    errors: list[Exception] = []
    started: list[Any] = []
    monkeypatch.setattr(_threads, "_start_new_thread", lambda call, arguments: started.append((call, arguments)))
    rare = BackgroundImport(name, errors.append)
    for _ in range(3):
        assert not rare.is_there()
    ((call, arguments),) = started
    call(*arguments)
    assert [str(error) for error in errors] == ["no descriptor"]
    (tmp_path / f"{name}.py").write_text("")
    importlib.invalidate_caches()
    shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
    assert not rare.is_there() and len(started) == 2
    call, arguments = started[1]
    call(*arguments)
    assert rare.is_there() and len(errors) == 1 and len(started) == 2
