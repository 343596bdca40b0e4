"""Protobuf: a message's descriptor from the file that protoc wrote, columns checked against it, and one row's bytes.

The package protobuf is Google's own, and needs no code that was generated: a descriptor is enough.  The road not
taken: its ``json_format``, which wants times and bytes as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from forebay._runtime.extras import of_extra

with of_extra(__name__, "spark"):
    from pyspark.sql import types as T

from forebay.serializers.rows.tables import reason
from forebay.spark.jobs.table import JobError

WHOLE_32 = (T.ByteType, T.ShortType, T.IntegerType)
WHOLE_64 = (*WHOLE_32, T.LongType)
# Kinds of fields by the constants of FieldDescriptor.type: what a column may be.
COLUMNS: dict[str, tuple[type, ...]] = {
    "INT32": WHOLE_32, "SINT32": WHOLE_32, "SFIXED32": WHOLE_32,
    "UINT32": WHOLE_64, "FIXED32": WHOLE_64,
    "INT64": WHOLE_64, "SINT64": WHOLE_64, "SFIXED64": WHOLE_64, "UINT64": WHOLE_64, "FIXED64": WHOLE_64,
    "FLOAT": (T.FloatType, T.ByteType, T.ShortType),
    "DOUBLE": (T.DoubleType, T.FloatType, *WHOLE_32),
    "BOOL": (T.BooleanType,),
    "STRING": (T.StringType,),
    "BYTES": (T.BinaryType,),
    "ENUM": (T.StringType, *WHOLE_32),
}  # fmt: skip
TIMESTAMP = "google.protobuf.Timestamp"
WRAPPERS = tuple(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)

FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""Of a Timestamp: the years 1 to 9999."""

Fill = Callable[[Any, Any], None]
"""Puts a value that is not None into a message."""


class File(NamedTuple):
    """A file of the descriptor, for a registry."""

    name: str
    content: bytes
    """A serialized FileDescriptorProto."""
    imports: tuple[str, ...]
    """Without Google's own, which every registry has."""


class ProtobufEncoder:
    """Rows to Protobuf's binary form; pickles, since tasks get it.  Timestamps are microseconds, as in ``values_of``.

    Args:
        descriptor: a serialized FileDescriptorSet with all imports.
        message: a full name in it.

    Raises:
        JobError: the package is not installed, this is no descriptor, or it has no such message.
    """

    name = "protobuf"

    def __init__(self, descriptor: bytes, message: str) -> None:
        self._descriptor = descriptor
        self.message = message
        self._files, kind = _found(descriptor, message)
        self.kind: Any = kind
        from google.protobuf import message_factory

        self._class = message_factory.GetMessageClass(self.kind)
        self._fill = _filler(self.kind)

    def __reduce__(self) -> tuple[Any, ...]:
        return ProtobufEncoder, (self._descriptor, self.message)

    def encode(self, value: Any) -> bytes:
        """The bytes of one row, a dict.

        Raises:
            ValueError: it does not fit the message; says which field and why.
        """
        made = self._class()
        self._fill(made, value)
        try:
            return made.SerializeToString(deterministic=True)  # type: ignore[no-any-return]
        except Exception as error:
            raise ValueError(reason(error)) from error

    def record_name(self) -> str:
        """The full name, which strategies of subjects need."""
        return self.message

    def index(self) -> bytes:
        """Which message of its file this is, as the framing has it; one zero byte for the first."""
        file = self._files[self.kind.file.name]
        path: list[int] = []
        beside = file.message_type
        for word in self.message.removeprefix(f"{file.package}.").split("."):
            path.append([one.name for one in beside].index(word))
            beside = beside[path[-1]].nested_type
        return b"\0" if path == [0] else b"".join(map(_varint, [len(path), *path]))

    def file(self, name: str | None = None) -> File:
        """The file of that name, or the message's own."""
        found = self._files[name or self.kind.file.name]
        imports = tuple(one for one in found.dependency if not one.startswith("google/protobuf/"))
        return File(found.name, found.SerializeToString(), imports)


def _found(descriptor: bytes, message: str) -> tuple[dict[str, Any], Any]:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool
    except ImportError:
        raise JobError("format 'protobuf' needs the package protobuf: pip install 'forebay[protobuf]'") from None
    pool = descriptor_pool.DescriptorPool()
    try:
        files = {one.name: one for one in descriptor_pb2.FileDescriptorSet.FromString(descriptor).file}
        # protoc writes imports before what imports them.
        for one in files.values():
            pool.Add(one)
    except Exception as error:  # noqa: BLE001 -- its two implementations raise different classes
        raise JobError(f"the descriptor is no set of files with all imports: {type(error).__name__}: {error}") from None
    try:
        return files, pool.FindMessageTypeByName(message)
    except KeyError:
        have = [f"{one.package}.{kind.name}".lstrip(".") for one in files.values() for kind in one.message_type]
        raise JobError(
            f"message {message!r} is not in the descriptor, which has: {', '.join(have) or 'none'}"
        ) from None


def _varint(number: int) -> bytes:
    """Zigzag, as the framing has it."""
    rest, out = number << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def _filler(kind: Any) -> Fill:
    """How a dict gets into a message of this kind; messages inside are looked at when a row has one."""
    fields: dict[str, tuple[Any, Fill | None]] = {name: (field, None) for name, field in kind.fields_by_name.items()}

    def fill(message: Any, row: Any) -> None:
        for name, value in row.items():
            if value is None:
                continue
            field, into = fields[name]
            if into is None:
                into = _setter(field)
                fields[name] = field, into
            try:
                into(message, value)
            except Exception as error:  # noqa: BLE001
                # The package's two implementations raise different classes.
                raise ValueError(f"{name}: {reason(error)}") from None

    return fill


