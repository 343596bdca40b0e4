"""Names and spellings that this package has not: asked for, each says what is written here instead.

``__getattr__`` would be simpler, but because of it Python 3.11 would look up ``send`` without its caches.  So a
producer has a descriptor for each such name, which costs nothing until it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)

_STARTED = "a producer starts when it is made"
_JAVA = {
    "partitionsFor": "partitions_for",
    "initTransactions": "init_transactions",
    "beginTransaction": "begin_transaction",
    "sendOffsetsToTransaction": "send_offsets_to_transaction",
    "commitTransaction": "commit_transaction",
    "abortTransaction": "abort_transaction",
    "clientInstanceId": "client_instance_id",
}
_BOTH = {
    **{java: f"it is {name}() here" for java, name in _JAVA.items()},
    "list_topics": "forebay.AdminClient has describe_cluster()",
    "bootstrap_connected": "describe() shows the connections",
    "stop": "it is close() here",
    "begin": "it is begin_transaction() here",
}
PRODUCER = {
    **_BOTH,
    "produce": "write send(topic, value, key, on_delivery=...), or use Producer of forebay.compat.confluent_kafka",
    "poll": "callbacks run on the producer's own thread, so nothing has to be polled; flush() waits for all of them",
    "send_and_wait": "write send(...).result(), or use forebay.AsyncKafkaProducer",
    "start": _STARTED,
    "create_batch": "batches are made by the producer; send_batch() sends a table",
}
ASYNC_PRODUCER = {
    **_BOTH,
    "produce": "write await send(topic, value, key), or use send_and_wait()",
    "poll": "nothing has to be polled; await flush() waits for all records",
    "start": f"{_STARTED}, or by async with",
    "create_batch": "batches are made by the producer, and send_batch() sends a table; or use AIOKafkaProducer of "
    "forebay.compat.aiokafka",
    "send_nowait": "await send(...) waits only where there is no room",
}
FUTURE = {
    "_condition": "concurrent.futures takes as_concurrent() of it, as in wait([future.as_concurrent()])",
    "_state": "concurrent.futures takes as_concurrent() of it",
    "_waiters": "concurrent.futures takes as_concurrent() of it",
    "add_callback": "write add_done_callback(function), which gets the future",
    "add_errback": "write add_done_callback(function), which gets the future; its exception(0) is the error or None",
    "succeeded": "write future.done() and future.exception(0) is None",
    "failed": "write future.done() and future.exception(0) is not None",
    "is_done": "it is done() here",
    "isDone": "it is done() here",
    "value": "it is result() here",
    "remove_done_callback": "a callback cannot be taken back",
    "set_result": "the broker's answer alone gives the outcome",
    "set_exception": "the broker's answer alone gives the outcome",
}
del _JAVA, _BOTH, _STARTED


def old_spelling(call: str, timestamp_ms: object) -> TypeError:
    """The error of a call as it was written before the face of 1.0: it gives the new spelling."""
    if timestamp_ms is not None:
        return TypeError(f"{call}() has no timestamp_ms: write timestamp=..., in ms or as an aware datetime")
    return TypeError(
        f"{call}() takes topic, value and key by position, and the rest by name: headers=..., partition=..., "
        "timestamp=..."
    )


def shown_as(shape: Callable[..., Any], *functions: Callable[..., Any]) -> None:
    """Shows functions as ``shape``, to ``inspect.signature`` and ``help``: without parameters that only refuse.

    An old spelling must reach the function for its error to give the new one, and a wrapper would cost each call.
    """
    for function in functions:
        function.__dict__["__wrapped__"] = shape


def no_attribute(kind: str, name: str, hint: str | None) -> AttributeError:
    """Python's own words, and the hint.  Without the object in it, or a traceback would guess at a name, too."""
    return AttributeError(f"{kind!r} object has no attribute {name!r}" + (f": {hint}" if hint else ""))


class Hint:
    """In the place of an attribute that is not there."""

    __slots__ = ("_name", "_text")

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text

    def __get__(self, instance: object, owner: type) -> Any:
        raise no_attribute(owner.__name__, self._name, self._text)

    def __repr__(self) -> str:
        return f"<not there: {self._text}>"


def hinted(hints: Mapping[str, str]) -> Callable[[Kind], Kind]:
    """Gives a class the hints; its ``__dir__`` leaves them out with ``without_hints``."""

    def add(kind: Kind) -> Kind:
        for name, text in hints.items():
            assert not hasattr(kind, name), f"{kind.__name__} has {name}"
            setattr(kind, name, Hint(name, text))
        return kind

    return add


def without_hints(kind: type, names: Iterable[str]) -> list[str]:
    """The names that an object of this class has."""
    hints = {name for each in kind.__mro__ for name, value in vars(each).items() if isinstance(value, Hint)}
    own = {name for each in kind.__mro__ for name, value in vars(each).items() if not isinstance(value, Hint)}
    return [name for name in names if name not in hints or name in own]
