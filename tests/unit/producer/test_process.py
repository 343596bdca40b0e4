"""per_process and end_on_sigterm within one process; tests/integration/test_deployment.py has real servers."""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from forebay._sender import lifecycle
from forebay.errors import ConfigError, IllegalStateError
from forebay.producer.process import PerProcess, end_on_sigterm, per_process
from forebay.testing.clock import ManualClock


@pytest.fixture
def made() -> Iterator[PerProcess]:
    made = per_process({"bootstrap.servers": "127.0.0.1:1"}, client_id="mine")
    yield made
    made.close()


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Called as a signal would call it; the handler of before is back afterwards."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(lifecycle, "_end_at", None)
    yield lambda: signal.getsignal(signal.SIGTERM)(signal.SIGTERM, None)  # type: ignore[operator,misc]
    signal.signal(signal.SIGTERM, before)


def test_one_producer_made_at_first_use(made: PerProcess) -> None:
    assert "not used in this process" in repr(made)
    producer = made()
    assert made() is producer and producer.client_id == "mine"
    assert "open" in repr(made)


def test_after_close_there_is_a_new_one(made: PerProcess) -> None:
    first = made()
    made.close()
    made.close()
    assert "closed" in repr(first)
    assert made() is not first


def test_copies_by_pickle_share_the_producer(made: PerProcess) -> None:
    assert pickle.loads(pickle.dumps(made))() is made()


def test_two_of_them_have_two_producers(made: PerProcess) -> None:
    other = per_process(bootstrap_servers="127.0.0.1:1")
    assert other() is not made()
    other.close()


def test_threads_that_come_at_once_get_the_same(made: PerProcess) -> None:
    found: list[Any] = []
    barrier = threading.Barrier(4)

    def use() -> None:
        barrier.wait()
        found.append(made())

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [made()] * 4


def test_bad_options_are_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="Unknown option"):
        per_process(bootstrap_servers="127.0.0.1:1", linger_mss=1)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="each process would fence the one before"):
        per_process(bootstrap_servers="127.0.0.1:1", transactional_id="t")


def test_sigterm_ends_with_143_and_limits_the_end(handler: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_on_sigterm(5)
    assert lifecycle.time_left() is None
    with pytest.raises(SystemExit) as ended:
        handler()
    assert ended.value.code == 143
    left = lifecycle.time_left()
    assert left is not None and 0 < left <= 5


def test_a_second_signal_gives_no_more_time(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_on_sigterm(5, exit_code=0)
    monkeypatch.setattr(lifecycle, "_end_at", 0.0)
    with pytest.raises(SystemExit) as ended:
        handler()
    assert ended.value.code == 0
    assert lifecycle.time_left() == 0


def test_a_handler_of_before_is_called_in_its_place(handler: Any) -> None:
    seen: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    end_on_sigterm(5)
    end_on_sigterm(7)  # in place of the first
    handler()
    assert seen == [signal.SIGTERM] and lifecycle.time_left() is not None


def test_a_signal_that_was_ignored_stays_so(handler: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_on_sigterm(5)
    handler()


def test_where_it_is_refused(handler: Any) -> None:
    with pytest.raises(ValueError, match="negative: -1"):
        end_on_sigterm(-1)
    raised: list[BaseException] = []

    def elsewhere() -> None:
        try:
            end_on_sigterm()
        except IllegalStateError as error:
            raised.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "only the main thread" in str(raised[0])


def test_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "_end_at", None)
    clock = ManualClock()
    lifecycle.limit_end(2, clock)
    clock.advance(500)
    assert lifecycle.time_left(clock) == 1.5
    clock.advance(5000)
    assert lifecycle.time_left(clock) == 0
