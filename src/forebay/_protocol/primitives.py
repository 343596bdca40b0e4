"""Kafka's primitive, compact and tagged types, for all messages but Produce.

``Writer`` and ``Reader`` know whether a message is flexible (KIP-482), so a message's code is one list of fields
for all of its versions.  ``Reader`` checks every length and count against the bytes that are left before it
allocates, so memory stays in proportion to the bytes received.  What does not fit raises a ``ProtocolError`` that names
message and position.  Bytes after the last known field are ignored, as in the Java client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, NoReturn, TypeVar

from forebay.errors import ProtocolError
from forebay.model._wire import encoded

T = TypeVar("T")

_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_INT32S = tuple(Struct(f">{count}i") for count in range(8))
"""Of short arrays, such as a partition's replicas."""

UUID_SIZE = 16
"""Bytes of a UUID, such as a topic id."""


class Writer:
    """Collects one message body.  A value out of its type's range raises ``struct.error``."""

    __slots__ = ("_flexible", "_out")

    def __init__(self, *, flexible: bool) -> None:
        self._flexible = flexible
        self._out = bytearray()

    def take(self) -> bytes:
        """The body."""
        return bytes(self._out)

    def int8(self, value: int) -> None:
        self._out += _INT8.pack(value)

    def int16(self, value: int) -> None:
        self._out += _INT16.pack(value)

    def int32(self, value: int) -> None:
        self._out += _INT32.pack(value)

    def int64(self, value: int) -> None:
        self._out += _INT64.pack(value)

    def boolean(self, value: bool) -> None:
        self._out.append(1 if value else 0)

    def raw(self, data: bytes) -> None:
        """Bytes of a fixed length, such as a topic id."""
        self._out += data

    def uvarint(self, value: int) -> None:
        while value > 0x7F:
            self._out.append((value & 0x7F) | 0x80)
            value >>= 7
        self._out.append(value)

    def string(self, value: str | None) -> None:
        """A string, or null.

        Raises:
            IllegalArgumentError: over 32,767 bytes in UTF-8, or a lone surrogate.
        """
        data = b"" if value is None else encoded("string", value)
        size = -1 if value is None else len(data)
        if self._flexible:
            self.uvarint(size + 1)
        else:
            self.int16(size)
        self._out += data

    def count(self, value: int) -> None:
        """An array's number of elements; -1 for a null array."""
        if self._flexible:
            self.uvarint(value + 1)
        else:
            self.int32(value)

    def tags(self) -> None:
        """The end of a structure without tagged fields: nothing that we send needs one."""
        if self._flexible:
            self._out.append(0)


class Reader:
    """Reads a message from front to back.

    Args:
        payload: bytes or a memoryview of bytes; the results keep nothing of it.
        what: the message's name, for errors.
        flexible: compact lengths and tagged fields.
        at: where to begin.
    """

    __slots__ = ("_at", "_data", "_end", "_flexible", "_what")

    def __init__(self, payload: bytes | memoryview, *, what: str, flexible: bool, at: int = 0) -> None:
        self._data = payload
        self._at = at
        self._end = len(payload)
        self._flexible = flexible
        self._what = what

    @property
    def position(self) -> int:
        """The position, in bytes from the payload's start."""
        return self._at

    def fail(self, problem: str) -> NoReturn:
        """Raises ProtocolError naming the message and the position."""
        raise ProtocolError(f"{self._what}: {problem} at byte {self._at} of {self._end}")

    def fields(self, layout: Struct) -> tuple[Any, ...]:
        """Several numbers of fixed size at once."""
        at = self._forward(layout.size)
        return layout.unpack_from(self._data, at)

    def int16(self) -> int:
        value: int = _INT16.unpack_from(self._data, self._forward(2))[0]
        return value

    def int32(self) -> int:
        value: int = _INT32.unpack_from(self._data, self._forward(4))[0]
        return value

    def int64(self) -> int:
        value: int = _INT64.unpack_from(self._data, self._forward(8))[0]
        return value

    def boolean(self) -> bool:
        return self._data[self._forward(1)] != 0

    def raw(self, size: int) -> bytes:
        """``size`` bytes, copied."""
        at = self._forward(size)
        return bytes(self._data[at : at + size])

    def uvarint(self) -> int:
        """An unsigned varint of at most 32 bits in at most five bytes."""
        at = self._at
        if at < self._end and self._data[at] < 0x80:  # nearly all of them
            self._at = at + 1
            return self._data[at]
        value = 0
        for shift in (0, 7, 14, 21, 28):
            byte = self._data[self._forward(1)]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value if value <= 0xFFFFFFFF else self.fail(f"varint {value} has more than 32 bits")
        return self.fail("varint of more than five bytes")

    def nullable_string(self) -> str | None:
        size = self.uvarint() - 1 if self._flexible else self.int16()
        if size < 0:
            return None if size == -1 else self.fail(f"string of length {size}")
        data = self.raw(size)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            self.fail(f"string is not UTF-8 ({error.reason})")

    def string(self) -> str:
        value = self.nullable_string()
        return self.fail("null where a string is required") if value is None else value

    def nullable_bytes(self) -> bytes | None:
        """Bytes with their length before them, copied."""
        size = self.uvarint() - 1 if self._flexible else self.int32()
        if size < 0:
            return None if size == -1 else self.fail(f"{size} bytes of data")
        return self.raw(size)

    def count(self, smallest: int) -> int:
        """An array's number of elements, each of at least ``smallest`` bytes; -1 for null."""
        found = self.uvarint() - 1 if self._flexible else self.int32()
        if found < -1:
            self.fail(f"array of {found} elements")
        if found * smallest > self._end - self._at:
            self.fail(f"array of {found} elements of at least {smallest} bytes, but {self._end - self._at} bytes left")
        return found

    def array(self, read: Callable[[], T], smallest: int) -> tuple[T, ...]:
        """An array that may not be null."""
        found = self.count(smallest)
        if found < 0:
            self.fail("null where an array is required")
        return tuple([read() for _ in range(found)])

    def int32_array(self) -> tuple[int, ...]:
        """An array of int32, such as broker ids."""
        found = self.count(4)
        if found < 0:
            self.fail("null where an array is required")
        return self.fields(_INT32S[found] if found < len(_INT32S) else Struct(f">{found}i"))

    def tags(self, known: Mapping[int, Callable[[], None]] | None = None) -> None:
        """Reads the ``known`` tagged fields, each within its own bytes, and skips others."""
        if not self._flexible:
            return
        found = self.uvarint()
        if not found:
            return
        # The smallest tagged field is its number and its size.
        if found * 2 > self._end - self._at:
            self.fail(f"{found} tagged fields, but {self._end - self._at} bytes left")
        for _ in range(found):
            tag = self.uvarint()
            size = self.uvarint()
            stop = self._forward(size) + size
            read = known.get(tag) if known else None
            if read is not None:
                self._within(read, stop - size, stop)

    def _within(self, read: Callable[[], None], start: int, stop: int) -> None:
        outer, self._end, self._at = self._end, stop, start
        read()
        self._end, self._at = outer, stop

    def _forward(self, size: int) -> int:
        at = self._at
        if size > self._end - at:
            self.fail(f"{size} bytes expected, {self._end - at} left")
        self._at = at + size
        return at
