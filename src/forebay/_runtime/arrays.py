"""The interpreted twin of ``_arrays.pxd``: the same names on lists."""

from __future__ import annotations

from typing import Any


def new_addresses(count: int) -> list[Any]:
    return [b""] * count


def new_numbers(count: int) -> list[int]:
    return [0] * count


def drop_addresses(array: list[Any]) -> None:
    array.clear()


def drop_numbers(array: list[int]) -> None:
    array.clear()


def no_numbers() -> list[int]:
    return []


def more_numbers(array: list[int], had: int, count: int) -> list[int]:
    return [*array[:had], *[0] * (count - had)]


def no_objects() -> list[Any]:
    return []


def more_objects(array: list[Any], had: int, count: int) -> list[Any]:
    return [*array[:had], *[None] * (count - had)]


def put_object(array: list[Any], at: int, item: Any) -> None:
    array[at] = item


def object_at(array: list[Any], at: int) -> Any:
    return array[at]


def is_object_at(array: list[Any], at: int, item: Any) -> bool:
    return array[at] is item


def drop_objects(array: list[Any], count: int) -> None:
    array.clear()


def same_bytes(one: Any, other: Any, size: int) -> bool:
    return bytes(one[:size]) == bytes(other[:size])
