"""Plain arrays: the interpreted twin, and that it has the names of the compiled form.

The compiled form is tried where it is used, in windows of rows (``tests/unit/_records/test_rows.py``).
"""

from __future__ import annotations

import re
from pathlib import Path

from forebay._runtime import memory as _arrays
from tests.support.forms import declarations_of


def test_arrays_are_as_long_as_asked_and_hold_what_is_written() -> None:
    numbers, addresses = _arrays.new_numbers(3), _arrays.new_addresses(2)
    numbers[2] = -(2**63)
    addresses[1] = b"cell"
    assert (len(numbers), numbers[2], len(addresses), addresses[1]) == (3, -(2**63), 2, b"cell")
    assert _arrays.new_numbers(0) == _arrays.new_addresses(0) == []


def test_a_dropped_array_holds_nothing() -> None:
    numbers, addresses = _arrays.new_numbers(3), _arrays.new_addresses(2)
    _arrays.drop_numbers(numbers)
    _arrays.drop_addresses(addresses)
    assert numbers == addresses == []


def test_objects_and_numbers_grow() -> None:
    numbers = _arrays.more_numbers(_arrays.no_numbers(), 0, 2)
    numbers[1] = 7
    assert _arrays.more_numbers(numbers, 2, 4)[:2] == [0, 7]
    objects = _arrays.more_objects(_arrays.no_objects(), 0, 1)
    _arrays.put_object(objects, 0, numbers)
    objects = _arrays.more_objects(objects, 1, 3)
    assert _arrays.object_at(objects, 0) is numbers and _arrays.is_object_at(objects, 0, numbers)
    _arrays.drop_objects(objects, 1)
    assert objects == []


def test_both_forms_have_the_same_names() -> None:
    declared = declarations_of(_arrays)
    functions = re.findall(r"^def (\w+)", Path(_arrays.__file__ or "").with_suffix(".py").read_text(), re.MULTILINE)
    compiled = re.findall(r"^cdef inline .*?(\w+)\(", declared, re.MULTILINE)
    # These two are C.
    assert sorted(functions) == sorted([*compiled, "is_unshared", "put_item"])
    assert "bint is_unshared " in declared and "void put_item " in declared
