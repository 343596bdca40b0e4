"""The interpreted twin of ``_due_heap.pxd``: the same names on a list."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

DueEntry = tuple[float, int, Any]


def no_entries() -> list[DueEntry]:
    return []


def more_entries(heap: list[DueEntry], count: int) -> list[DueEntry]:
    return heap


def drop_entries(heap: list[DueEntry], count: int) -> None:
    heap.clear()


def put_entry(heap: list[DueEntry], count: int, due: float, number: int, item: Any) -> None:
    heappush(heap, (due, number, item))


def take_entry(heap: list[DueEntry], count: int) -> None:
    heappop(heap)


def first_due(heap: list[DueEntry]) -> float:
    return heap[0][0]


def first_item(heap: list[DueEntry]) -> Any:
    return heap[0][2]


def item_at(heap: list[DueEntry], at: int) -> Any:
    return heap[at][2]


def entry_count(heap: list[DueEntry], count: int) -> int:
    # Ctrl-C may have come between a step here and the counting of it.
    return len(heap)
