"""The heap of what is due: the interpreted twin, and that it has the names of the compiled form.

The compiled form is tried where it is used (``tests/unit/_accumulator/test_parking.py``).
"""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from forebay._codec import _due_heap


@given(st.lists(st.integers(0, 9)))
def test_what_is_due_first_comes_first_and_of_the_same_time_what_came_first(dues: list[int]) -> None:
    heap = _due_heap.no_entries()
    for number, due in enumerate(dues):
        heap = _due_heap.more_entries(heap, number + 1)
        _due_heap.put_entry(heap, number, float(due), number, str(number))
    assert sorted(_due_heap.item_at(heap, at) for at in range(len(dues))) == sorted(map(str, range(len(dues))))
    taken = []
    for left in range(len(dues), 0, -1):
        taken.append((_due_heap.first_due(heap), int(_due_heap.first_item(heap))))
        _due_heap.take_entry(heap, left)
    assert taken == sorted((float(due), number) for number, due in enumerate(dues))


def test_a_dropped_heap_holds_nothing() -> None:
    heap = _due_heap.no_entries()
    _due_heap.put_entry(heap, 0, 1.0, 1, "one")
    _due_heap.drop_entries(heap, 1)
    assert heap == []


def test_both_forms_have_the_same_names() -> None:
    source = Path(_due_heap.__file__ or "")
    functions = re.findall(r"^def (\w+)", source.with_suffix(".py").read_text(), re.MULTILINE)
    compiled = re.findall(r"^cdef inline .*?(\w+)\(", source.with_suffix(".pxd").read_text(), re.MULTILINE)
    assert sorted(functions) == sorted(name for name in compiled if not name.startswith("_")) != []
