"""The interpreted twin of ``memory.pxd``: bytearrays with memoryviews as pointers, and lists as arrays."""

from __future__ import annotations

from typing import Any


def new_memory(size: int) -> Any:
    return memoryview(bytearray(size))


def resized_memory(memory: Any, had: int, size: int) -> Any:
    return memoryview(bytearray(memory[:had]) + bytes(size - had))


def free_memory(memory: Any) -> None:
    """Nothing to do: the last reference frees it."""


def show_memory(view: Any, owner: Any, memory: Any, size: int, flags: int) -> int:
    raise TypeError("only types made in C export a buffer by __getbuffer__; whole_view shows the memory here")


def whole_view(owner: Any, memory: Any) -> memoryview:
    view: memoryview = memory
    return view


def new_bytearray(size: int) -> bytearray:
    return bytearray(size)


def is_unshared(item: object) -> bool:
    """Whether the caller has the only reference.  Always False here, because interpreted frames hold more of them."""
    return False


def put_item(whole: tuple[Any, ...], at: int, item: object) -> None:
    raise TypeError("interpreted, no tuple is known to be unshared")


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


def drop_object(array: list[Any], at: int) -> None:
    array[at] = None


def is_object_at(array: list[Any], at: int, item: Any) -> bool:
    return array[at] is item


def drop_objects(array: list[Any], count: int) -> None:
    array.clear()


def same_bytes(one: Any, other: Any, size: int) -> bool:
    return bytes(one[:size]) == bytes(other[:size])
