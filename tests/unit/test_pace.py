"""The machine's pace, by which tests that wait have their time."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time

import pytest

from tests.support import pace


def test_it_is_the_slower_of_work_and_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter([3 * pace.WORK_S, 9 * pace.WORK_S, pace.WORK_S])
    monkeypatch.setattr(pace, "_processes", lambda: next(rounds))
    monkeypatch.setattr(pace, "_wakes", lambda: pace.WAKES * pace.WAKE_S)
    assert pace.measured() == 3
    monkeypatch.setattr(pace, "_processes", lambda: pace.WORK_S)
    monkeypatch.setattr(pace, "_wakes", lambda: 5 * pace.WAKES * (pace.WAKE_S + pace.LATE_S))
    assert pace.measured() == 5


def test_a_machine_that_is_hardly_there_gets_no_more_than_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_processes", lambda: 100 * pace.WORK_S)
    assert pace.measured() == pace.MOST


def test_a_faster_machine_gets_no_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_processes", lambda: pace.WORK_S / 10)
    monkeypatch.setattr(pace, "_wakes", lambda: 0.0)
    assert pace.measured() == 1


def test_what_is_tried_takes_time() -> None:
    assert pace._processes() > 0 and pace._wakes() >= pace.WAKES * pace.WAKE_S


def test_one_run_has_one_pace() -> None:
    """Its first process says it to all others."""
    assert float(os.environ[pace.VARIABLE]) == pace.factor()
    program = "from tests.support import pace; print(pace.within(2), pace.within_ms(150), pace.HANG_S)"
    command = [sys.executable, "-c", program]
    told = subprocess.check_output(command, env={**os.environ, pace.VARIABLE: "2.5"}, text=True)
    assert told == "5.0 375 300.0\n"


def test_what_comes_is_waited_for() -> None:
    answers = iter([False, False, True])
    pace.until(lambda: next(answers), "the third answer")
    assert next(answers, None) is None


def test_what_does_not_come_fails_by_turns_and_says_what(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(time, "monotonic", lambda: 0.02 * len(asked))  # each question takes so long
    with pytest.raises(AssertionError, match=r"not within 0\.09 s: a miracle"):
        pace.until(lambda: asked.append(1), "a miracle", 0.09)
    assert len(asked) == 4, "and a pause of 0.005 s each"


def test_cpu_time_is_of_the_block_alone() -> None:
    made: list[str] = []

    class Garbage:
        def __del__(self) -> None:
            made.append("collected")

    cycle = [Garbage()]
    cycle.append(cycle)  # type: ignore[arg-type]
    del cycle
    with pace.CpuTime() as took:
        assert not gc.isenabled()
        kept = [[] for _ in range(100_000)]  # type: ignore[var-annotated]
        assert made == []
    assert gc.isenabled() and took.seconds > 0 and len(kept) == 100_000
    gc.collect()
    assert made == ["collected"]
