"""A connection that fails around one request of an AdminClient, before a real broker: the call is done once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer

from forebay import errors
from forebay.admin import AdminClient
from forebay.model import TransactionIdentity, TransactionListing
from tests.error_matrix import CONTROL, NAMES
from tests.integration.test_api_faults import FAULTS, REQUEST_TIMEOUT_MS
from tests.support.fixtures import ProxyFactory, TopicFactory
from tests.support.pace import HANG_S, within_ms
from tests.support.proxy import KafkaProxy, refused, told
from tests.support.readback import read_all
from tests.support.refusal import (
    CREATE_TOPICS,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    FETCH,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    LIST_TRANSACTIONS,
)
from tests.support.rewrite import API_VERSIONS, FIND_COORDINATOR, METADATA
from tools.kafka import RealKafka

QUICK: dict[str, Any] = {
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    # Longer than a call may take: on a busy machine no answer is given up that is only slow, and a loss must be noticed
    # without it.
    "request.timeout.ms": within_ms(60_000),
    "max.block.ms": within_ms(10_000),
}
#: By API: the call that makes such a request, and what must be true of its result.
CALLS: dict[str, tuple[int, Callable[[AdminClient, str], Any], Callable[[Any], bool]]] = {
    "ApiVersions": (API_VERSIONS, lambda admin, _: admin.transaction_version(), lambda found: found == 2),
    "Metadata": (METADATA, lambda admin, name: admin.read_tail(name), lambda found: found[0].value == b"v"),
    "ListOffsets": (LIST_OFFSETS, lambda admin, name: admin.read_tail(name), lambda found: found[0].value == b"v"),
    "Fetch": (FETCH, lambda admin, name: admin.read_tail(name), lambda found: found[0].value == b"v"),
    "FindCoordinator": (
        FIND_COORDINATOR,
        lambda admin, name: admin.describe_transactions([name]),
        lambda found: list(found.values()) == [None],
    ),
    "InitProducerId": (
        INIT_PRODUCER_ID,
        lambda admin, name: admin.init_producer_id(f"{name}-id"),
        lambda found: found.producer_id >= 0,
    ),
    "DescribeTransactions": (
        DESCRIBE_TRANSACTIONS,
        lambda admin, name: admin.describe_transactions([name]),
        lambda found: list(found.values()) == [None],
    ),
    "ListTransactions": (
        LIST_TRANSACTIONS,
        lambda admin, name: listed(admin, name),
        lambda found: [state for _, _, state in found] == ["Empty"],
    ),
}


def listed(admin: AdminClient, name: str) -> list[TransactionListing]:
    """What is listed of an id that is there."""
    admin.init_producer_id(f"{name}-listed")
    return admin.list_transactions(prefix=f"{name}-listed")


def admin_of(proxy: KafkaProxy, fault: str = "") -> AdminClient:
    """One that notices ``fault``: that an answer is late is told by the time alone."""
    late = {"request.timeout.ms": REQUEST_TIMEOUT_MS} if fault == "late" else {}
    return AdminClient({"bootstrap.servers": proxy.bootstrap_servers, **QUICK, **late})


def filled(kafka: RealKafka, topic: TopicFactory) -> str:
    """A topic with one record."""
    name = topic(kafka)
    writer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    writer.produce(name, b"v")
    assert writer.flush(HANG_S) == 0
    return name


@pytest.mark.parametrize("api", CALLS)
def test_a_failed_connection_is_another_try(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, api: str
) -> None:
    name, proxy = filled(kafka, topic), proxied(kafka)
    key, call, good = CALLS[api]

    def asked() -> int:
        return sum(request.api_key == key for request in proxy.requests)

    for _ in range(2):  # with the first call the cluster makes topics of its own
        before = asked()
        with admin_of(proxy) as admin:
            assert good(call(admin, name))
        usual = asked() - before
    for fault, (what, least) in FAULTS.items():
        before, begun = asked(), time.monotonic()
        with admin_of(proxy, fault) as admin:
            proxy.plan(key, what)
            assert good(call(admin, name)), fault
        assert proxy.planned() == 0, fault
        assert least <= time.monotonic() - begun, fault
        again = asked() - before - usual
        assert again >= 1 if fault == "late" else again == 1, (fault, again)


def test_a_topic_is_made_once(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory) -> None:
    """Where the broker did the work unheard, the topic is there before the second try, which is told so."""
    name, proxy = topic(kafka), proxied(kafka)
    made = {}
    for number, (fault, (what, _)) in enumerate(FAULTS.items()):
        with admin_of(proxy, fault) as admin:
            proxy.plan(CREATE_TOPICS, what)
            made[fault] = admin.create_topic(f"{name}-{number}", partitions=2)
        assert proxy.planned() == 0, fault
        assert read_all(kafka.bootstrap_servers, f"{name}-{number}") == []
    assert made == {"lost before": True, "lost after": False, "torn": False, "late": False, "refused": True}


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_is_ended_once(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, commit: bool
) -> None:
    name, proxy = topic(kafka, len(FAULTS)), proxied(kafka)
    for number, (fault, (what, _)) in enumerate(FAULTS.items()):
        transactional_id = f"{name}-{number}"
        writer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": transactional_id})
        writer.init_transactions(HANG_S)
        writer.begin_transaction()
        writer.produce(name, fault.encode(), partition=number)
        assert writer.flush(HANG_S) == 0
        with admin_of(proxy, fault) as admin:
            found = admin.describe_transaction(transactional_id)
            proxy.plan(END_TXN, what)
            # librdkafka's transactions are of the first generation.
            admin.end_transaction(
                TransactionIdentity(transactional_id, found.producer_id, found.producer_epoch, 1), commit=commit
            )
            state = admin.describe_transaction(transactional_id).state
        assert proxy.planned() == 0, fault
        assert state in (("PrepareCommit", "CompleteCommit") if commit else ("PrepareAbort", "CompleteAbort"))
    values = [record.value for record in read_all(kafka.bootstrap_servers, name)]
    assert values == [fault.encode() for fault in FAULTS if commit]


@pytest.mark.parametrize("api", [api for api in CALLS if api not in ("ApiVersions", "Metadata")])
def test_codes_that_brokers_send(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, api: str) -> None:
    """Some that pass, whichever side did the work, and some that do not; the next call is as good as any."""
    name, proxy = filled(kafka, topic), proxied(kafka)
    key, call, good = CALLS[api]
    for code in (-1, 3, 6, 7, 14, 15, 16, 29, 42, 51, 53):
        passes = CONTROL["list"][code] == "retry"
        for fault in (refused(code), told(code)):
            with admin_of(proxy) as admin:
                proxy.plan(key, fault)
                if not passes:
                    kind = errors.for_code(code)
                    assert kind is not None
                    with pytest.raises(kind):
                        call(admin, name)
                assert good(call(admin, name)), NAMES[code]
            assert proxy.planned() == 0, NAMES[code]
