"""In which order a mutant meets the tests that reach its line: what is cheap and near first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tools.mutants.choice import PACKAGE, Mutant
from tools.mutants.plugin import file_of
from tools.mutants.reach import Reach, Selection

SPARK = "tests/spark/"
"""Spark's workers are other processes, so coverage does not see what they run of the sink."""
SINK = f"{PACKAGE}/spark/"
WITH_BROKERS = ("tests/integration/", "tests/soak/")
GENERATED = (
    "tests/conformance/test_selector_contract.py",
    "tests/integration/test_aio.py",
    "tests/property/",
    "tests/scenario/test_bad_bytes.py",
    "tests/scenario/test_error_matrix_transactional.py",
    "tests/unit/_network/test_tls.py",
    "tests/unit/_records/",
    "tests/unit/_transactions/test_model.py",
)
"""Where tests are ``sized``, so that they have more examples, or others, in the rest: it runs them again."""

TEST_FACTOR, TEST_SLACK = 10, 30
"""A test in memory may take this many times its usual time, and these seconds, before it counts as hanging."""
RUN_FACTOR, RUN_SLACK = 5, 300
"""The same for a whole run; a fresh run starts brokers and Spark sessions anew."""


class Stage(NamedTuple):
    """Tests for one run of pytest."""

    tests: dict[str, float | None]
    """In their order, with each one's time limit in seconds (None: pytest's own)."""
    environment: Mapping[str, str]
    limit: float
    """For the whole run, in seconds."""
    in_memory: bool
    """Its tests have neither brokers nor sockets, so they fail for the mutant's sake alone."""


def reaching(mutant: Mutant, reach: Reach) -> set[str]:
    """The tests that reach a mutant, and Spark's for the sink.

    What runs at import shows only under the test that imports first, so all tests of the module count for it.
    """
    place = mutant.change.place
    found = reach.tests(mutant.path, None if place.at_import else range(place.first, place.last + 1))
    if mutant.path.startswith(SINK):
        found |= {test for test in reach.seconds if test.startswith(SPARK)}
    return found


def of_first(tests: Collection[str], first: Collection[str]) -> set[str]:
    """Those that the first selection runs."""
    return set(tests) & set(first)


def of_rest(tests: Collection[str], first: Collection[str], rest: Collection[str]) -> set[str]:
    """Those that only the rest runs, and those that it runs with other examples."""
    return {test for test in set(tests) & set(rest) if test not in first or test.startswith(GENERATED)}


def stages(path: str, tests: Iterable[str], seconds: Mapping[str, float], selection: Selection) -> Iterator[Stage]:
    """The runs for a mutant of this module: the tests that mirror it, others in memory, with brokers, with Spark."""
    kinds: dict[int, list[str]] = defaultdict(list)
    for test in tests:
        kinds[_kind(path, test)].append(test)
    for kind, found in sorted(kinds.items()):
        in_memory = kind < 2
        limits = {test: seconds[test] * TEST_FACTOR + TEST_SLACK if in_memory else None for test in found}
        ordered = {test: limits[test] for test in by_cost(found, seconds)}
        whole = RUN_SLACK + RUN_FACTOR * sum(seconds[test] for test in found)
        yield Stage(ordered, selection.environment, whole, in_memory)


def _kind(path: str, test: str) -> int:
    if mirrors(test, path):
        return 0
    return 3 if test.startswith(SPARK) else 2 if test.startswith(WITH_BROKERS) else 1


def mirrors(test: str, path: str) -> bool:
    """Whether a test stands in a file that mirrors this module, or goes on with its tests."""
    module = Path(path).relative_to(PACKAGE)
    mirror = Path("tests/unit") / module.with_name(f"test_{module.stem.lstrip('_')}")
    return file_of(test) == f"{mirror}.py" or file_of(test).startswith(f"{mirror}_")


def by_cost(tests: Iterable[str], seconds: Mapping[str, float]) -> list[str]:
    """Tests file by file, because a file's tests share fixtures; the file that takes least comes first."""
    files: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests):
        files[file_of(test)].append(test)
    cost = {file: sum(seconds[test] for test in found) for file, found in files.items()}
    return [test for file in sorted(files, key=lambda name: (cost[name], name)) for test in files[file]]
