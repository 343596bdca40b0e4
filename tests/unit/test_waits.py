"""Every public wait takes seconds or a timedelta, and refuses what is no time; the waits are found, not listed."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from forebay import AdminClient, AsyncKafkaProducer, BatchDelivery, KafkaProducer, RecordFuture, end_on_sigterm
from forebay.errors import IllegalArgumentError, KafkaError
from forebay.model import TransactionIdentity
from forebay.producer.process import PerProcess
from forebay.testing import MockProducer
from tests.fakes.world import World
from tests.unit.admin.world import AdminWorld

CLASSES = (KafkaProducer, AsyncKafkaProducer, AdminClient, RecordFuture, BatchDelivery, PerProcess, MockProducer)
WRONG = [
    (math.nan, IllegalArgumentError, "must be a number of seconds: nan"),
    (-1, IllegalArgumentError, "cannot be negative: -1"),
    (timedelta(seconds=-1), IllegalArgumentError, "cannot be negative: -1.0"),
    (True, TypeError, r"must be seconds \(int or float\) or a timedelta, got bool: True"),
    ("1", TypeError, r"must be seconds \(int or float\) or a timedelta, got str: '1'"),
]
GIVEN: dict[str, Any] = {
    "topic": "test", "partition": 0, "name": "test", "keys": (), "transactional_id": "t", "transactional_ids": ("t",),
    "producer_id": 1, "producer_epoch": 0, "commit": True, "version": 2, "offsets": {("test", 0): 1}, "group": "g",
    "topics": ("test",), "identity": TransactionIdentity("t", 1, 0, 2),
}  # fmt: skip


def waits() -> Iterator[tuple[type, str]]:
    """Each public method with a ``timeout``."""
    for kind in CLASSES:
        for name in dir(kind):
            call = None if name.startswith("_") else getattr(kind, name, None)
            if inspect.isroutine(call) and "timeout" in inspect.signature(call).parameters:
                yield kind, name


WAITS = list(waits())


@pytest.fixture
def objects() -> dict[type, Any]:
    world = World(transactional_id="t", enable_idempotence=True, acks="all")
    table = World(topics={"t": 1}, max_block_ms=0)
    mock = MockProducer(transactional_id="t")
    mock.init_transactions()
    mock.begin_transaction()
    return {
        KafkaProducer: world.producer,
        AsyncKafkaProducer: AsyncKafkaProducer._around(world.producer),
        AdminClient: AdminWorld().admin,
        RecordFuture: World().send(b"v"),
        BatchDelivery: table.producer.send_batch("t", [b"v"]),
        PerProcess: PerProcess(world.producer.config, (0, -1)),
        MockProducer: mock,
    }


def called(call: Callable[..., Any], timeout: Any) -> Any:
    """The result of a call, or of the coroutine or the first item that it gives."""
    wanted = inspect.signature(call).parameters.values()
    given = {each.name: GIVEN[each.name] for each in wanted if each.default is each.empty}
    result = call(**given, timeout=timeout)
    if inspect.iscoroutine(result):
        return asyncio.run(result)
    return next(result) if inspect.isgenerator(result) else result


def test_the_waits_are_found() -> None:
    assert len(WAITS) >= 40
    assert {kind for kind, _ in WAITS} == set(CLASSES)


@pytest.mark.parametrize(("timeout", "kind", "what"), WRONG, ids=lambda each: str(each)[:12])
@pytest.mark.parametrize(("owner", "name"), WAITS, ids=lambda each: getattr(each, "__name__", each))
def test_what_is_no_time_is_refused(
    owner: type, name: str, timeout: Any, kind: type[Exception], what: str, objects: dict[type, Any]
) -> None:
    with pytest.raises(kind, match=f"The timeout {what}"):
        called(getattr(objects[owner], name), timeout)


@pytest.mark.parametrize(("timeout", "kind", "what"), WRONG, ids=lambda each: str(each)[:12])
def test_the_limit_of_an_end_by_a_signal_is_a_time(timeout: Any, kind: type[Exception], what: str) -> None:
    with pytest.raises(kind, match=f"The timeout {what}"):
        end_on_sigterm(timeout)


@pytest.mark.parametrize("timeout", [0, 0.0, timedelta(0)])
@pytest.mark.parametrize("name", ["result", "exception", "get"])
def test_a_timedelta_is_seconds(name: str, timeout: Any, objects: dict[type, Any]) -> None:
    with pytest.raises(KafkaError, match=r"No acknowledgement .* within 0(\.0)? s"):
        getattr(objects[RecordFuture], name)(timeout)
