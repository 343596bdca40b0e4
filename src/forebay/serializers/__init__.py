"""From keys and values to bytes: the protocol, Kafka's built-in serializers, and adapters for anything callable.

Bytes are as the Java serializers write them, so that Java's deserializers read them.  None stays None (a null key,
a tombstone) in every built-in, and never reaches a plain callable.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from forebay.errors import ConfigError, SerializationError, UnserializableTypeError
from forebay.serializers._calls import BYTES

__all__ = [
    "BooleanSerializer",
    "ByteArraySerializer",
    "ByteBufferSerializer",
    "BytesSerializer",
    "DoubleSerializer",
    "FloatSerializer",
    "IntegerSerializer",
    "JSONSerializer",
    "ListSerializer",
    "LongSerializer",
    "Serializer",
    "ShortSerializer",
    "StringSerializer",
    "UUIDSerializer",
    "VoidSerializer",
]


def __dir__() -> list[str]:
    return sorted(__all__)


Bytes = bytes | bytearray | memoryview
Configs = Mapping[str, Any]


@runtime_checkable
class Serializer(Protocol):
    """What a serializer object has; ``configure`` and ``close`` may be left out."""

    def configure(self, configs: Configs, is_key: bool) -> None:
        """Called once for a serializer given as a class; an instance is used as it is."""

    def serialize(self, topic: str, headers: Any, data: Any) -> Bytes | None:
        """The bytes of ``data``; may add to ``headers`` (a list of pairs).  ``serialize(topic, data)`` will do, too.

        Raises:
            SerializationError: ``data`` cannot be turned into bytes.
        """

    def close(self) -> None:
        """Called once when the producer is closed."""


class _BuiltIn:
    """Base of the built-ins: nothing to configure, nothing to close, None in and None out."""

    accepts: tuple[type, ...] = ()
    fixed_size: bool = False
    """All values have the same number of bytes: a list of them needs no lengths."""

    def configure(self, configs: Configs, is_key: bool) -> None:
        """Nothing to configure."""

    def close(self) -> None:
        """Nothing to close."""

    def serialize(self, topic: str, headers: Any, data: Any) -> bytes | None:
        """The bytes of ``data``.

        Raises:
            UnserializableTypeError: another type than this serializer is for.
            SerializationError: out of range or not encodable.
        """
        if data is None:
            return None
        if not isinstance(data, self.accepts) or (isinstance(data, bool) and bool not in self.accepts):
            wanted = " or ".join(kind.__name__ for kind in self.accepts) or "None"
            raise UnserializableTypeError(f"{type(self).__name__} takes {wanted}, not {type(data).__name__}")
        try:
            return self.encode(data)
        except (struct.error, OverflowError, UnicodeEncodeError) as error:
            raise SerializationError(f"{type(self).__name__} cannot encode {type(data).__name__}: {error}") from error

    def encode(self, data: Any) -> bytes:
        """The bytes of a value of an accepted type."""
        return bytes(data)


class ByteArraySerializer(_BuiltIn):
    """Bytes as they are."""

    accepts: tuple[type, ...] = BYTES


class ByteBufferSerializer(ByteArraySerializer):
    """Bytes as they are: a memoryview's whole range."""


class BytesSerializer(ByteArraySerializer):
    """Bytes as they are."""


class StringSerializer(_BuiltIn):
    """Text in an encoding, UTF-8 unless told otherwise.

    Config keys: ``key.serializer.encoding`` or ``value.serializer.encoding``, else ``serializer.encoding``.

    Raises:
        SerializationError: there is no such encoding.
    """

    accepts: tuple[type, ...] = (str,)

    def __init__(self, encoding: str = "utf-8") -> None:
        self._set(encoding)

    def configure(self, configs: Configs, is_key: bool) -> None:
        own = configs.get(f"{'key' if is_key else 'value'}.serializer.encoding")
        encoding = own or configs.get("serializer.encoding")
        if encoding:
            self._set(encoding)

    def _set(self, encoding: str) -> None:
        try:
            name = codecs.lookup(encoding).name
            "".encode(name)  # base64 and its like are codecs, but not for text
        except LookupError as error:
            raise SerializationError(f"StringSerializer: unknown encoding {encoding!r}") from error
        # Java's UTF-16 is big-endian with a mark; Python's takes the machine's order.
        self._mark, self._encoding = (codecs.BOM_UTF16_BE, "utf-16-be") if name == "utf-16" else (b"", name)

    def encode(self, data: str) -> bytes:
        return self._mark + data.encode(self._encoding)


