"""How many generated inputs a run tries: few are still some of each kind, and a wrong size is refused."""

from __future__ import annotations

import pytest

from tests.support.examples import FEWEST_CASES, FEWEST_EXAMPLES, VARIABLE, cases, examples, size, some_of_each


@pytest.mark.parametrize(
    ("asked", "of_hypothesis", "of_tables"),
    [
        ("small", [5, FEWEST_EXAMPLES, 60], [200, FEWEST_CASES, 1500]),
        ("whole", [5, 40, 300], [200, 1000, 30_000]),
        ("", [5, 40, 300], [200, 1000, 30_000]),
        ("long", [200, 1600, 12_000], [200, 1000, 30_000]),
    ],
)
def test_each_size(asked: str, of_hypothesis: list[int], of_tables: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, asked)
    assert [examples(whole) for whole in (5, 40, 300)] == of_hypothesis
    assert [cases(whole) for whole in (200, 1000, 30_000)] == of_tables


def test_another_size_is_refused_with_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "big")
    with pytest.raises(pytest.UsageError, match="^FOREBAY_EXAMPLES='big': it must be one of small, whole, long$"):
        size()


def test_some_of_each_kind_are_from_the_whole_table() -> None:
    found = some_of_each(range(100), lambda number: number == 70)
    assert 70 in found and 4 <= len(found) < 12
    assert min(found) == 0 and max(found) > 70
