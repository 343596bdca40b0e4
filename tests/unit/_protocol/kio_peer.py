"""The independent other side: messages by the kio package, generated from Kafka's own definitions."""

from __future__ import annotations

import importlib
import io
from types import ModuleType
from typing import Any

from kio.serial import entity_reader, entity_writer


def schema(api: str, version: int, side: str) -> ModuleType:
    """``side`` is ``request`` or ``response``."""
    return importlib.import_module(f"kio.schema.{api}.v{version}.{side}")


def encode(message: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue()


def decode(kind: type[Any], payload: bytes) -> Any:
    """The message; fails if kio does not use up every byte."""
    message, size = entity_reader(kind)(payload, 0)
    assert size == len(payload), f"{len(payload) - size} bytes left over"
    return message


def make(module: ModuleType, kind_name: str, /, **fields: Any) -> Any:
    """An instance with those of ``fields`` that this version has."""
    kind = getattr(module, kind_name)
    return kind(**{key: value for key, value in fields.items() if key in kind.__dataclass_fields__})
