"""A descriptor as protoc writes it, for ``import "common.proto"`` and two messages; made without protoc."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2 as d
from google.protobuf import timestamp_pb2, wrappers_pb2

F: Any = d.FieldDescriptorProto
PACKAGE = "demo.flights"


def _field(message: Any, name: str, kind: Any, type_name: str | None = None, label: Any = 1) -> None:
    number = len(message.field) + 1
    message.field.add(name=name, number=number, type=kind, type_name=type_name, label=label, json_name=name)


def _map(message: Any, name: str, value: Any) -> None:
    entry = message.nested_type.add(name=f"{name.title()}Entry")
    entry.options.map_entry = True
    _field(entry, "key", F.TYPE_STRING)
    _field(entry, "value", value)
    _field(message, name, F.TYPE_MESSAGE, f".{PACKAGE}.{message.name}.{name.title()}Entry", 3)


def descriptor() -> bytes:
    """A serialized FileDescriptorSet; ``Flight`` is the second message, ``Flight.Leg`` the first inside it."""
    common = d.FileDescriptorProto(name="common.proto", package=PACKAGE, syntax="proto3")
    kind = common.enum_type.add(name="Kind")
    kind.value.add(name="UNKNOWN", number=0)
    kind.value.add(name="PASSENGER", number=1)
    file = d.FileDescriptorProto(name="flight.proto", package=PACKAGE, syntax="proto3")
    file.dependency.extend(["common.proto", "google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"])
    file.message_type.add(name="Other")
    flight = file.message_type.add(name="Flight")
    leg = flight.nested_type.add(name="Leg")
    _field(leg, "miles", F.TYPE_INT32)
    _field(flight, "carrier", F.TYPE_STRING)
    _field(flight, "number", F.TYPE_INT64)
    _field(flight, "seats", F.TYPE_UINT32)
    _field(flight, "late", F.TYPE_BOOL)
    _field(flight, "raw", F.TYPE_BYTES)
    _field(flight, "speed", F.TYPE_DOUBLE)
    _field(flight, "at", F.TYPE_MESSAGE, ".google.protobuf.Timestamp")
    _field(flight, "gate", F.TYPE_MESSAGE, ".google.protobuf.StringValue")
    _field(flight, "kind", F.TYPE_ENUM, f".{PACKAGE}.Kind")
    _field(flight, "leg", F.TYPE_MESSAGE, f".{PACKAGE}.Flight.Leg")
    _field(flight, "legs", F.TYPE_MESSAGE, f".{PACKAGE}.Flight.Leg", 3)
    _field(flight, "tags", F.TYPE_STRING, label=3)
    _map(flight, "sizes", F.TYPE_INT32)
    own = [d.FileDescriptorProto.FromString(one.DESCRIPTOR.serialized_pb) for one in (timestamp_pb2, wrappers_pb2)]
    data: bytes = d.FileDescriptorSet(file=[*own, common, file]).SerializeToString()
    return data
