"""What interceptors are told of a record that ``send`` took."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from forebay.errors import IllegalArgumentError, RecordTooLargeError
from forebay.model import ProducerRecord
from forebay.producer.aio import AsyncKafkaProducer
from tests.fakes.waiting import Watching
from tests.fakes.world import Told, World

HEADERS = [("a", b"1"), ("b", None)]
LARGE = bytes(2000)


class Hearing:
    """``on_acknowledgement`` alone."""

    def __init__(self) -> None:
        self.told = Told()

    def on_acknowledgement(self, metadata: Any, error: Any) -> None:
        self.told.append((metadata, error))


class HearingHeaders:
    """The same with headers."""

    def __init__(self) -> None:
        self.told = Told()
        self.headers: list[Any] = []

    def on_acknowledgement(self, metadata: Any, error: Any, headers: Any = ()) -> None:
        self.told.append((metadata, error))
        self.headers.append(headers)


def by_loop(world: World, *given: Any, **more: Any) -> Any:
    return asyncio.run(AsyncKafkaProducer._around(world.producer).send(*given, **more))


def by_column(
    world: World, topic: str, value: bytes, *, headers: Any = None, partition: Any = None, on_delivery: Any = None
) -> Any:
    assert on_delivery is None
    return world.producer.send_batch(topic, [value], headers=[headers], partition=partition)


CALLS: dict[str, Callable[..., Any]] = {
    "send": lambda world, *given, **more: world.producer.send(*given, **more),
    "send_nowait": lambda world, *given, **more: world.producer.send_nowait(*given, **more),
    "asyncio": by_loop,
    "send_batch": by_column,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", [Hearing, HearingHeaders])
def test_no_record_is_made_for_those_that_only_hear_of_ends(
    kind: type[Any], call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To make one costs more than all else of a send.  What they hear is the same."""
    hearing = kind()
    world = World(topics={"t": 1}, interceptor_classes=[hearing], max_request_size=1000)
    send = CALLS[call]
    told = Told()
    takes_callback = call in ("send", "send_nowait")  # that of a loop comes by the loop
    made: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(ProducerRecord, "__init__", lambda *given: made.append(given))
        for number in range(3):
            send(world, "t", b"%d" % number, headers=HEADERS)
        if takes_callback:
            send(world, "t", b"3", on_delivery=told)
        world.settle()
    assert made == []
    count = 3 + takes_callback
    assert [(metadata.offset, error) for metadata, error in hearing.told] == [(at, None) for at in range(count)]
    assert [metadata.offset for metadata, _ in told] == [3] * (count - 3)
    if kind is HearingHeaders:
        assert hearing.headers[:3] == [tuple(HEADERS)] * 3 and hearing.headers[3:] == [()] * (count - 3)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", [Hearing, HearingHeaders, Watching])
def test_all_hear_of_what_fails(kind: type[Any], call: str) -> None:
    hearing = kind()
    world = World(topics={"t": 1}, interceptor_classes=[hearing], max_request_size=1000)
    send = CALLS[call]
    ends = hearing.acknowledged if kind is Watching else hearing.told
    if call == "send_batch":
        with pytest.raises(RecordTooLargeError):
            send(world, "t", LARGE, headers=HEADERS)
    else:
        send(world, "t", LARGE, headers=HEADERS)
        with pytest.raises(TypeError):
            send(world, "t", "text")
    assert {metadata.topic for metadata, _ in ends} == {"t"}
    assert [type(error) for _, error in ends][:1] == [RecordTooLargeError]
    assert len(ends) == (1 if call == "send_batch" else 2)
    if kind is HearingHeaders:
        assert hearing.headers[0] == tuple(HEADERS)


@pytest.mark.parametrize("kind", [Hearing, HearingHeaders, Watching])
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"topic": 5}, TypeError),
        ({"topic": "t", "partition": -1}, IllegalArgumentError),
        ({"topic": "t", "timestamp": -1}, IllegalArgumentError),
    ],
)
def test_nobody_hears_of_what_is_no_record(kind: type[Any], given: dict[str, Any], error: type[Exception]) -> None:
    hearing = kind()
    world = World(topics={"t": 1}, interceptor_classes=[hearing])
    with pytest.raises(error):
        world.producer.send(**given)
    assert (hearing.acknowledged if kind is Watching else hearing.told) == []


def test_headers_are_those_that_were_sent() -> None:
    """An iterator gives them once, and a list may change afterwards."""
    hearing = HearingHeaders()
    world = World(topics={"t": 1}, interceptor_classes=[hearing])
    given: Any = list(HEADERS)
    every: list[Any] = [iter(HEADERS), dict(HEADERS), tuple(HEADERS), given]
    for headers in every:
        world.producer.send("t", b"v", headers=headers)
    given.clear()
    world.settle()
    assert [record.headers for record in world.cluster.logs["t", 0].records] == [tuple(HEADERS)] * 4
    assert hearing.headers == [tuple(HEADERS)] * 4


def test_records_without_a_callback_share_one() -> None:
    """Where no headers are kept: else each is charged what a closure costs."""
    left: list[int] = []
    for chain in ([], [Hearing()], [HearingHeaders()]):
        world = World(topics={"t": 1}, interceptor_classes=chain, linger_ms=1000)
        for _ in range(20):
            world.producer.send("t", b"v", on_delivery=None if chain else print)
        left.append(world.pool.available())
    assert left[0] == left[1] > left[2]


def test_interceptors_get_the_headers_as_they_were_sent() -> None:
    """KIP-512: those of other interceptors and of serializers, too."""

    class Marking:
        def serialize(self, topic: str, headers: Any, data: Any) -> bytes | None:
            if data is not None:
                headers.append(("by", b"serializer"))
            return None if data is None else bytes(data)

    class Hearing:
        def __init__(self) -> None:
            self.heard: list[Any] = []

        def on_acknowledgement(self, metadata: Any, error: Any, headers: Any = ()) -> None:
            self.heard.append(headers)

    def add(record: ProducerRecord) -> ProducerRecord:
        return replace(record, headers=[*record.headers, ("by", b"interceptor")])

    plain, marked = Hearing(), Hearing()
    World(interceptor_classes=[plain, Watching(add)]).send(b"v", headers=[("own", b"1")])
    assert plain.heard == []
    cases: list[tuple[Hearing, dict[str, Any]]] = [(plain, {}), (marked, {"value_serializer": Marking()})]
    for hearing, options in cases:
        world = World(interceptor_classes=[hearing, Watching(add)], **options)
        world.send(b"v", headers=[("own", b"1")])
        world.settle()
        (record,) = world.cluster.logs["test", 0].records
        assert hearing.heard == [record.headers]
    assert [name for name, _ in plain.heard[0]] == ["own", "by"]
    assert marked.heard[0][-1] == ("by", b"serializer")
