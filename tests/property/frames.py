"""Frames for fuzzing: valid ones by kio's schemas, whatever the API, and damage of the kinds that length-prefixed
formats are sensitive to.

All of it from one ``random.Random``, so that a printed seed brings back every byte.
"""

from __future__ import annotations

import dataclasses
import os
import random
import struct
import types
import typing
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType

from tests.unit._protocol.kio_peer import encode, schema
from tests.unit._records.goldens import V2_ONE

DEFAULT_SEED = 20_240_229


def printed_seed() -> int:
    """``FOREBAY_FUZZ_SEED`` (a number, or ``random``), or the same one in every run; pytest shows it with a failure."""
    asked = os.environ.get("FOREBAY_FUZZ_SEED", str(DEFAULT_SEED))
    seed = random.SystemRandom().getrandbits(32) if asked == "random" else int(asked)
    print(f"FOREBAY_FUZZ_SEED={seed}")
    return seed


# -- valid frames --------------------------------------------------------------------------------------------

TEXTS = ("", "t", "test", "broker.example", "größer", "x" * 130)
CODES = tuple(ErrorCode(code) for code in (0, 0, 0, 3, 6, 7, 16, 45, 87))


def _scalar(kind: str, draw: random.Random) -> Any:
    made: dict[str, Callable[[], Any]] = {
        "bool": lambda: draw.random() < 0.5,
        "bytes": lambda: V2_ONE,
        "datetime_i64": lambda: datetime.fromtimestamp(draw.randrange(1 << 31), UTC),
        "error_code": lambda: draw.choice(CODES),
        "float64": draw.random,
        "records": lambda: V2_ONE,
        "string": lambda: draw.choice(TEXTS),
        "timedelta_i32": lambda: timedelta(milliseconds=draw.choice((0, 5, 1000))),
        "timedelta_i64": lambda: timedelta(milliseconds=draw.choice((0, 5, 1000))),
        "uuid": lambda: uuid.UUID(int=draw.getrandbits(128)),
    }
    return made[kind]() if kind in made else draw.choice((0, 1, 2, 3, 100))


def _value(annotation: Any, kind: str | None, draw: random.Random) -> Any:
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is tuple:
        return tuple(_value(arguments[0], kind, draw) for _ in range(draw.choice((0, 1, 1, 2, 3))))
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        if draw.random() < 0.2:
            return None
        return _value(next(one for one in arguments if one is not type(None)), kind, draw)
    if dataclasses.is_dataclass(annotation):
        return _message(typing.cast("type[Any]", annotation), draw)
    assert kind is not None, f"what is {annotation}?"
    return _scalar(kind, draw)


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, Any, str | None], ...]:
    """Name, type and Kafka's type of each."""
    hints = typing.get_type_hints(kind)
    return tuple((one.name, hints[one.name], one.metadata.get("kafka_type")) for one in dataclasses.fields(kind))


def _message(kind: type[Any], draw: random.Random) -> Any:
    return kind(**{name: _value(annotation, of_kafka, draw) for name, annotation, of_kafka in _fields(kind)})  # type: ignore[arg-type]  # mypy takes a class for unhashable


def response_kind(api: str, version: int) -> type[Any]:
    """kio's class for a response; ImportError where kio does not know the version."""
    module = schema(api, version, "response")
    kinds = [value for value in vars(module).values() if getattr(value, "__type__", None) is EntityType.response]
    assert len(kinds) == 1
    kind: type[Any] = kinds[0]
    return kind


def _old_produce(version: int, draw: random.Random) -> bytes:
    # Kafka 4 has dropped these versions, and kio with it.
    partition = struct.pack(">ihq", draw.randrange(4), draw.choice((0, 6)), draw.randrange(100))
    append_time = struct.pack(">q", -1) if version >= 2 else b""
    topics = struct.pack(">ih4si", 1, 4, b"test", 1) + partition + append_time
    return topics + (bytes(4) if version >= 1 else b"")


def valid_frame(api: str, version: int, draw: random.Random) -> bytes:
    """The body of some response as a broker would send it."""
    if api == "produce" and version < 3:
        return _old_produce(version, draw)
    return encode(_message(response_kind(api, version), draw))


# -- damage --------------------------------------------------------------------------------------------------

LENGTHS = tuple(
    struct.pack(layout, number)
    for layout, numbers in (
        (">b", (-1, -2, 127, -128)),
        (">h", (-1, -2, 0x7FFF, -0x8000)),
        (">i", (-1, -2, 0x7FFFFFFF, -0x80000000, 1 << 24, 0x00FFFFFF)),
        (">q", (-1, -2, (1 << 63) - 1, -(1 << 63))),
    )
    for number in numbers
)
VARINTS = (
    b"\xff\xff\xff\xff\x0f",  # 2^32 - 1
    b"\xff\xff\xff\xff\x07",  # 2^31 - 1
    b"\x80\x80\x80\x80\x08",  # 2^31
    b"\xff\xff\xff\xff\x7f",  # more than 32 bits
    b"\xff" * 5,  # never ends
    b"\xff" * 9 + b"\x01",
    b"\x80" * 12,
    b"\x80\x80\x80\x80\x00",  # zero, the long way
)


def cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def lengthen(data: bytes, draw: random.Random) -> bytes:
    return data + draw.randbytes(draw.choice((1, 4, 60, 2000)))


def flip_bits(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        if changed:
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def overwrite(data: bytes, draw: random.Random) -> bytes:
    """A number in place of whatever stands there."""
    number = draw.choice(LENGTHS)
    at = draw.randrange(len(data) + 1)
    return data[:at] + number + data[at + len(number) :]


def put_varint(data: bytes, draw: random.Random) -> bytes:
    """A varint in place of one byte, where most varints are that short."""
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(VARINTS) + data[at + 1 :]


def drop_slice(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + data[at + draw.randrange(1, 12) :]


def repeat_slice(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + data[at : at + draw.randrange(1, 40)] * draw.choice((2, 3, 20)) + data[at:]


def replace_all(data: bytes, draw: random.Random) -> bytes:
    return draw.randbytes(draw.choice((0, 1, 3, 10, 40, 300)))


DAMAGE = (
    cut,
    lengthen,
    flip_bits,
    flip_bits,
    overwrite,
    overwrite,
    overwrite,
    put_varint,
    put_varint,
    drop_slice,
    repeat_slice,
    replace_all,
)


def damaged(data: bytes, draw: random.Random) -> bytes:
    """``data`` after one to three mishaps."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        data = draw.choice(DAMAGE)(data, draw)
    return data
