"""How an AdminClient asks: retries until the deadline, and what is said when it is over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from forebay._protocol.list_transactions import decode_list_transactions, encode_list_transactions
from forebay._protocol.versions import ApiKey
from forebay.admin._session import Deadline, Question, raise_for
from forebay.errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    DisconnectError,
    InvalidRequestError,
    KafkaTimeoutError,
    ProtocolError,
    UnsupportedVersionError,
)
from tests.fakes.broker import METADATA, Received
from tests.unit.admin.world import AdminWorld

LIST = Question(
    ApiKey.LIST_TRANSACTIONS, lambda version: encode_list_transactions(version, (), ()), decode_list_transactions
)


def test_an_answer() -> None:
    world = AdminWorld()
    world.listed[1] = [("a", 5, "Ongoing")]
    session = world.session()
    deadline = world.deadline()
    answer = session.ask(session.any_node(deadline), LIST, deadline)
    assert [one.transactional_id for one in answer.transactions] == ["a"]
    (request,) = world.asked(ApiKey.LIST_TRANSACTIONS)
    assert request.version == 2
    assert request.client_id is not None
    assert request.client_id.startswith("control-")


def test_what_passes_is_tried_again_after_its_back_off() -> None:
    world = AdminWorld()
    session = world.session()
    begun = world.clock.now()
    times: list[float] = []

    def attempt() -> str:
        times.append(world.clock.now() - begun)
        if len(times) < 4:
            raise ConcurrentTransactionsError()
        return "done"

    assert session.retry(world.deadline(), attempt) == "done"
    assert times == [0, 50, 100, 150]


def test_what_does_not_pass_is_raised_at_once() -> None:
    world = AdminWorld()
    tries: list[int] = []

    def attempt() -> None:
        tries.append(1)
        raise InvalidRequestError("no")

    with pytest.raises(InvalidRequestError, match="no"):
        world.session().retry(world.deadline(), attempt)
    assert len(tries) == 1


def test_when_time_is_over_the_last_error_is_the_cause() -> None:
    world = AdminWorld()

    def attempt() -> None:
        raise CoordinatorLoadInProgressError("loading", node=1)

    begun = world.clock.now()
    with pytest.raises(KafkaTimeoutError, match=r"call was not done within 1 s: loading \(node=1\)") as caught:
        world.session().retry(world.deadline(1000), attempt)
    assert isinstance(caught.value.__cause__, CoordinatorLoadInProgressError)
    assert 900 < world.clock.now() - begun <= 1000


def test_a_wait_that_ran_out_does_not_hide_what_went_wrong_before() -> None:
    world = AdminWorld()
    session = world.session()
    deadline = world.deadline(300)
    tries: list[int] = []

    def attempt() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise CoordinatorLoadInProgressError("loading")
        world.clock.advance(1000)
        session.refresh(deadline)

    with pytest.raises(KafkaTimeoutError, match="loading") as caught:
        session.retry(deadline, attempt)
    assert len(tries) == 2
    assert isinstance(caught.value.__cause__, CoordinatorLoadInProgressError)


def test_what_was_waited_for_is_said_where_nothing_failed() -> None:
    world = AdminWorld()
    world.broker().held.add(ApiKey.LIST_TRANSACTIONS)
    session = world.session()
    deadline = world.deadline(500)
    with pytest.raises(KafkaTimeoutError) as caught:
        session.retry(deadline, lambda: session.ask(session.any_node(deadline), LIST, deadline))
    what = "still waiting for the answer to ListTransactions of 127.0.0.1:9001 (id 1)"
    assert str(caught.value) == f"call was not done within 0.5 s: {what}"


def test_a_broker_that_takes_connections_and_says_nothing() -> None:
    world = AdminWorld()
    world.selector.listen(world.cluster.address(1))
    session = world.session()
    deadline = world.deadline(500)
    with pytest.raises(KafkaTimeoutError, match="call was not done within 0.5 s: still waiting for a broker"):
        session.retry(deadline, lambda: session.any_node(deadline))


def test_a_broker_that_is_away_ends_the_wait_with_what_stood_in_the_way() -> None:
    world = AdminWorld()
    world.cluster.down(1)
    session = world.session()
    deadline = world.deadline(500)
    begun = world.clock.now()
    with pytest.raises(
        KafkaTimeoutError, match=r"call was not done within 0\.5 s: Cannot connect to 127\.0\.0\.1:9001"
    ):
        session.retry(deadline, lambda: session.any_node(deadline))
    assert world.clock.now() - begun <= 600


def test_a_lost_connection_is_an_error_of_the_request_and_the_next_attempt_makes_a_new_one() -> None:
    world = AdminWorld()
    session = world.session()
    deadline = world.deadline()
    answer = world.broker().script[ApiKey.LIST_TRANSACTIONS]

    def drop(request: Received) -> None:
        world.broker().script[ApiKey.LIST_TRANSACTIONS] = answer
        request.link.close()

    world.broker().script[ApiKey.LIST_TRANSACTIONS] = drop
    node = session.any_node(deadline)
    with pytest.raises(DisconnectError):
        session.ask(node, LIST, deadline)
    assert session.retry(deadline, lambda: session.ask(node, LIST, deadline)).error_code == 0


def test_a_node_that_nobody_listens_on_is_given_up_at_once() -> None:
    world = AdminWorld(2)
    session = world.session()
    deadline = world.deadline()
    session.any_node(deadline)
    world.cluster.down(2)
    begun = world.clock.now()
    with pytest.raises(DisconnectError, match=r"No connection to 127\.0\.0\.1:9002 \(id 2\)"):
        session.ask(world.broker(2).node, LIST, deadline)
    assert world.clock.now() - begun < 200


def test_a_connection_that_ended_between_two_calls_is_noticed() -> None:
    world = AdminWorld()
    session = world.session()
    deadline = world.deadline()
    session.ask(session.any_node(deadline), LIST, deadline)
    world.broker().drop()
    world.clock.advance(60_000)
    late = world.deadline()
    tries: list[int] = []

    def attempt() -> int:
        tries.append(1)
        return int(session.ask(session.any_node(late), LIST, late).error_code)

    assert session.retry(late, attempt) == 0
    assert len(tries) == 1


def test_an_old_broker_is_an_error_that_names_versions() -> None:
    world = AdminWorld()
    del world.broker().ranges[ApiKey.LIST_TRANSACTIONS]
    session = world.session()
    deadline = world.deadline()
    with pytest.raises(UnsupportedVersionError, match="does not support ListTransactions"):
        session.ask(session.any_node(deadline), LIST, deadline)


def test_bytes_that_make_no_sense() -> None:
    world = AdminWorld()
    world.broker().script[ApiKey.LIST_TRANSACTIONS] = lambda request: request.answer_bytes(b"\0\xff")
    session = world.session()
    deadline = world.deadline()
    with pytest.raises(ProtocolError, match="ListTransactions v2 response"):
        session.ask(session.any_node(deadline), LIST, deadline)


def test_refresh_waits_for_an_answer_that_was_asked_for_now() -> None:
    world = AdminWorld()
    session = world.session()
    deadline = world.deadline()
    session.any_node(deadline)
    before = len(world.asked(METADATA))
    world.cluster.add(2)
    assert [node.id for node in session.all_nodes(deadline)] == [1, 2]
    assert len(world.asked(METADATA)) == before + 1


def test_closing_ends_connections_and_answers_nothing_any_more() -> None:
    world = AdminWorld()
    session = world.session()
    session.any_node(world.deadline())
    session.close()
    session.close()
    assert not any(link.open for link in world.selector.links)


def test_an_interrupted_turn_tears_the_session() -> None:
    world = AdminWorld()
    session = world.session()

    def interrupt(request: Received) -> None:
        raise KeyboardInterrupt

    deadline = world.deadline()
    node = session.any_node(deadline)
    world.broker().script[ApiKey.LIST_TRANSACTIONS] = interrupt
    with pytest.raises(KeyboardInterrupt):
        session.ask(node, LIST, deadline)
    assert session.torn


def test_raise_for_a_code() -> None:
    raise_for(0)
    with pytest.raises(ConcurrentTransactionsError, match=r"\(node=3\)"):
        raise_for(51, node=3)
    assert str(Deadline(0, "x", 1500).error(None)) == "x was not done within 1.5 s"


def test_times_of_requests_that_are_under_way_together() -> None:
    world = AdminWorld()
    broker = world.broker()
    broker.script[ApiKey.LIST_TRANSACTIONS] = _late(broker.script[ApiKey.LIST_TRANSACTIONS], world)
    session, deadline = world.session(), world.deadline()
    node = session.any_node(deadline)
    found = session.timed(node, LIST, deadline, count=4, in_flight=2)
    begun = found[0].sent
    assert [each.sent - begun for each in found] == [0, 0, 10, 10]
    assert [each.received - begun for each in found] == [10, 10, 20, 20]
    assert [each.body.error_code for each in found] == [0] * 4


def test_a_pause_before_each_request() -> None:
    world = AdminWorld()
    session, deadline = world.session(), world.deadline()
    node = session.any_node(deadline)
    session.timed(node, LIST, deadline, count=1)  # connects
    begun = world.clock.now()
    found = session.timed(node, LIST, deadline, count=3, pause_ms=30)
    assert [each.sent - begun for each in found] == [30, 60, 90]
    assert [each.received - each.sent for each in found] == [0, 0, 0]


def test_a_broker_that_goes_ends_the_timing() -> None:
    world = AdminWorld()
    session, deadline = world.session(), world.deadline()
    node = session.any_node(deadline)
    world.broker().script[ApiKey.LIST_TRANSACTIONS] = lambda request: world.cluster.down(1)
    with pytest.raises(DisconnectError):
        session.timed(node, LIST, deadline, count=4, in_flight=2)
    with pytest.raises(DisconnectError, match="No connection to"):
        session.timed(node, LIST, deadline, count=1)


def _late(answer: Callable[[Received], None], world: AdminWorld) -> Callable[[Received], None]:
    return lambda request: world.selector.call_at(world.clock.now() + 10, lambda: answer(request))