class _Packed(_BuiltIn):
    """A number of fixed size, big-endian."""

    layout: str = ""
    fixed_size = True

    def encode(self, data: Any) -> bytes:
        return struct.pack(self.layout, data)


class ShortSerializer(_Packed):
    """16-bit integer."""

    accepts: tuple[type, ...] = (int,)
    layout: str = ">h"


class IntegerSerializer(_Packed):
    """32-bit integer."""

    accepts: tuple[type, ...] = (int,)
    layout: str = ">i"


class LongSerializer(_Packed):
    """64-bit integer."""

    accepts: tuple[type, ...] = (int,)
    layout: str = ">q"


class FloatSerializer(_Packed):
    """32-bit float; a number too large for it is an error, not infinity."""

    accepts: tuple[type, ...] = (float, int)
    layout: str = ">f"


class DoubleSerializer(_Packed):
    """64-bit float."""

    accepts: tuple[type, ...] = (float, int)
    layout: str = ">d"


class BooleanSerializer(_BuiltIn):
    """One byte, 1 or 0."""

    accepts: tuple[type, ...] = (bool,)

    def encode(self, data: bool) -> bytes:
        return b"\x01" if data else b"\x00"


class UUIDSerializer(StringSerializer):
    """A UUID as its 36 characters."""

    fixed_size = True

    def __init__(self, encoding: str = "utf-8") -> None:
        # Imported by those who use it, like json and inspect below: together they take 8 ms of every start.
        from uuid import UUID

        super().__init__(encoding)
        self.accepts: tuple[type, ...] = (UUID,)

    def encode(self, data: Any) -> bytes:
        return super().encode(str(data))


class VoidSerializer(_BuiltIn):
    """Only None."""


class JSONSerializer(_BuiltIn):
    """Compact JSON in UTF-8 (not one of Java's).  None is a null value, not the text ``null``."""

    accepts: tuple[type, ...] = (object, bool)

    def __init__(self, **options: Any) -> None:
        """``options`` go to ``json.dumps``."""
        from json import dumps

        self._dumps = dumps
        self._options = {"separators": (",", ":"), "ensure_ascii": False, **options}

    def encode(self, data: Any) -> bytes:
        try:
            return self._dumps(data, **self._options).encode()
        except (TypeError, ValueError) as error:
            raise SerializationError(f"JSONSerializer cannot encode {type(data).__name__}: {error}") from error


class ListSerializer(_BuiltIn):
    """A list, each element by an inner serializer.

    Config keys: ``default.list.key.serde.inner`` or ``default.list.value.serde.inner``.

    Raises:
        ConfigError: no inner serializer is known, or one was given to the constructor and configured as well.
    """

    accepts: tuple[type, ...] = (list, tuple)

    def __init__(self, inner: Serializer | type | None = None) -> None:
        self._inner: Any = inner() if isinstance(inner, type) else inner

    def configure(self, configs: Configs, is_key: bool) -> None:
        key = f"default.list.{'key' if is_key else 'value'}.serde.inner"
        if self._inner is not None:
            raise ConfigError(f"ListSerializer has its inner serializer from its constructor; {key} has no use")
        inner = configs.get(key)
        if inner is None:
            raise ConfigError(f"ListSerializer has no inner serializer: set {key}, or pass one to its constructor")
        self._inner = inner() if isinstance(inner, type) else inner
        self._inner.configure(configs, is_key)

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()

    def encode(self, data: Sequence[Any]) -> bytes:
        if self._inner is None:
            raise SerializationError("ListSerializer has no inner serializer")
        fixed = getattr(self._inner, "fixed_size", False)
        parts = [struct.pack(">b", 0 if fixed else 1)]
        if fixed:
            nulls = [index for index, item in enumerate(data) if item is None]
            parts.append(struct.pack(f">{len(nulls) + 1}i", len(nulls), *nulls))
        parts.append(struct.pack(">i", len(data)))
        for item in data:
            encoded = self._inner.serialize("", None, item)
            if not fixed:
                parts.append(struct.pack(">i", -1 if encoded is None else len(encoded)))
            parts.append(encoded or b"")
        return b"".join(parts)


BUILT_IN: dict[str, type[_BuiltIn]] = {
    kind.__name__: kind
    for kind in (
        ByteArraySerializer,
        ByteBufferSerializer,
        BytesSerializer,
        StringSerializer,
        ShortSerializer,
        IntegerSerializer,
        LongSerializer,
        FloatSerializer,
        DoubleSerializer,
        BooleanSerializer,
        UUIDSerializer,
        VoidSerializer,
        ListSerializer,
    )
}
"""Java's, by their class's simple name."""
