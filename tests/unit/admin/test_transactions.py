"""Requests to transaction coordinators."""

from __future__ import annotations

from typing import Any

import pytest

from forebay._protocol.versions import ApiKey
from forebay.admin import _transactions as transactions
from forebay.errors import (
    CoordinatorNotAvailableError,
    InvalidPidMappingError,
    InvalidTxnStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    TransactionalIdAuthorizationError,
    UnsupportedVersionError,
)
from forebay.model import TopicPartition, TransactionDescription, TransactionIdentity, TransactionListing
from tests.fakes.broker import Received
from tests.unit.admin.world import AdminWorld

FIND, INIT, END = ApiKey.FIND_COORDINATOR, ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN
NOT_COORDINATOR, LOADING, CONCURRENT, NOT_AVAILABLE = 16, 14, 51, 15
ONGOING = TransactionDescription("Ongoing", 5, 1, 60_000, 1_700_000_000_000, (TopicPartition("t", 3),), 1)


@pytest.mark.parametrize(("level", "version"), [(None, 0), (0, 0), (1, 1), (2, 2), (3, 2)])
def test_the_version_of_transactions_is_the_finalized_feature_s(level: int | None, version: int) -> None:
    assert AdminWorld(level=level).admin.transaction_version() == version


@pytest.mark.parametrize("level", [1, 2])
def test_an_identity(level: int) -> None:
    world = AdminWorld(level=level)
    who = world.admin.init_producer_id("tx", transaction_timeout_ms=1234)
    assert who == TransactionIdentity("tx", 7, 3, level)
    (request,) = world.asked(INIT)
    assert (request.body.transactional_id, request.body.producer_id) == ("tx", -1)
    assert request.body.transaction_timeout.total_seconds() == 1.234


def test_an_id_waits_until_the_previous_transaction_is_ended() -> None:
    world = AdminWorld()
    world.codes[INIT].extend([CONCURRENT, CONCURRENT])
    begun = world.clock.now()
    assert world.admin.init_producer_id("tx").producer_id == 7
    assert world.clock.now() - begun >= 100
    assert len(world.asked(INIT)) == 3
    assert len(world.asked(FIND)) == 1


def test_a_coordinator_that_moved_is_looked_up_again() -> None:
    world = AdminWorld(2)
    world.admin.end_transaction(TransactionIdentity("tx", 7, 3, 2), commit=True)
    world.codes[END].append(NOT_COORDINATOR)
    world.coordinator = 2
    world.admin.end_transaction(TransactionIdentity("tx", 7, 3, 2), commit=True)
    assert (len(world.asked(END, 1)), len(world.asked(END, 2))) == (2, 1)
    assert len(world.asked(FIND)) == 2


def test_a_coordinator_that_is_gone_is_looked_up_again() -> None:
    world = AdminWorld(2)
    world.coordinator = 2
    world.admin.end_transaction(TransactionIdentity("tx", 7, 3, 2), commit=True)
    world.cluster.down(2)
    world.coordinator = 1
    world.admin.end_transaction(TransactionIdentity("tx", 7, 3, 2), commit=True)
    assert len(world.asked(END, 1)) == 1


def test_a_coordinator_that_does_not_answer_is_looked_up_before_it_is_asked_again() -> None:
    """Frozen: it takes connections and says nothing, and another one has long taken its place."""
    world = AdminWorld(2)
    world.coordinator = 2
    world.described["tx"] = ONGOING
    for name, call in (
        ("end", lambda: world.admin.end_transaction(TransactionIdentity("tx", 7, 3, 2), commit=True)),
        ("describe", lambda: world.admin.describe_transaction("tx")),
    ):
        world.coordinator = 2
        world.broker(2).held.clear()
        call()
        world.broker(2).held.update({END, ApiKey.DESCRIBE_TRANSACTIONS})
        world.coordinator = 1
        begun = world.clock.now()
        call()
        # One request.timeout.ms, and the retry's back-off.
        assert world.clock.now() - begun < 2200, name


