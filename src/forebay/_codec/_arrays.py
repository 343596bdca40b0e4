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
