"""What every bench is to the harness: arguments, a measurement that gives one result, and tables of it.

A result is a plain dictionary as its JSON file has it.  ``figures`` has the same form in all of them, a label (a client
in one way of use) to a figure to median, lowest and highest, so that goals and plots read every bench alike.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bench.support import ChildFailed, Spread, machine, print_table, save
from tools.kafka import JarsUnavailable, KafkaFailed

Figures = dict[str, dict[str, Spread]]
Result = dict[str, Any]


class Part(NamedTuple):
    """One bench.  ``full`` and ``quick`` are its arguments in a run of the whole harness; ``quick`` None: not there."""

    name: str
    about: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    measure: Callable[[argparse.Namespace], Result]
    """Gives what ``result_of`` makes; raises ChildFailed, KafkaFailed or JarsUnavailable."""
    show: Callable[[Result], None]
    full: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = ()

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The options of this bench; prints its usage and exits where they make no sense."""
        parser = argparse.ArgumentParser(prog=f"python -m bench {self.name}", description=self.about)
        self.add_arguments(parser)
        return parser.parse_args(arguments)

    def run(self, arguments: Sequence[str], state: Mapping[str, Any] | None = None) -> Result:
        """Measures, prints, and keeps the result as JSON; ``state`` of the machine, if one waited for it, goes in."""
        options = self.parse(arguments)
        about = {**machine(), **(state or {})}
        result = {**self.measure(options), "machine": about, "settings": vars(options)}
        self.show(result)
        print(f"\nwritten to {save(result['name'], result)}", flush=True)
        return result

    def main(self, arguments: Sequence[str]) -> int:
        """``run`` as a command: 1 where something failed that the result names, or that kept it from being had."""
        try:
            result = self.run(arguments)
        except (ChildFailed, KafkaFailed, JarsUnavailable) as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
        return 1 if result.get("failed") else 0


def result_of(name: str, runs: Sequence[Mapping[str, Any]], **more: Any) -> Result:
    """A result: the runs, and the figures they come to.

    A run has its ``label`` and numbers; what is neither (lists, texts) is kept with the run alone.
    """
    return {"name": name, "figures": figures_of(runs), "runs": list(runs), **more}


def figures_of(runs: Iterable[Mapping[str, Any]]) -> Figures:
    """Median, lowest and highest of every number, by label, in the order of their first run."""
    values: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        mine = values.setdefault(run["label"], {})
        for name, value in run.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                mine.setdefault(name, []).append(value)
    return {label: {name: Spread.of(found) for name, found in by_name.items()} for label, by_name in values.items()}


class Column(NamedTuple):
    """One column of a table: its head, the figure in it, how it is written, and what it is multiplied with."""

    head: str
    figure: str
    layout: str = ".2f"
    factor: float = 1.0


def print_figures(result: Mapping[str, Any], columns: Sequence[Column], first: str = "client") -> None:
    """A row a label, ``median (lowest-highest)`` in each cell; empty where a label has no such figure."""
    rows = []
    for label, found in result["figures"].items():
        cells = [Spread(*found[column.figure]).times(column.factor).text(column.layout)
                 if column.figure in found else "" for column in columns]  # fmt: skip
        rows.append((label, *cells))
    print_table((first, *(column.head for column in columns)), rows)


def add_rounds(parser: argparse.ArgumentParser, default: int = 5) -> None:
    """``--rounds``, which every bench has."""
    parser.add_argument("--rounds", type=int, default=default, help="runs of each (default: %(default)s)")


def add_sink(parser: argparse.ArgumentParser) -> None:
    """``--sink`` of the benches whose default is a real broker."""
    parser.add_argument("--sink", action="store_true", help="against a sink that only acknowledges")


def turned(things: Sequence[Any], by: int) -> list[Any]:
    """The same things, with another first one in each round, so that none always runs first or after the same one."""
    at = by % len(things) if things else 0
    return [*things[at:], *things[:at]]