def test_a_coordinator_is_remembered_for_each_id_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "_KNOWN_COORDINATORS", 2)
    world = AdminWorld()
    for name in ("a", "b", "a", "c", "b", "a"):
        world.admin.end_transaction(TransactionIdentity(name, 7, 3, 2), commit=True)
    asked = [request.body.coordinator_keys[0] for request in world.asked(FIND)]
    assert asked == ["a", "b", "c", "a"]


@pytest.mark.parametrize("code", [LOADING, NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT])
def test_passing_errors_of_either_request_are_waited_for(code: int) -> None:
    world = AdminWorld()
    world.codes[FIND].append(code if code != CONCURRENT else LOADING)
    world.codes[END].append(code)
    world.admin.end_transaction(TransactionIdentity("tx", 7, 3, 2), commit=False)
    assert len(world.asked(END)) == 2


def test_a_coordinator_that_never_comes_is_the_cause_of_the_timeout() -> None:
    world = AdminWorld()
    world.codes[FIND].extend([NOT_AVAILABLE] * 100)
    with pytest.raises(KafkaTimeoutError, match=r"end_transaction was not done within 1 s") as caught:
        world.admin.end_transaction(TransactionIdentity("tx", 7, 3, 2), commit=False, timeout=1)
    assert isinstance(caught.value.__cause__, CoordinatorNotAvailableError)
    assert not world.asked(END)


@pytest.mark.parametrize(("version", "used"), [(0, 4), (1, 4), (2, 5)])
@pytest.mark.parametrize("commit", [True, False])
def test_an_end_is_said_in_the_transaction_s_own_version(version: int, used: int, commit: bool) -> None:
    world = AdminWorld()
    world.admin.end_transaction(TransactionIdentity("tx", 7, 3, version), commit=commit)
    (request,) = world.asked(END)
    body = request.body
    assert request.version == used
    assert (body.transactional_id, body.producer_id, body.producer_epoch) == ("tx", 7, 3)
    assert body.committed is commit


def test_a_transaction_of_version_2_is_never_ended_in_the_old_way() -> None:
    world = AdminWorld(level=1)
    world.broker().ranges[END] = (0, 4)
    with pytest.raises(UnsupportedVersionError, match="EndTxn versions 0 to 4 only; versions 5 to 5"):
        world.admin.end_transaction(TransactionIdentity("tx", 7, 3, 2), commit=True)
    world.admin.end_transaction(TransactionIdentity("tx", 7, 3, 1), commit=True)
    assert [request.version for request in world.asked(END)] == [4]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (48, InvalidTxnStateError),
        (49, InvalidPidMappingError),
        (90, ProducerFencedError),
        (47, ProducerFencedError),
        (53, TransactionalIdAuthorizationError),
    ],
)
def test_how_an_end_is_refused(code: int, kind: type[KafkaError]) -> None:
    world = AdminWorld()
    world.codes[END].append(code)
    with pytest.raises(kind, match="transactional_id=tx"):
        world.admin.end_transaction(TransactionIdentity("tx", 7, 3, 2), commit=True)
    assert len(world.asked(END)) == 1


def test_descriptions_come_from_each_id_s_coordinator() -> None:
    world = AdminWorld()
    world.described["a"] = ONGOING
    found = world.admin.describe_transactions(["b", "a", "b"])
    assert list(found.items()) == [("b", None), ("a", ONGOING)]
    (request,) = world.asked(ApiKey.DESCRIBE_TRANSACTIONS)
    assert list(request.body.transactional_ids) == ["b", "a"]


def test_a_description_that_is_not_ready_is_asked_for_again_and_only_that() -> None:
    world = AdminWorld()
    world.described.update(a=ONGOING, b=ONGOING)
    world.codes[ApiKey.DESCRIBE_TRANSACTIONS].extend([0, NOT_COORDINATOR])
    assert list(world.admin.describe_transactions(["a", "b"]).values()) == [ONGOING, ONGOING]
    asked = [list(request.body.transactional_ids) for request in world.asked(ApiKey.DESCRIBE_TRANSACTIONS)]
    assert asked == [["a", "b"], ["b"]]


