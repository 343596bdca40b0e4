"""Results, settled once and waited for by many."""

from __future__ import annotations

import threading

from forebay._transactions.result import TransactionalResult
from forebay.errors import KafkaError
from tests.support.pace import HANG_MS, HANG_S


def test_only_the_first_outcome_counts() -> None:
    result = TransactionalResult()
    error = KafkaError("first")
    result.settle(error)
    result.settle()
    assert result.done and result.error is error


def test_a_wait_that_ends_in_time_acknowledges() -> None:
    result = TransactionalResult()
    assert not result.wait(0)
    assert not result.acknowledged
    result.settle()
    assert result.wait(0)
    assert result.acknowledged and result.error is None


def test_everybody_who_waits_is_woken() -> None:
    result = TransactionalResult()
    woken: list[bool] = []
    threads = [threading.Thread(target=lambda: woken.append(result.wait(HANG_MS))) for _ in range(4)]
    for thread in threads:
        thread.start()
    result.settle()
    for thread in threads:
        thread.join(HANG_S)
    assert woken == [True] * 4


def test_repr() -> None:
    result = TransactionalResult()
    assert "pending" in repr(result)
    result.settle(KafkaError("refused"))
    assert "refused" in repr(result)
