"""Names and uses of other clients: refused as Python does, with what to write here; and nobody else sees them."""

from __future__ import annotations

import concurrent.futures
import pickle
from typing import Any

import pytest

from forebay import AsyncKafkaProducer, KafkaProducer, RecordFuture, per_process
from forebay._delivery.future import lone_future
from forebay._runtime.hints import ASYNC_PRODUCER, FUTURE, PRODUCER
from tests.fakes.world import World


def producer() -> Any:
    value: Any = World().producer
    value.__class__ = KafkaProducer
    return value


def future() -> Any:
    return lone_future("t", 0)


KINDS: dict[str, tuple[Any, dict[str, str]]] = {
    "KafkaProducer": (producer, PRODUCER),
    "AsyncKafkaProducer": (lambda: AsyncKafkaProducer._around(producer()), ASYNC_PRODUCER),
    "RecordFuture": (future, FUTURE),
}
NAMES = [(kind, name) for kind, (_, hints) in KINDS.items() for name in hints]


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_a_name_of_another_client_s(kind: str, name: str) -> None:
    make, hints = KINDS[kind]
    value = make()
    with pytest.raises(AttributeError) as refused:
        getattr(value, name)
    assert str(refused.value) == f"{kind!r} object has no attribute {name!r}: {hints[name]}"
    assert not hasattr(value, name) and name not in dir(value)


@pytest.mark.parametrize("kind", KINDS)
def test_other_names_are_refused_as_ever(kind: str) -> None:
    with pytest.raises(AttributeError, match=f"^'{kind}' object has no attribute 'nothing'$"):
        KINDS[kind][0]().nothing  # noqa: B018


def test_what_hints_name_is_there() -> None:
    for hints, kind in ((PRODUCER, KafkaProducer), (ASYNC_PRODUCER, AsyncKafkaProducer), (FUTURE, RecordFuture)):
        for text in hints.values():
            if text.startswith("it is "):
                assert hasattr(kind, text.removeprefix("it is ").partition("(")[0]), text


@pytest.mark.parametrize("use", [concurrent.futures.wait, lambda of: next(concurrent.futures.as_completed(of))])
def test_functions_of_concurrent_futures(use: Any) -> None:
    with pytest.raises(AttributeError, match=r"takes as_concurrent\(\) of it"):
        use([future()])


def test_a_producer_for_each_process_is_called_first() -> None:
    each: Any = per_process(bootstrap_servers="localhost:9092")
    for name in ("send", "flush", "metrics", "send_nowait"):
        with pytest.raises(AttributeError, match=rf"'PerProcess' .* call it .* as in producer\(\)\.{name}\(\.\.\.\)"):
            getattr(each, name)
    with pytest.raises(AttributeError, match=r"producer\(\)\.send\("):
        each.produce  # noqa: B018
    with pytest.raises(AttributeError, match="^'PerProcess' object has no attribute 'nothing'$"):
        each.nothing  # noqa: B018
    assert pickle.loads(pickle.dumps(each)).config == each.config


def test_a_user_s_own_method_of_that_name_is_used() -> None:
    class Own(KafkaProducer):
        def produce(self) -> int:
            return 1

    value = producer()
    value.__class__ = Own
    assert value.produce() == 1 and "produce" in dir(value) and "poll" not in dir(value)
    value.poll = 2
    assert value.poll == 2


def test_a_class_has_them_as_little_as_its_objects() -> None:
    """What reads a class by ``dir()`` finds the name, and says of it what to write."""
    assert not hasattr(KafkaProducer, "produce") and not hasattr(AsyncKafkaProducer, "start")
    assert "send(topic, value, key" in repr(vars(KafkaProducer)["produce"])
