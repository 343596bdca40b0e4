"""Which tests a mutant meets, out of a map that is made up, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.tools.mutants.world import SMALL, MadeUpReach, mutant_of
from tools.mutants.stages import RUN_FACTOR, RUN_SLACK, by_cost, mirrors, of_first, of_rest, reaching, stages

POOL = "src/forebay/_accumulator/pool.py"
WRITER = "src/forebay/spark/writer.py"


def reach(lines: dict[int, set[str]], *more: str) -> Any:
    return MadeUpReach(lines, {test: 1.0 for found in [*lines.values(), set(more)] for test in found})


def test_any_line_of_its_statement_reaches_a_mutant() -> None:
    known = reach({1: {"a"}, 4: {"b"}, 5: {"c"}, 8: {"d"}})
    assert reaching(mutant_of(POOL, "boundary shifted"), known) == {"c", "d"}


def test_all_tests_of_a_module_reach_what_runs_at_import() -> None:
    known = reach({1: {"a"}, 4: {"b"}, 5: {"c"}})
    assert reaching(mutant_of(POOL, "number"), known) == {"a", "b", "c"}


def test_what_sparks_workers_may_run_is_for_all_tests_of_spark() -> None:
    known = reach({5: {"c"}}, "tests/spark/test_batch.py::test_rows", "tests/unit/spark/test_writer.py::test_rows")
    assert reaching(mutant_of(WRITER, "return", "def f(a):\n    return a\n"), known) == {
        "tests/spark/test_batch.py::test_rows"
    }
    assert reaching(mutant_of(POOL, "boundary shifted"), known) == {"c"}


def test_the_rest_runs_what_is_not_in_the_first_selection_and_generated_examples_again() -> None:
    generated = "tests/property/test_pool.py::test_pool"
    assert of_first(["a", "b"], {"a", "c"}) == {"a"}
    assert of_rest(["a", "b", "c", generated], {"a", generated}, {"a", "b", generated}) == {"b", generated}


@pytest.mark.parametrize(
    ("test", "path", "wanted"),
    [
        ("tests/unit/_accumulator/test_pool.py::test_a", POOL, True),
        ("tests/unit/_accumulator/test_pool_waking.py::test_a", POOL, True),
        ("tests/unit/_accumulator/test_pools.py::test_a", POOL, False),
        ("tests/scenario/test_pool.py::test_a", POOL, False),
        ("tests/unit/_network/test_io.py::test_a", "src/forebay/_network/_io.py", True),
    ],
)
def test_the_mirror_is_known_by_its_name(test: str, path: str, wanted: bool) -> None:
    assert mirrors(test, path) is wanted


def test_the_mirror_is_first_then_memory_then_brokers_then_spark() -> None:
    tests = [
        "tests/spark/test_batch.py::test_a",
        "tests/soak/test_faults.py::test_a",
        "tests/integration/test_tls.py::test_a",
        "tests/scenario/test_close.py::test_a",
        "tests/unit/_accumulator/test_pool.py::test_a",
    ]
    found = list(stages(POOL, tests, dict.fromkeys(tests, 1.0), SMALL))
    assert [list(stage.tests) for stage in found] == [[tests[4]], [tests[3]], [tests[2], tests[1]], [tests[0]]]
    assert [stage.in_memory for stage in found] == [True, True, False, False]
    assert found[2].limit == RUN_SLACK + RUN_FACTOR * 2
    assert all(stage.environment == SMALL.environment for stage in found)


def test_only_tests_in_memory_get_limits_of_their_own() -> None:
    tests = ["tests/unit/_accumulator/test_pool.py::test_a", "tests/integration/test_tls.py::test_a"]
    memory, brokers = stages(POOL, tests, {tests[0]: 2.0, tests[1]: 2.0}, SMALL)
    assert memory.tests == {tests[0]: 50.0}
    assert brokers.tests == {tests[1]: None}


def test_files_stay_together_and_the_cheapest_is_first() -> None:
    seconds = {"b.py::2": 1.0, "b.py::1": 1.0, "a.py::1": 3.0, "c.py::1": 0.5}
    assert by_cost(seconds, seconds) == ["c.py::1", "b.py::1", "b.py::2", "a.py::1"]
