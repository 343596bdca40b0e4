"""Holds functions, files and parameter lists to their limits, without exemptions: ``python -m tools.check_limits``.

Net lines of a function are those with code on them: no blank lines, comments or docstrings, but its signature and any
function inside it.  Complexity is ruff's business (C901).
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("src", "tests", "tools", "demo", "bench")
FUNCTION_LINES = 40
FILE_LINES = 500
PARAMETERS = 6
C_PARAMETERS = 12
"""Of functions that compile to C functions, which have no keyword-only parameters."""
SKIPPED_TOKENS = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(source: str, tree: ast.AST) -> set[int]:
    """Numbers of the lines with code on them, docstrings apart."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SKIPPED_TOKENS:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        # A string that stands as a statement is a docstring, of a function or of an attribute.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def functions(tree: ast.AST, inside_class: bool = False) -> Iterator[tuple[Function, bool]]:
    """Every function, and whether it is a method."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node, inside_class
            yield from functions(node)
        else:
            yield from functions(node, isinstance(node, ast.ClassDef))


def positional(function: Function, is_method: bool) -> int:
    """How many parameters may be given by position, self or cls apart."""
    count = len(function.args.posonlyargs) + len(function.args.args)
    return count - 1 if is_method and "staticmethod" not in decorators(function) else count


def decorators(function: Function) -> set[str]:
    """Its decorators as they are written."""
    return {ast.unparse(entry) for entry in function.decorator_list}


def complaints_of_source(source: str, file: str) -> Iterator[str]:
    """What is over a limit in one Python file."""
    tree = ast.parse(source)
    code = code_lines(source, tree)
    for function, is_method in functions(tree):
        place = f"{file}:{function.lineno}: {function.name}"
        net = sum(number in code for number in range(function.lineno, (function.end_lineno or 0) + 1))
        if net > FUNCTION_LINES:
            yield f"{place} has {net} net lines, allowed are {FUNCTION_LINES}"
        # A test's parameters are its fixtures and cases, given by name whatever their order.
        allowed = C_PARAMETERS if decorators(function) & {"cython.cfunc", "cython.ccall"} else PARAMETERS
        if (count := positional(function, is_method)) > allowed and not function.name.startswith("test_"):
            yield f"{place} takes {count} parameters by position, allowed are {allowed}"


def check(root: Path) -> list[str]:
    """Every line of complaint about the tree at ``root``."""
    complaints: list[str] = []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.p*")):
        if path.suffix not in (".py", ".pyi", ".pxd"):
            continue
        source, file = path.read_text(encoding="utf-8"), str(path.relative_to(root))
        if (lines := source.count("\n")) > FILE_LINES:
            complaints.append(f"{file}: {lines} lines, allowed are {FILE_LINES}")
        if path.suffix == ".py":
            complaints += complaints_of_source(source, file)
    return complaints


def main() -> int:
    complaints = check(Path(__file__).parents[1])
    print("\n".join(complaints) if complaints else "limits: every function, file and parameter list is within them")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
