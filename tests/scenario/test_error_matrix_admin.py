"""Every error code in every API of an AdminClient, against tests/error_matrix.py.

One answer has the code, further ones are good: the call returns, by its own repetition and after how long, or raises.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from forebay import errors
from forebay._assembly import Surroundings
from forebay.admin import AdminClient
from forebay.errors import DisconnectError, KafkaError, KafkaTimeoutError, ProducerFencedError
from forebay.model import TransactionIdentity
from forebay.testing.clock import ManualClock
from forebay.testing.memory import MemorySelector
from forebay.testing.resolver import StaticResolver
from tests.error_matrix import CODES, CONTROL, NAMES, differences
from tests.fakes.broker import INIT_PRODUCER_ID, METADATA, MODERN, Received
from tests.fakes.produce import ProducingCluster
from tests.fakes.world import World
from tests.support.refusal import (
    CREATE_TOPICS,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    FETCH,
    LIST_OFFSETS,
    LIST_TRANSACTIONS,
    refusing,
)
from tests.support.rewrite import FIND_COORDINATOR

RANGES = {**MODERN, 1: (4, 12), 2: (2, 6), 10: (0, 6), 19: (2, 7), 26: (0, 5), 65: (0, 0), 66: (0, 1)}
BACKOFF_MS, LIMIT_MS = 50, 1000
LATEST = -1
CALLS: dict[str, tuple[int, Callable[[AdminClient], Any]]] = {
    "findC": (FIND_COORDINATOR, lambda admin: admin.describe_transaction("t")),
    "initC": (INIT_PRODUCER_ID, lambda admin: admin.init_producer_id("t")),
    "endC": (END_TXN, lambda admin: admin.end_transaction(TransactionIdentity("t", 4711, 0, 2), commit=True)),
    "describe": (DESCRIBE_TRANSACTIONS, lambda admin: admin.describe_transactions(["t"])["t"]),
    "list": (LIST_TRANSACTIONS, lambda admin: admin.list_transactions()),
    "create": (CREATE_TOPICS, lambda admin: admin.create_topic("new", partitions=1)),
    "offsets": (LIST_OFFSETS, lambda admin: admin.read_tail("test")),
    "fetch": (FETCH, lambda admin: admin.read_tail("test")),
}


@pytest.fixture(autouse=True)
def without_logs(caplog: pytest.LogCaptureFixture) -> None:
    """A hundred clients' lines would hide the one difference that a failed test tells of."""
    caplog.set_level(logging.CRITICAL, "forebay")


@pytest.fixture(scope="module")
def batch() -> bytes:
    """The bytes of a batch with one record."""
    world = World()
    world.send(b"last")
    world.settle()
    (topic,) = world.cluster.requests()[0].body.topic_data
    return bytes(topic.partition_data[0].records)


class Asked:
    """An AdminClient and a broker that answers one request of ``api`` with ``code``, and all others well."""

    def __init__(self, api: int, code: int, batch: bytes, times: int = 1) -> None:
        self.clock = ManualClock()
        selector = MemorySelector(self.clock)
        cluster = ProducingCluster(selector)
        cluster.create("test", 1)
        self.api = api
        self.code = code
        self.batch = batch
        self.left = times
        self.times: list[float] = []
        self.broker = broker = cluster.brokers[0]
        broker.ranges = dict(RANGES)
        broker.finalized = (1, {"transaction.version": 2})
        for key, _ in CALLS.values():
            broker.script[key] = self.answer
        around = Surroundings(clock=self.clock, random=lambda: 0.5, selector=lambda: selector, resolver=StaticResolver)
        node = broker.node
        self.admin = AdminClient._with(
            around,
            bootstrap_servers=[f"{node.host}:{node.port}"],
            retry_backoff_ms=BACKOFF_MS,
            retry_backoff_max_ms=BACKOFF_MS,
            max_block_ms=LIMIT_MS,
        )

    def answer(self, request: Received) -> None:
        refused = request.api_key == self.api and self.left > 0
        if request.api_key == self.api:
            self.left -= refused
            self.times.append(self.clock.now())
        answer = refusing(request.api_key, request.version, request.body, self.code if refused else 0)
        request.answer(answer if refused else self.filled(request, answer))

    def filled(self, request: Received, answer: Any) -> Any:
        """A good answer, with something in it."""
        if request.api_key == FIND_COORDINATOR:
            node = request.broker.node
            (entry,) = answer.coordinators
            return replace(answer, coordinators=(replace(entry, node_id=node.id, host=node.host, port=node.port),))
        if request.api_key == INIT_PRODUCER_ID:
            return replace(answer, producer_id=4711, producer_epoch=1)
        if request.api_key == LIST_OFFSETS:
            latest = request.body.topics[0].partitions[0].timestamp == LATEST
            return _with_partition(answer, "topics", offset=int(latest))
        if request.api_key == FETCH:
            return _with_partition(answer, "responses", high_watermark=1, records=self.batch)
        return answer

    def call(self, call: Callable[[AdminClient], Any]) -> tuple[Any, KafkaError | None]:
        try:
            return call(self.admin), None
        except KafkaError as error:
            return None, error


