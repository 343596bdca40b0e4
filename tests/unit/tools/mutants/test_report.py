"""Results and their table."""

from __future__ import annotations

from pathlib import Path

from tools.mutants.report import FIRST, MOST_OF_REST, REST, SURVIVED, UNREACHED, Result, Results, is_sharp, table

NAMES = ("make test", "the rest")


def result(name: str, outcome: str, room: str = "core") -> Result:
    test = "tests/unit/test_a.py::test_a" if outcome in (FIRST, REST) else ""
    return Result(name, room, outcome, test, "failure" if test else "", 7, 1.5)


def test_a_run_that_is_resumed_knows_what_was_found_and_another_begins_anew(tmp_path: Path) -> None:
    place = tmp_path / "results.jsonl"
    results = Results(place, resume=False)
    results.add(result("a", FIRST))
    results.add(result("b", SURVIVED))
    assert Results(place, resume=True).known == results.known
    assert Results(place, resume=False).known == {} == Results(place, resume=True).known


def test_the_table_counts_by_room_and_names_what_the_first_tests_did_not_find() -> None:
    found = [result("a", FIRST), result("b", REST, "spark"), result("c", SURVIVED), result("d", UNREACHED)]
    lines = list(table(found, NAMES))
    rows = {line.split()[0]: line.split()[1:] for line in lines[1:6]}
    assert rows["core"] == ["3", "1", "0", "1", "1"]
    assert rows["spark"] == ["1", "0", "1", "0", "0"]
    assert rows["all"] == ["4", "1", "1", "1", "1"]
    assert lines[6:8] == ["\nfound by: failure 2", "seconds for a mutant: 2 (median), 2 (most)"]
    named = [line for line in lines[6:] if line.startswith("  ")]
    assert [line.split()[1].rstrip(",") for line in named] == ["b", "c", "d"]
    assert "by tests/unit/test_a.py::test_a (failure)" in named[0]


def test_three_may_be_found_by_the_rest_alone_and_no_more() -> None:
    of_rest = [result(str(number), REST) for number in range(MOST_OF_REST + 1)]
    assert is_sharp(of_rest[1:])
    assert not is_sharp(of_rest)
