"""The interpreted twin of ``_mover.pxd``: no thread, because interpreted code never waits for the GIL alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from forebay._network._io import Bank

MoverPointer: TypeAlias = int


def new_mover(move: Callable[[Bank], int], bank: Bank) -> MoverPointer:
    return 0


def ask_mover(mover: MoverPointer) -> None:
    pass


def end_mover(mover: MoverPointer) -> None:
    pass


def no_mover() -> MoverPointer:
    return 0
