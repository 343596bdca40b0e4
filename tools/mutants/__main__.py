"""``python -m tools.mutants``: makes seeded mutants, runs the tests that reach them, and says what found each."""

from __future__ import annotations

import argparse
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from tools.mutants import report
from tools.mutants.choice import Mutant, choose
from tools.mutants.copies import Copy
from tools.mutants.judge import killed
from tools.mutants.reach import Reach, Selection, TestsFailed, home, make, parts, selected
from tools.mutants.report import FIRST, REST, SURVIVED, UNREACHED, Result, Results
from tools.mutants.stages import of_first, of_rest, reaching, stages

ROOT = Path(__file__).parents[2]
# What takes longest under coverage comes first, for several jobs.
EVERY = "tests/unit tests/integration tests/spark tests/property tests/scenario tests/conformance tests/soak"
# pytest refuses a marker here that pyproject.toml does not name.
FIRST_TESTS = f"-m 'not rest' {EVERY}"
FIRST_ENVIRONMENT = ["FOREBAY_EXAMPLES=small"]
REST_ENVIRONMENT = ["FOREBAY_EXAMPLES=whole"]


class Tests(NamedTuple):
    """All that is known of the tests."""

    first: Selection
    rest: Selection
    of_first: set[str]
    of_rest: set[str]
    reach: Reach


class Copies:
    """A copy for each job, handed out and taken back."""

    def __init__(self, root: Path, folder: Path, jobs: int) -> None:
        self._free: SimpleQueue[Copy] = SimpleQueue()
        self._all = [Copy(root, folder / f"copy-{job}") for job in range(jobs)]
        for copy in self._all:
            self._free.put(copy)

    @contextmanager
    def one(self) -> Iterator[Copy]:
        copy = self._free.get()
        try:
            yield copy
        finally:
            self._free.put(copy)

    @contextmanager
    def stopped_early(self, pool: ThreadPoolExecutor) -> Iterator[None]:
        """On Ctrl-C, or an error, nothing is begun any more and what runs is ended."""
        try:
            yield
        except BaseException:
            # A second Ctrl-C would leave the runs without anybody who ends them.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            pool.shutdown(wait=False, cancel_futures=True)
            for copy in self._all:
                copy.stop()
            raise


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="how many mutants (100)")
    parser.add_argument("--seed", type=int, default=1, help="another seed gives other mutants (1)")
    parser.add_argument("--jobs", type=int, default=2, help="how many run side by side (2)")
    parser.add_argument("--resume", action="store_true", help="keep the results of an interrupted run, and go on")
    parser.add_argument("--list", action="store_true", help="print the mutants, and run nothing")
    parser.add_argument("--only", default="", metavar="TEXT", help="only mutants whose name contains this")
    parser.add_argument("--first", default=FIRST_TESTS, help="pytest's arguments of the first selection")
    parser.add_argument("--first-env", nargs="*", default=FIRST_ENVIRONMENT, metavar="NAME=VALUE")
    parser.add_argument("--rest", default=EVERY, help="pytest's arguments of the rest; it may contain the first")
    parser.add_argument("--rest-env", nargs="*", default=REST_ENVIRONMENT, metavar="NAME=VALUE")
    return parser.parse_args()


def selection(name: str, told: str, environment: Iterable[str]) -> Selection:
    """A selection out of what the command line says."""
    pairs = (entry.partition("=") for entry in environment)
    return Selection(name, tuple(shlex.split(told)), {key: value for key, _, value in pairs})


def learn(options: argparse.Namespace, folder: Path, copies: Copies, pool: ThreadPoolExecutor) -> Tests:
    """Selects the tests, and runs them under coverage if that was not done for this commit."""
    first = selection("make test", options.first, options.first_env)
    rest = selection("the rest", options.rest, options.rest_env)
    with copies.one() as copy:
        names = [selected(copy, folder, each) for each in (first, rest)]
    wanted = parts([*first.paths(ROOT), *rest.paths(ROOT)])

    def run(part: str) -> None:
        began = time.monotonic()
        with copies.one() as copy:
            make(copy, folder, part, first.environment)  # all inputs would take hours, and reach the same lines
        print(f"which lines {part} reaches: {time.monotonic() - began:.0f} s", flush=True)

    list(pool.map(run, wanted))
    return Tests(first, rest, names[0], names[1], Reach(folder, wanted))


def judge(mutant: Mutant, tests: Tests, reached: set[str], copy: Copy) -> Result:
    """One mutant's fate."""
    began = time.monotonic()
    turns = (
        (FIRST, tests.first, of_first(reached, tests.of_first)),
        (REST, tests.rest, of_rest(reached, tests.of_first, tests.of_rest)),
    )
    outcome, kill = SURVIVED if any(turn[2] for turn in turns) else UNREACHED, None
    for name, chosen, names in turns:
        kill = killed(copy, mutant, stages(mutant.path, names, tests.reach.seconds, chosen))
        if kill is not None:
            outcome = name
            break
    count, seconds = len(turns[0][2] | turns[1][2]), round(time.monotonic() - began, 1)
    test, how = kill or ("", "")
    return Result(mutant.name, mutant.room, outcome, test, how, count, seconds)


def run(options: argparse.Namespace, mutants: list[Mutant]) -> int:
    """Runs them, and prints the table."""
    folder = home(ROOT)
    results = Results(folder / f"results-{options.seed}.jsonl", options.resume)
    with tempfile.TemporaryDirectory(prefix="mutants-") as place, ThreadPoolExecutor(options.jobs) as pool:
        copies = Copies(ROOT, Path(place), options.jobs)
        with copies.stopped_early(pool):
            tests = learn(options, folder, copies, pool)
            judge_all([mutant for mutant in mutants if mutant.name not in results.known], tests, copies, pool, results)
    found = [results.known[mutant.name] for mutant in mutants]
    print("", *report.table(found, (tests.first.name, tests.rest.name)), sep="\n")
    return 0 if report.is_sharp(found) else 1


def judge_all(mutants: list[Mutant], tests: Tests, copies: Copies, pool: ThreadPoolExecutor, results: Results) -> None:
    """Adds each one's fate to the results, as soon as it is known."""

    def one(mutant: Mutant, reached: set[str]) -> Result:
        with copies.one() as copy:
            return judge(mutant, tests, reached, copy)

    # coverage's data is read on this thread alone: its connection is of one thread.
    futures = [pool.submit(one, mutant, reaching(mutant, tests.reach)) for mutant in mutants]
    for number, future in enumerate(as_completed(futures), 1):
        results.add(future.result())
        print(f"{number}/{len(futures)} {report.line(future.result())}", flush=True)


def main() -> int:
    options = arguments()
    mutants = [mutant for mutant in choose(ROOT, options.seed, options.count) if options.only in mutant.name]
    if options.list:
        print(*(mutant.name for mutant in mutants), sep="\n")
        return 0
    command = ["git", "status", "--porcelain", "--", "src", "tests", "tools", "pyproject.toml"]
    if subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout:
        print(
            "Mutants are of the last commit: commit, or put away, what changed in src, tests and tools", file=sys.stderr
        )
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run(options, mutants)
    except TestsFailed as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; --resume goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
