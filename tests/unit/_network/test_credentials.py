"""The helper thread: work in order, wake-ups, errors, the end, and what is left of it after a fork."""

from __future__ import annotations

import gc
import logging
import os
import threading
from collections.abc import Iterator

import pytest

from forebay._network import credentials
from forebay._network.credentials import Helper
from forebay._network.sasl.mechanism import Blocking
from forebay.errors import NetworkError
from tests.support.pace import HANG_S


@pytest.fixture
def helper() -> Iterator[Helper]:
    made = Helper("forebay-login | test")
    yield made
    made.close()
    assert credentials.join_all(10_000)


def done(helper: Helper, work: Blocking) -> Blocking:
    woken = threading.Event()
    helper.wake = woken.set
    helper.begin(work)
    assert woken.wait(HANG_S)
    assert work.done
    return work


def test_work_is_done_on_the_thread_and_the_caller_woken(helper: Helper) -> None:
    work = done(helper, Blocking("a name", lambda: threading.current_thread().name))
    assert work.begun and work.error is None and work.result == "forebay-login | test"


def test_an_error_is_kept_and_the_thread_goes_on(helper: Helper) -> None:
    def fails() -> None:
        raise ValueError("no")

    assert isinstance(done(helper, Blocking("a failure", fails)).error, ValueError)
    assert done(helper, Blocking("more", lambda: 1)).result == 1


def test_a_wake_up_that_raises_is_logged_and_the_thread_goes_on(
    helper: Helper, caplog: pytest.LogCaptureFixture
) -> None:
    def wake() -> None:
        raise ValueError("awake")

    helper.wake = wake
    helper.begin(Blocking("one", lambda: 1))
    assert done(helper, Blocking("two", lambda: 2)).result == 2
    assert any(record.levelno == logging.ERROR and record.exc_info for record in caplog.records)


def test_close_lets_the_running_work_end_and_fails_the_rest() -> None:
    helper = Helper("forebay-login | test")
    begun, go = threading.Event(), threading.Event()

    def blocks() -> str:
        begun.set()
        go.wait(HANG_S)
        return "late"

    running, waiting = Blocking("the first", blocks), Blocking("the second", lambda: 1)
    helper.begin(running)
    helper.begin(waiting)
    assert begun.wait(HANG_S)
    helper.close()
    helper.close()
    assert isinstance(waiting.error, NetworkError) and "the second" in str(waiting.error)
    after = Blocking("the third", lambda: 1)
    helper.begin(after)
    assert after.done and isinstance(after.error, NetworkError)
    assert not credentials.join_all(1), "the first still runs"
    go.set()
    assert credentials.join_all(10_000)
    assert running.result == "late"


def test_a_helper_that_nobody_holds_ends() -> None:
    helper = Helper("forebay-login | test")
    del helper
    gc.collect()
    assert credentials.join_all(10_000)


def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(credentials, "start_thread", fails)
    with pytest.raises(RuntimeError):
        Helper("forebay-login | test")
    assert credentials.join_all(0)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_waits_for_no_thread(helper: Helper) -> None:
    child = os.fork()
    if child == 0:
        credentials.forget_all()
        os._exit(0 if credentials.join_all(0) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
