"""The interpreted twin of ``_tuples.pxd``."""

from __future__ import annotations

from typing import Any


def begin_tuple(kind: Any, size: int) -> list[Any]:
    return [None] * size


def put_item(begun: list[Any], at: int, item: Any) -> int:
    begun[at] = item
    return 0


def finished_tuple(kind: Any, begun: list[Any]) -> Any:
    return tuple.__new__(kind, begun)
