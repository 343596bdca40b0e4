from __future__ import annotations

import logging
import threading

import pytest

from forebay._runtime.log import MAX_KEYS, OF_THREADS, LocklessLogger, RateLimitedLogger
from tests.support.pace import HANG_S

LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_first_at_once_then_one_an_interval(caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLogger("forebay.test", prefix="[me] ", interval_ms=1000)
    assert log.warning("down", 0, "node %d is down", 1)
    assert not log.warning("down", 10, "node %d is down", 1)
    assert not log.warning("down", 999, "node %d is down", 1)
    assert log.warning("down", 1000, "node %d is down", 1)
    assert lines(caplog) == ["[me] node 1 is down", "[me] node 1 is down (2 more like this)"]
    assert log.warning("down", 2000, "node %d is down", 1)
    assert lines(caplog)[2:] == ["[me] node 1 is down"]


def test_keys_are_limited_apart(caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLogger("forebay.test")
    assert log.error(("down", 1), 0, "one")
    assert log.error(("down", 2), 0, "100 %")
    assert lines(caplog) == ["one", "100 %"]
    log.forget(("down", 1))
    assert log.error(("down", 1), 1, "one")


def test_lines_below_the_level_do_not_count(caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLogger("forebay.test")
    caplog.set_level(logging.WARNING, "forebay.test")
    assert not log.info("x", 0, "text")
    caplog.set_level(logging.INFO, "forebay.test")
    assert log.info("x", 1, "text")
    log.debug("not shown")
    assert lines(caplog) == ["text"]


def test_memory_stays_bounded() -> None:
    log = RateLimitedLogger("forebay.test")
    for key in range(MAX_KEYS + 5):
        log.warning(key, 0, "x")
    assert log.warning(0, 1, "x")  # forgotten, so it is a first line again
    assert not log.warning(MAX_KEYS, 1, "x")


def test_exceptions_are_never_held_back(caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLogger("forebay.test")
    for _ in range(2):
        log.exception("it %s", "broke", error=ValueError("why"))
    assert lines(caplog) == ["it broke"] * 2
    assert "ValueError: why" in caplog.text


def test_no_level_is_looked_up_under_a_lock() -> None:
    asked = threading.Event()
    loggers = [logging.getLogger(name) for name in OF_THREADS]

    def ask() -> None:
        for logger in loggers:
            for level in LEVELS:
                logger.isEnabledFor(level)
        asked.set()

    logging.getLogger("forebay").setLevel(logging.NOTSET)  # loggers forget what they know
    with logging._lock:  # type: ignore[attr-defined]  # as a signal handler that has interrupted getLogger
        threading.Thread(target=ask, daemon=True).start()
        assert asked.wait(HANG_S)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("own", [logging.NOTSET, logging.INFO])
@pytest.mark.parametrize("disabled", [logging.NOTSET, logging.WARNING])
def test_the_answer_is_python_s_own(monkeypatch: pytest.MonkeyPatch, level: int, own: int, disabled: int) -> None:
    logger = logging.getLogger("forebay.sender")
    monkeypatch.setattr(logger.manager, "disable", disabled)
    monkeypatch.setattr(logger, "level", own)
    logger._cache.clear()  # type: ignore[attr-defined]
    assert isinstance(logger, LocklessLogger)
    assert logger.isEnabledFor(level) == logging.Logger.isEnabledFor(logger, level)
    monkeypatch.setattr(logger, "disabled", True)
    assert not logger.isEnabledFor(level)
    logger._cache.clear()  # type: ignore[attr-defined]
