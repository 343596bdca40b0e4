"""The tables that say which test covers which check of the Java producer's own tests: every word of them is true."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[1]
TABLES = sorted(TESTS.glob("java_checks_*.md"))
# What may stand instead of a test: the thing cannot exist here, and the row says why.
EXCUSE = "n/a: "
# The inventory's.
SECTIONS = "ABCDEFGHIJKLMNO"
JAVA_NAME = re.compile(r"\b[a-z]+[A-Z]\w+")


class Row(NamedTuple):
    """One line of a table."""

    table: str
    section: str
    check: str
    covered: str

    @property
    def place(self) -> str:
        return f"{self.table}, {self.section}: {self.check}"

    @property
    def references(self) -> list[tuple[str, str]]:
        """File below tests/, and name in it or nothing; ``::name`` alone goes on with the file before."""
        found: list[tuple[str, str]] = []
        for file, name in re.findall(r"`([\w/]*(?:\.py)?)(?:::([\w.:]+)(?:\[[^`]*\])?)?`", self.covered):
            if file.endswith(".py") or name:
                found.append((file or found[-1][0], name))
        return found


def rows_of(path: Path) -> list[Row]:
    rows = []
    section = ""
    for line in path.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| ") and not line.endswith("| covered by |"):
            # Only the last column may be long; a check's name never has a bar in it.
            check, covered = line.removeprefix("| ").removesuffix(" |").split(" | ", 1)
            rows.append(Row(path.name, section, check, covered))
    return rows


ROWS = [row for path in TABLES for row in rows_of(path)]


@cache
def names_in(file: str) -> frozenset[str]:
    """Functions, classes (made by assignment, too), and methods both by their own name and with their class's."""
    names: set[str] = set()
    for node in ast.walk(ast.parse((TESTS / file).read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return frozenset(names)


def claims() -> list[tuple[str, str]]:
    """Where a test's docstring begins with a section and names of Java's tests, and each of the names."""
    found = []
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else None
            if text is not None and re.match(rf"(?:[{SECTIONS}]\d* )+", text):
                where = f"{path.relative_to(TESTS)}::{node.name}"  # type: ignore[attr-defined]
                found += [(where, name) for name in JAVA_NAME.findall(text.split(": ")[0])]
    return found


def test_there_are_tables() -> None:
    assert [path.stem.removeprefix("java_checks_") for path in TABLES] == ["core", "network", "records", "transactions"]
    assert {row.section[0] for row in ROWS} >= set(SECTIONS)
    assert len(ROWS) > 300


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_every_row_names_a_test_or_says_why_there_is_none(table: Path) -> None:
    bare = [row.place for row in rows_of(table) if not row.references and not row.covered.startswith(EXCUSE)]
    assert bare == []


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_every_test_that_a_row_names_is_there(table: Path) -> None:
    wrong = [
        f"{row.place} -> {file}::{name}"
        for row in rows_of(table)
        for file, name in row.references
        if not (TESTS / file).exists() or (name and name not in names_in(file))
    ]
    assert wrong == []


def test_no_check_has_two_rows() -> None:
    seen: dict[tuple[str, str], Row] = {}
    twice = [row.place for row in ROWS if seen.setdefault((row.section, row.check), row) is not row]
    assert twice == []


def test_every_check_that_a_test_claims_has_a_row() -> None:
    listed = " ".join(name for row in ROWS for name in JAVA_NAME.findall(row.check))
    # A docstring may leave the end of a long name out.
    assert [f"{where}: {name}" for where, name in claims() if not re.search(rf"\b{name}", listed)] == []
