"""Counts the rooms of the package and the ways between them: ``python -m tools.house [--check]``.

A room is a child of ``src/forebay``, a folder or a module.  An arrow leads from a room to another one that it imports.
A floor is the longest way down.  All imports count: ``cimport``, a ``.pxd``, for types alone, or inside a function.
An edge is one file's use of another; a hidden edge is a ``cimport`` alone, which editors and type checkers do not see.

A circle is a group of files that import each other: none of them can be read or tested without the others.  ``--check``
counts nothing, it only refuses circles.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PACKAGE = "forebay"
CIMPORTS = "cython.cimports."
PXD = re.compile(
    rf"^[ \t]*(?:from\s+({PACKAGE}[\w.]*)\s+cimport\s+(\([^)]*\)|.+)|cimport\s+({PACKAGE}[\w.]*))", re.MULTILINE
)
LONGEST = 10

Graph = Mapping[str, set[str]]


class House(NamedTuple):
    """Every file's imports: those that are visible, and those that only Cython sees."""

    files: Mapping[str, Path]
    seen: Graph
    hidden: Graph

    def edges(self) -> dict[str, set[str]]:
        return {name: self.seen[name] | self.hidden[name] for name in self.files}


def modules(source: Path) -> dict[str, Path]:
    """Each module of the package by its name."""
    found = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def named(files: Mapping[str, Path], base: str, name: str) -> str:
    """The module that ``from base import name`` uses: ``base.name`` if that is one, else the nearest one above."""
    whole = f"{base}.{name}" if name else base
    while whole and whole not in files:
        whole = whole.rpartition(".")[0]
    return whole


def imported(tree: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    """(module, name) of each import, relative ones made absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            yield from ((base, alias.name) for alias in node.names)


def cimported(text: str) -> Iterator[tuple[str, str]]:
    """(module, name) of each ``cimport`` of a ``.pxd``."""
    for match in PXD.finditer(text):
        if match[3]:
            yield match[3], ""
        else:
            names = re.sub(r"#.*", "", match[2]).strip("() \n").split(",")
            yield from ((match[1], name.split()[0]) for name in names if name.strip())


def read(source: Path) -> House:
    """The imports of the package below ``source``."""
    files = modules(source)
    seen: dict[str, set[str]] = {}
    hidden: dict[str, set[str]] = {}
    for module, path in files.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        plain = list(imported(ast.parse(path.read_text(encoding="utf-8")), package))
        # A folder's own files do not stand on its `__init__`, which imports nothing that they need.
        apart = {module, ""}
        seen[module] = {named(files, *pair) for pair in plain if pair[0].split(".")[0] == PACKAGE} - apart
        only = [(base.removeprefix(CIMPORTS), name) for base, name in plain if base.startswith(CIMPORTS + PACKAGE)]
        pxd = path.with_suffix(".pxd")
        only += cimported(pxd.read_text(encoding="utf-8")) if pxd.exists() else ()
        hidden[module] = {named(files, *pair) for pair in only} - apart - seen[module]
    return House(files, seen, hidden)


def components(graph: Graph) -> Iterator[set[str]]:
    """The groups of nodes that reach each other, lower groups first."""
    reached = {node: reach(graph, node) for node in graph}
    done: set[str] = set()
    for node in sorted(graph, key=lambda each: len(reached[each])):
        if node not in done:
            group = {node} | {other for other in reached[node] if other in reached and node in reached[other]}
            done |= group
            yield group


def reach(graph: Graph, start: str) -> set[str]:
    """What can be reached from a node by one arrow or more."""
    found: set[str] = set()
    left = list(graph.get(start, ()))
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left.extend(graph.get(node, ()))
    return found


def circles(house: House) -> list[list[str]]:
    """Groups of files that import each other.

    A package's ``__init__`` offers what its folder has, so any of its files may be on a circle with it: it is left out.
    """
    inner = {name for name, path in house.files.items() if path.name != "__init__.py"}
    graph = {name: targets & inner for name, targets in house.edges().items() if name in inner}
    return sorted(sorted(group) for group in components(graph) if len(group) > 1)


def rooms(house: House) -> dict[str, set[str]]:
    """Each room's arrows."""
    arrows: dict[str, set[str]] = {}
    for name, targets in house.edges().items():
        if "." in name:
            room = name.split(".")[1]
            arrows.setdefault(room, set()).update(target.split(".")[1] for target in targets if "." in target)
            arrows[room].discard(room)
    return arrows


def floors(arrows: Graph) -> dict[str, int]:
    """The floor of each room; rooms that reach each other have one together."""
    floor: dict[str, int] = {}
    for group in components(arrows):
        below = {target for room in group for target in arrows[room]} - group
        floor.update(dict.fromkeys(group, 1 + max((floor[room] for room in below), default=0)))
    return floor


def lines_of_code(path: Path) -> int:
    """A file's lines without empty ones, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    taken: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            taken |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") and at not in taken for at, line in lines)


def described(house: House) -> Iterator[str]:
    """What is counted, the rooms from the top down, and the longest files."""
    arrows = rooms(house)
    floor = floors(arrows)
    hidden = sum(map(len, house.hidden.values()))
    edges = sum(map(len, house.edges().values()))
    yield f"{len(arrows)} rooms, {max(floor.values())} floors, {sum(map(len, arrows.values()))} arrows"
    yield f"{len(house.files)} files, {edges} edges, {hidden} of them hidden, {len(circles(house))} circles"
    for level in sorted(set(floor.values()), reverse=True):
        yield f"{level:3} {', '.join(sorted(room for room in floor if floor[room] == level))}"
    sizes = sorted(((lines_of_code(path), name) for name, path in house.files.items()), reverse=True)
    yield f"{sum(size for size, _ in sizes)} lines of code without comments and docstrings; the longest files:"
    yield from (f"{size:5} {name}" for size, name in sizes[:LONGEST])


def refused(house: House) -> Iterator[str]:
    """Each circle between files."""
    for circle in circles(house):
        yield f"these files import each other: {', '.join(circle)}; move what both need into a file below them"


def main(arguments: Iterable[str]) -> int:
    house = read(Path(__file__).parents[1] / "src")
    complaints = list(refused(house))
    if list(arguments) != ["--check"]:
        print("\n".join(described(house)))
    print("\n".join(complaints) if complaints else "files: none import each other")
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
