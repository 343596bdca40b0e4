"""The checks of send()'s arguments by themselves; how they reach the caller is in test_send."""

from __future__ import annotations

import enum
from collections import ChainMap
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from forebay import DeliveryReport
from forebay.errors import IllegalArgumentError, KafkaError
from forebay.interceptors._chain import ProducerInterceptors
from forebay.model import ProducerRecord, RecordMetadata
from forebay.model._arguments import as_record, checked_headers, checked_partition, checked_timestamp
from forebay.producer._acknowledged import Acknowledged


class Number(enum.IntEnum):
    ONE = 1


class Name(enum.StrEnum):
    TRACE = "trace"


class Header(NamedTuple):
    key: str
    value: bytes | bytearray | None


class Own(bytes):
    pass


@pytest.mark.parametrize("value", [0, 1, 0x7FFFFFFF, Number.ONE])
def test_partitions(value: int) -> None:
    assert checked_partition(value) == value


@pytest.mark.parametrize("value", [0, 1, (1 << 63) - 1, Number.ONE])
def test_timestamps(value: int) -> None:
    assert checked_timestamp(value) == value


@pytest.mark.parametrize("check", [checked_partition, checked_timestamp])
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (-1, IllegalArgumentError),
        (1 << 63, IllegalArgumentError),
        (True, TypeError),
        (1.0, TypeError),
        ("1", TypeError),
    ],
)
def test_what_is_neither(check: Any, value: Any, kind: type[BaseException]) -> None:
    """I testInvalidRecords: negative partition or timestamp."""
    with pytest.raises(kind):
        check(value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ((), []),
        ([("a", b"1"), ("a", None)], [("a", b"1"), ("a", None)]),
        ({"a": b"1", "ü": None}, [("a", b"1"), ("ü", None)]),
        (MappingProxyType({"a": b"1"}), [("a", b"1")]),
        (ChainMap[str, bytes | None]({"a": b"1"}, {"a": b"2", "b": None}), [("a", b"1"), ("b", None)]),
        ((("a", bytearray(b"1")),), [("a", b"1")]),
        ([("a", memoryview(b"12")[1:])], [("a", b"2")]),
        (iter([("a", b"")]), [("a", b"")]),
        ([Header("a", b"1"), Header("ü", bytearray(b"2"))], [("a", b"1"), ("ü", b"2")]),
        ([(Name.TRACE, b"1"), (Name.TRACE, Own(b"2"))], [("trace", b"1"), ("trace", b"2")]),
    ],
)
def test_headers(given: Any, expected: list[Any]) -> None:
    found = checked_headers(given)
    assert found == expected and found is not given
    assert all(type(pair) is tuple and type(pair[0]) is str for pair in found)
    assert all(type(value) in (bytes, type(None)) for _, value in found)


@pytest.mark.parametrize(
    "given", ["ab", b"ab", 5, [("a", b"", b"")], ["ab"], [("a", 5)], [(None, b"")], [["a", b""]], {"a": 5}]
)
def test_what_headers_are_not(given: Any) -> None:
    with pytest.raises(TypeError, match="header"):
        checked_headers(given)


def test_text_without_bytes() -> None:
    assert checked_headers([("süß 🙂" * 10_000, b"")])
    with pytest.raises(IllegalArgumentError, match=r"the key of header 0 '\\udfff' cannot be sent: .* lone surrogate"):
        checked_headers([("\udfff", b"")])


def test_as_record() -> None:
    record = ProducerRecord("t", b"v")
    assert as_record(record, None, None, None, None, None) is record
    assert as_record("t", b"v", None, None, None, None) == record
    with pytest.raises(IllegalArgumentError, match="no further"):
        as_record(record, None, b"k", None, None, None)
    with pytest.raises(TypeError, match="got bytes"):
        as_record(b"t", None, None, None, None, None)


def test_interceptors_hear_first_then_the_callback() -> None:
    events: list[str] = []

    class Listening:
        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            events.append(f"interceptor {metadata.partition} {error}")

    metadata, error = RecordMetadata("t", 3, -1, -1, -1, -1), KafkaError("no")
    told = Acknowledged(
        ProducerInterceptors([Listening()]), lambda report: events.append(f"callback {report.error}"), ()
    )
    told(DeliveryReport(metadata, error))
    Acknowledged(ProducerInterceptors([Listening()]), None, ())(DeliveryReport(metadata))
    assert events == ["interceptor 3 no", "callback no", "interceptor 3 None"]


def test_headers_are_kept_only_for_interceptors_that_take_them() -> None:
    class Taking:
        def on_acknowledgement(self, metadata: Any, error: Any, headers: Any = ()) -> None:
            heard.append(headers)

    class Old:
        def on_acknowledgement(self, metadata: Any, error: Any) -> None: ...

    heard: list[Any] = []
    kept = Acknowledged(ProducerInterceptors([Old(), Taking()]), None, [("a", b"1")])
    kept.note_headers([("a", b"1"), ("b", b"2")])
    kept(DeliveryReport(RecordMetadata("t", 0, -1, -1, -1, -1)))
    assert heard == [(("a", b"1"), ("b", b"2"))]
    assert Acknowledged(ProducerInterceptors([Old()]), None, [("a", b"1")]).headers == ()
