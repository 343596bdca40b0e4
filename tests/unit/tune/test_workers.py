"""Workers: results in the order of their tasks, whoever computes them, and whatever becomes of the workers."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

import pytest

from forebay.tune import Workload, advise
from forebay.tune._workers import Workers, environment, processors
from forebay.tune.racing import Effort
from tests.support.pace import HANG_S

QUICK = Effort(first_seeds=2, first_seconds=0.3, last=2, last_seeds=2, last_seconds=0.5, trial_seconds=0.3)


def told(own: int, number: int) -> tuple[int, bool]:
    """The number, and whether this is another process than ``own``."""
    return number, os.getpid() != own


def dying(own: int, number: int) -> int:
    """The number; another process than ``own`` dies of an even one."""
    if os.getpid() != own and number % 2 == 0:
        os._exit(3)
    return number


def no_result(own: int) -> Any:
    """What cannot be sent from another process."""
    return sys._getframe() if os.getpid() != own else "here"


def test_results_come_in_the_order_of_the_tasks() -> None:
    with Workers(partial(told, os.getpid()), 2) as workers:
        assert len(workers) == 2
        assert workers.map([(number,) for number in range(20)]) == [(number, True) for number in range(20)]
        assert workers.map([]) == []
        assert workers.map([(7,)]) == [(7, True)]
        processes = list(workers._processes.values())
    assert [process.poll() is not None for process in processes] == [True, True]


def test_one_worker_is_this_process() -> None:
    with Workers(partial(told, os.getpid()), 1) as workers:
        assert len(workers) == 0
        assert workers.map([(1,), (2,)]) == [(1, False), (2, False)]


@pytest.mark.parametrize("executable", ["", "/nowhere/python"])
def test_where_no_process_can_be_started_everything_runs_here(executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    with Workers(partial(told, os.getpid()), 2) as workers:
        assert workers.map([(1,)]) == [(1, False)]


def test_a_frozen_program_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with Workers(partial(told, os.getpid()), 2) as workers:
        assert len(workers) == 0


def test_what_dead_workers_leave_is_done_here() -> None:
    with Workers(partial(dying, os.getpid()), 2) as workers:
        assert workers.map([(number,) for number in range(10)]) == list(range(10))
        assert len(workers) == 0
        assert workers.map([(4,)]) == [4]


def test_a_program_that_is_no_python_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/true")
    with Workers(partial(told, os.getpid()), 2) as workers:
        assert workers.map([(1,), (2,), (3,)]) == [(1, False), (2, False), (3, False)]


def test_workers_that_are_gone_before_their_first_task_are_not_waited_for() -> None:
    with Workers(partial(told, os.getpid()), 2) as workers:
        for process in workers._processes.values():
            process.kill()
            process.wait(HANG_S)
        assert workers.map([(1,), (2,), (3,)]) == [(1, False), (2, False), (3, False)]
        assert len(workers) == 0


def test_what_a_call_raises_is_raised_here() -> None:
    with Workers(divmod, 2) as workers:
        assert workers.map([(7, 2), (9, 3)]) == [(3, 1), (3, 0)]
        with pytest.raises(ZeroDivisionError):
            workers.map([(1, 1), (1, 0)])
        assert workers.map([(7, 2)]) == [(3, 1)]


def test_what_cannot_be_sent_back_is_made_here() -> None:
    with Workers(partial(no_result, os.getpid()), 2) as workers:
        assert workers.map([()]) == ["here"]


def test_processes_import_what_this_one_does() -> None:
    assert environment()["PYTHONPATH"].split(os.pathsep) == [each for each in sys.path if each]
    assert processors() >= 1


def test_advice_is_the_same_from_several_processes() -> None:
    load = Workload(rate=300, sizes=[200, 900], topics={"t": 4}, keys={"count": 50, "zipf": 1.0})
    one, two = (advise(load, settings={"linger.ms": 0}, effort=QUICK, workers=count) for count in (1, 2))
    assert one.as_json() == two.as_json()