@pytest.mark.parametrize("state", ["PrepareCommit", "PrepareAbort", "PrepareEpochFence"])
def test_a_description_can_wait_for_an_end_that_is_under_way(state: str) -> None:
    class Ending(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            found = super().get(key, default)
            self[key] = ended
            return found

    ended = ONGOING._replace(state="CompleteAbort")
    world = AdminWorld()
    world.described = Ending(a=ONGOING._replace(state=state), b=ONGOING)
    assert world.admin.describe_transactions(["a", "c"])["a"] == ONGOING._replace(state=state)
    world.described = Ending(a=ONGOING._replace(state=state), b=ONGOING)
    assert world.admin.describe_transactions(["a", "b", "c"], settled=True) == {"a": ended, "b": ONGOING, "c": None}
    asked = [list(request.body.transactional_ids) for request in world.asked(ApiKey.DESCRIBE_TRANSACTIONS)]
    assert asked[1:] == [["a", "b", "c"], ["a"]]


def test_a_list_has_the_share_of_every_broker() -> None:
    world = AdminWorld(2)
    world.listed = {1: [("b", 6, "Empty"), ("x-c", 7, "Ongoing")], 2: [("a", 5, "Ongoing")]}
    everything = [
        TransactionListing("a", 5, "Ongoing"),
        TransactionListing("b", 6, "Empty"),
        TransactionListing("x-c", 7, "Ongoing"),
    ]
    assert world.admin.list_transactions() == everything
    assert world.admin.list_transactions(prefix="x-") == everything[2:]


def test_filters_are_the_brokers_business() -> None:
    world = AdminWorld()
    world.admin.list_transactions(states=["Ongoing"], producer_ids=[4])
    (request,) = world.asked(ApiKey.LIST_TRANSACTIONS)
    assert (request.body.state_filters, request.body.producer_id_filters) == (("Ongoing",), (4,))


def test_a_list_asks_all_brokers_before_it_waits_for_one() -> None:
    world = AdminWorld(3)
    world.listed = {number: [(f"id-{number}", number, "Ongoing")] for number in (1, 2, 3)}
    held: list[Received] = []

    def answer_once_all_were_asked(request: Received) -> None:
        held.append(request)
        for one in held if len(held) == 3 else ():
            world._answer(one, world._list)

    for number in (1, 2, 3):
        world.broker(number).script[ApiKey.LIST_TRANSACTIONS] = answer_once_all_were_asked
    assert [one.transactional_id for one in world.admin.list_transactions()] == ["id-1", "id-2", "id-3"]


def test_a_list_goes_on_without_a_broker_that_is_gone_and_asks_the_others_anew() -> None:
    """What the dead one kept is with another by then, which may have answered before that."""
    world = AdminWorld(2)
    world.listed = {1: [("a", 5, "Ongoing")], 2: [("b", 6, "Ongoing")]}
    handler = world.broker(2).script[ApiKey.LIST_TRANSACTIONS]

    def die(request: Received) -> None:
        world.broker(2).script[ApiKey.LIST_TRANSACTIONS] = handler
        world.cluster.down(2)
        del world.cluster.brokers[2]
        world.listed = {1: [("a", 5, "Ongoing"), ("b", 6, "Ongoing")]}
        request.link.close()

    world.broker(2).script[ApiKey.LIST_TRANSACTIONS] = die
    assert [one.transactional_id for one in world.admin.list_transactions()] == ["a", "b"]


def test_a_list_without_a_broker_s_share_is_not_given() -> None:
    world = AdminWorld(2)
    world.admin.list_transactions()
    world.cluster.down(2)
    with pytest.raises(KafkaTimeoutError, match="list_transactions was not done within 1 s: No connection to"):
        world.admin.list_transactions(timeout=1)
