"""What no mutant touches."""

from __future__ import annotations

import pytest

from tools.mutants.operators import changes


@pytest.mark.parametrize(
    "text",
    [
        '"""The 2 forms."""\n',
        "import cython\n",
        "if cython.compiled:\n    LIMIT = 1\nelse:\n    LIMIT = 2\n",
        "if not cython.compiled:\n    LIMIT = 1\n",
        "if TYPE_CHECKING:\n    LIMIT = 1\n",
        "from typing import Any\nTYPE_CHECKING = False\n",
        "LIMIT = one if cython.compiled else 2\n",
        "LIMIT: Literal[1, 2]\n",
        "def find(place: Literal[1, 2]) -> Literal[1, 2]: ...\n",
        "@cython.exceptval(-1)\n@cython.freelist(8)\ndef find(): ...\n",
        "WORDS = cython.declare(cython.array(7), words)\n",
        "WORDS = cython.sizeof(places[1])\n",
        "Chunk = bytes | memoryview\n",
        "Found = Topic | None\n",
        "TEXT = f'{count + 1} records'\n",
        "raise KafkaError(f'{count} of', count + 1)\n",
        "log.warning('%d more', count + 1)\n",
        "self._log.debug('%d more', count + 1)\n",
        "def __repr__(self):\n    return self.text(1)\n",
        "__all__ = [*names, 1]\n",
    ],
)
def test_what_is_of_one_form_about_types_or_for_readers_stays(text: str) -> None:
    assert changes(text) == []


def test_the_value_of_a_declaration_is_changed() -> None:
    (change,) = changes("LIMIT = cython.declare(cython.int[2], 7)\n")
    assert (change.before, change.after) == ("7", "8")


def test_a_call_that_only_looks_like_a_log_line_is_changed() -> None:
    assert [change.operator for change in changes("def f(self):\n    self.changelog.error(self)\n")] == ["deleted"]


def test_what_tells_c_that_nothing_was_raised_stays_and_an_answer_does_not() -> None:
    status = "@cython.cfunc\n@cython.exceptval(-1)\ndef f(self):\n    if self.closed:\n        return 0\n    return 0\n"
    assert [change.operator for change in changes(status)] == ["condition negated"]
    answer = status.replace("        return 0", "        return 1")
    assert {change.operator for change in changes(answer)} == {"condition negated", "number", "return"}


def test_a_place_knows_the_lines_of_its_statement_and_whether_it_runs_at_import() -> None:
    text = "LIMIT = 1\n\ndef f(x, most=2):\n    if (\n        x and\n        most\n    ):\n        go(x)\n"
    found = {change.operator: change.place for change in changes(text)}
    assert (found["and/or"].first, found["and/or"].last, found["and/or"].at_import) == (4, 6, False)
    assert (found["deleted"].first, found["deleted"].last) == (8, 8)
    numbers = [change.place for change in changes(text) if change.operator == "number"]
    assert [(place.first, place.at_import) for place in numbers] == [(1, True), (3, True)]
