"""The interpreted twin of ``_memory.pxd``: a bytearray is the memory, a memoryview the pointer to it."""

from __future__ import annotations

from typing import Any


def new_memory(size: int) -> Any:
    return memoryview(bytearray(size))


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
    """Whether the one reference that its caller has is the only one there is: here too many frames have one."""
    return False