def _with_partition(answer: Any, field: str, **fields: Any) -> Any:
    (topic,) = getattr(answer, field)
    (part,) = topic.partitions
    return replace(answer, **{field: (replace(topic, partitions=(replace(part, **fields),)),)})


def outcome(column: str, code: int, batch: bytes) -> str:
    """What comes of the call whose first request is answered with the code."""
    api, call = CALLS[column]
    asked = Asked(api, code, batch)
    result, error = asked.call(call)
    count = len(asked.times)
    again, next_error = asked.call(call)
    asked.admin.close()
    if next_error is not None:
        return f"the next call raises {next_error!r}"
    if error is not None:
        if type(error) is ProducerFencedError and column == "endC":
            return "fence"
        return "raise" if type(error) is errors.for_code(code) and count == 1 else f"raises {error!r}"
    if column == "create" and result is False:
        return "false"
    if column == "describe" and result is None:
        return "none"
    if result != again:
        return f"returns {result!r}"
    waited = asked.times[1] - asked.times[0] if count > 1 else 0
    return "retry" if round(waited) == BACKOFF_MS else f"again after {waited:g} ms"


@pytest.mark.parametrize("column", CONTROL)
def test_every_code(column: str, batch: bytes) -> None:
    assert differences(column, {code: outcome(column, code, batch) for code in CODES}) == []


@pytest.mark.parametrize("column", CONTROL)
def test_what_passes_does_not_pass_for_ever(column: str, batch: bytes) -> None:
    """Until the call's own timeout, never past it, and once in the back-off; the last error is the cause."""
    found = {}
    api, call = CALLS[column]
    for code in (code for code, word in CONTROL[column].items() if word == "retry"):
        asked = Asked(api, code, batch, times=1_000_000)
        begun = asked.clock.now()
        error = asked.call(call)[1]
        kind = errors.for_code(code)
        took = asked.clock.now() - begun
        gap = min(after - before for before, after in pairwise(asked.times))
        if (
            type(error) is not KafkaTimeoutError
            or type(error.__cause__) is not kind
            or not LIMIT_MS - BACKOFF_MS <= took <= LIMIT_MS
            or gap < BACKOFF_MS
        ):
            found[NAMES[code]] = (error, took, gap)
        asked.admin.close()
    assert found == {}


@pytest.mark.parametrize("column", CONTROL)
def test_connections_that_are_lost_with_each_request(column: str, batch: bytes) -> None:
    """Each try waits, and so does the metadata that each loss asks for; reading a tail asks for its topic besides."""
    api, call = CALLS[column]
    asked = Asked(api, 0, batch)
    answer = asked.answer
    metadata: dict[int, list[float]] = {}

    def hang_up(request: Received) -> None:
        if request.api_key == METADATA:
            metadata.setdefault(len(request.body.topics), []).append(asked.clock.now())
            request.answer(request.broker.cluster.metadata(request))
        elif request.api_key == api:
            asked.times.append(asked.clock.now())
            request.link.reset()
        else:
            answer(request)

    asked.broker.script.update(dict.fromkeys((METADATA, *(key for key, _ in CALLS.values())), hang_up))
    error = asked.call(call)[1]
    asked.admin.close()
    assert type(error) is KafkaTimeoutError and isinstance(error.__cause__, DisconnectError)
    assert len(metadata) == 1 + (column in ("offsets", "fetch"))
    for times in (asked.times, *metadata.values()):
        assert len(times) >= 3 and min(after - before for before, after in pairwise(times)) >= BACKOFF_MS, times
