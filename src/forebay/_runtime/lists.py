"""The interpreted twin of ``_lists.pxd``: a list's own calls."""

from __future__ import annotations

from typing import Any


def put_item(items: list[Any], item: object) -> int:
    """Appends it."""
    items.append(item)
    return 0


def take_item(items: list[Any], at: int) -> Any:
    """Takes the item out that stands there; ``at`` is not negative.

    Raises:
        IndexError: there is none.
    """
    if at < 0:
        raise IndexError("no such item to take")
    return items.pop(at)
