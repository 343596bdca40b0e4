"""Mutants and selections that the tests make up."""

from __future__ import annotations

from collections.abc import Mapping

from tools.mutants.choice import Mutant
from tools.mutants.operators import changes
from tools.mutants.reach import Selection

SMALL = Selection("make test", ("tests",), {"FOREBAY_EXAMPLES": "small"})
TEXT = """LIMIT = 3


def is_more(count):
    return (
        count >
        LIMIT
    )
"""


def mutant_of(path: str, operator: str, text: str = TEXT) -> Mutant:
    """The first mutant of a module's text that has this operator."""
    return Mutant("core", path, next(change for change in changes(text) if change.operator == operator))


class MadeUpReach:
    """The tests that reach each line of one module, as ``Reach`` tells them."""

    def __init__(self, lines: Mapping[int, set[str]], seconds: Mapping[str, float]) -> None:
        self.lines = lines
        self.seconds = seconds

    def tests(self, path: str, lines: range | None) -> set[str]:
        return {test for line, found in self.lines.items() if lines is None or line in lines for test in found}
