"""The queue of requests to coordinators."""

from __future__ import annotations

from forebay._protocol.find_coordinator import GROUP, TRANSACTION
from forebay._transactions.initialization import Coordinator
from forebay._transactions.pending import RequestQueue
from forebay._transactions.requests import AddPartitionsCall, EndTxnCall, FindCoordinatorCall, Identity
from forebay._transactions.result import TransactionalResult
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
