"""Results of transactional calls, settled once and waited for by many; and the queue of requests."""

from __future__ import annotations

import threading

from forebay._protocol.find_coordinator import GROUP, TRANSACTION
from forebay._transactions.initialization import Coordinator
from forebay._transactions.pending import RequestQueue, TransactionalResult
from forebay._transactions.requests import AddPartitionsCall, EndTxnCall, FindCoordinatorCall, Identity
from forebay.errors import KafkaError
from forebay.model import TopicPartition

WHO = Identity("id", 7, 1)
ADD = AddPartitionsCall(WHO, (TopicPartition("test", 0),))
END = EndTxnCall(WHO, True, 1)
OURS, GROUPS = Coordinator(TRANSACTION, "id"), Coordinator(GROUP, "group")


def filled(*calls: object) -> RequestQueue:
    queue = RequestQueue()
    for call in calls:
        queue.add(call, TransactionalResult())
    return queue


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
    threads = [threading.Thread(target=lambda: woken.append(result.wait(20_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    result.settle()
    for thread in threads:
        thread.join(20)
    assert woken == [True] * 4


def test_repr() -> None:
    result = TransactionalResult()
    assert "pending" in repr(result)
    result.settle(KafkaError("refused"))
    assert "refused" in repr(result)


def test_each_lane_has_its_most_urgent_request_at_its_head() -> None:
    queue = filled(END, ADD, ADD, FindCoordinatorCall(GROUPS))
    assert [head.call for head in queue.heads()] == [FindCoordinatorCall(GROUPS), ADD]
    assert [head.number for head in queue.heads()] == [4, 2]


def test_a_request_that_comes_back_has_its_old_place() -> None:
    queue = filled(ADD, ADD)
    (first,) = queue.heads()
    queue.take(first)
    assert [head.number for head in queue.heads()] == [2]
    queue.put_back(first)
    assert queue.heads() == [first]


def test_what_waits_is_known() -> None:
    queue = filled(ADD, FindCoordinatorCall(OURS))
    assert queue.has_look_up(OURS) and not queue.has_look_up(GROUPS)
    assert not queue.has_for_group()
    queue.add(FindCoordinatorCall(GROUPS), TransactionalResult())
    assert queue.has_for_group()
    assert len(queue.take_all()) == 3 and queue.heads() == []


def test_an_error_leaves_what_an_abort_needs_and_tells_everybody() -> None:
    queue = filled(ADD, END, FindCoordinatorCall(OURS))
    unsure = queue.add(ADD, TransactionalResult())
    unsure.uncertain = True
    assert len(queue.keep_survivors()) == 4
    assert [pending.call for pending in queue.take_all()] == [FindCoordinatorCall(OURS), ADD]