def _setter(field: Any) -> Fill:
    name = field.name
    if _is_map(field):
        return _map_setter(name, field.message_type.fields_by_name["value"])
    if field.message_type is not None:
        inner = _message_filler(field.message_type)
        if field.is_repeated:
            return _messages_setter(name, inner)
        return lambda message, value: _into_message(getattr(message, name), value, inner)
    convert = _converter(field)
    if field.is_repeated:
        return lambda message, value: getattr(message, name).extend([convert(_present(one)) for one in value])
    return lambda message, value: setattr(message, name, convert(value))


def _messages_setter(name: str, inner: Fill) -> Fill:
    def fill_each(message: Any, value: Any) -> None:
        for one in value:
            inner(getattr(message, name).add(), _present(one))

    return fill_each


def _into_message(message: Any, value: Any, inner: Fill) -> None:
    message.SetInParent()  # a struct whose fields are all null is there all the same
    inner(message, value)


def _map_setter(name: str, value_field: Any) -> Fill:
    if value_field.message_type is not None:
        inner = _message_filler(value_field.message_type)

        def fill_messages(message: Any, value: Any) -> None:
            for key, one in value.items():
                _into_message(getattr(message, name)[key], _present(one), inner)

        return fill_messages
    convert = _converter(value_field)

    def fill_scalars(message: Any, value: Any) -> None:
        for key, one in value.items():
            getattr(message, name)[key] = convert(_present(one))

    return fill_scalars


def _message_filler(kind: Any) -> Fill:
    if kind.full_name == TIMESTAMP:
        return _into_timestamp
    if kind.full_name in WRAPPERS:
        return lambda message, value: setattr(message, "value", value)
    return _filler(kind)


def _into_timestamp(message: Any, micros: Any) -> None:
    if not isinstance(micros, int):
        message.FromDatetime(micros)
        return
    seconds, rest = divmod(micros, 1_000_000)
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        raise ValueError(
            f"{micros} microseconds since 1970 are outside the years 1 to 9999 (UTC), which a Timestamp has"
        )
    message.seconds, message.nanos = seconds, rest * 1000


def _converter(field: Any) -> Callable[[Any], Any]:
    if field.enum_type is None:
        return lambda value: value
    numbers = {name: value.number for name, value in field.enum_type.values_by_name.items()}

    def number_of(value: Any) -> Any:
        if isinstance(value, int):
            return value
        if value not in numbers:
            raise ValueError(f"{value!r} is no value of {field.enum_type.full_name}: {', '.join(numbers)}")
        return numbers[value]

    return number_of


def _present(value: Any) -> Any:
    if value is None:
        raise ValueError("null inside a repeated field, where Protobuf has no null")
    return value


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def check(encoder: ProtobufEncoder, kind: T.DataType, part: str) -> None:
    """Checks a column against the message, before any row is read.

    Raises:
        JobError: names the first field that does not fit, and the remedy.
    """
    found = next(_complaints(encoder.kind, kind, part), None)
    if found is not None:
        raise JobError(f"[{part}] {found}")


def _complaints(message: Any, kind: T.DataType, path: str) -> Iterator[str]:
    if not isinstance(kind, T.StructType):
        yield f"{path} is {kind.simpleString()}, but message {message.full_name} needs a struct: struct(a, b, ...)"
        return
    for column in kind.fields:
        field = message.fields_by_name.get(column.name)
        if field is None:
            have = ", ".join(message.fields_by_name)
            yield f"{path}.{column.name} is a column, but no field of message {message.full_name}. Fields: {have}"
        else:
            yield from _field_complaints(field, column.dataType, f"{path}.{column.name}")
    names = set(kind.fieldNames())
    for name, field in message.fields_by_name.items():
        if field.is_required and name not in names:
            yield f"{path}.{name} is required by message {message.full_name}, but no column"


def _field_complaints(field: Any, kind: T.DataType, path: str) -> Iterator[str]:
    if _is_map(field):
        entry = field.message_type.fields_by_name
        if isinstance(kind, T.MapType):
            yield from _one(entry["key"], kind.keyType, f"{path} (key)")
            yield from _one(entry["value"], kind.valueType, f"{path}[]")
        else:
            yield f"{path} is {kind.simpleString()}, but the field is a map"
    elif field.is_repeated:
        if isinstance(kind, T.ArrayType):
            yield from _one(field, kind.elementType, f"{path}[]")
        else:
            yield f"{path} is {kind.simpleString()}, but the field is repeated: array(...)"
    else:
        yield from _one(field, kind, path)


def _one(field: Any, kind: T.DataType, path: str) -> Iterator[str]:
    inner = field.message_type
    if inner is None:
        word = _word(field)
        if not isinstance(kind, COLUMNS.get(word, ())):
            yield f"{path} is {kind.simpleString()}, which does not fit {word.lower()}; cast the column"
    elif inner.full_name == TIMESTAMP:
        if not isinstance(kind, T.TimestampType):
            yield f"{path} is {kind.simpleString()}, but the field is a Timestamp: CAST(... AS TIMESTAMP)"
    elif inner.full_name in WRAPPERS:
        yield from _one(inner.fields_by_name["value"], kind, path)
    else:
        yield from _complaints(inner, kind, path)


def _word(field: Any) -> str:
    """The kind of a field, as COLUMNS has it."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    name: str = FieldDescriptorProto.Type.Name(field.type)
    return name.removeprefix("TYPE_")
