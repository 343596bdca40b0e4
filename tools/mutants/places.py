"""Where a source may be changed: expressions and statements of both forms, without types, texts and log lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

ONE_FORM = ("cython.compiled", "TYPE_CHECKING")
"""What a condition asks about code that runs in one form only, or in none."""
TEXTS = {"__repr__", "__str__", "__dir__"}
"""Functions whose result people read."""
CONSTRUCTORS = {"__init__", "__cinit__", "__new__"}
NAMES = {"__all__", "__slots__", "__match_args__", "TYPE_CHECKING"}
"""Names whose values are declarations."""
LOGGERS = {"log", "logger", "_log", "_logger"}
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "fatal", "log"}
# What an exception says is a message, and which one is raised is mostly a matter of its name.
UNTOUCHED = ast.Import | ast.ImportFrom | ast.Pass | ast.Global | ast.Nonlocal | ast.Raise | ast.Assert
BLOCKS = ("body", "orelse", "finalbody")


class Place(NamedTuple):
    """A node that may be changed."""

    node: ast.AST
    first: int
    last: int
    """The lines of its statement, or of the head of a block."""
    at_import: bool
    """It runs when the module is imported and not in a function."""
    makes_fields: bool = False
    """It stands in a constructor, whose assignments make the fields that all others use."""


def places(tree: ast.Module) -> Iterator[Place]:
    """Every node that may be changed, in the order of the source."""
    yield from _block(tree.body, at_import=True)


def _block(body: list[ast.stmt], at_import: bool) -> Iterator[Place]:
    for statement in body:
        if isinstance(statement, UNTOUCHED):
            continue
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _function(statement, at_import)
        elif isinstance(statement, ast.ClassDef):
            yield from _block(statement.body, at_import=True)
        elif isinstance(statement, ast.If) and is_of_one_form(statement.test):
            continue
        elif hasattr(statement, "body"):
            yield from _compound(statement, at_import)
        else:
            yield from _simple(statement, at_import)


def is_of_one_form(condition: ast.expr) -> bool:
    """Whether it asks which form runs: both branches are then code of one form only."""
    return any(ast.unparse(node) in ONE_FORM for node in ast.walk(condition) if isinstance(node, ast.expr))


def _function(function: ast.FunctionDef | ast.AsyncFunctionDef, at_import: bool) -> Iterator[Place]:
    if function.name in TEXTS:
        return
    for default in (*function.args.defaults, *function.args.kw_defaults):
        if default is not None:
            yield from _expression(default, Place(default, default.lineno, _last(default), at_import))
    status, makes_fields = _status(function), function.name in CONSTRUCTORS
    for place in _block(function.body, at_import=False):
        if place.node not in status:
            yield place._replace(makes_fields=makes_fields)


def _status(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[ast.AST]:
    """The nodes of ``return 0`` in a function that returns nothing else: what tells C that it did not raise."""
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    values = {ast.unparse(node.value) if node.value else "" for node in returns}
    checked = any("cython.exceptval" in ast.unparse(entry) for entry in function.decorator_list)
    return {inner for node in returns for inner in ast.walk(node)} if checked and values == {"0"} else set()


def _compound(statement: ast.stmt, at_import: bool) -> Iterator[Place]:
    """A block with a head: `if`, `while`, `for`, `with`, `try`, `match`."""
    if isinstance(statement, ast.If | ast.While):
        head = Place(statement, statement.lineno, _last(statement.test), at_import)
        yield head
        yield from _expression(statement.test, head)
    elif isinstance(statement, ast.For | ast.AsyncFor):
        yield from _expression(statement.iter, Place(statement, statement.lineno, _last(statement.iter), at_import))
    elif isinstance(statement, ast.With | ast.AsyncWith):
        for item in statement.items:
            opened = item.context_expr
            yield from _expression(opened, Place(opened, statement.lineno, _last(opened), at_import))
    for block in (getattr(statement, name, []) for name in BLOCKS):
        yield from _block(block, at_import)
    for branch in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield from _block(branch.body, at_import)


def _simple(statement: ast.stmt, at_import: bool) -> Iterator[Place]:
    here = Place(statement, statement.lineno, _last(statement), at_import)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if any(isinstance(target, ast.Name) and target.id in NAMES for target in targets):
        return
    value = getattr(statement, "value", None)
    if isinstance(statement, ast.Expr) and (isinstance(value, ast.Constant) or is_log_line(value)):
        return
    yield here
    if isinstance(value, ast.expr):
        yield from _expression(value, here)


def is_log_line(node: ast.AST | None) -> bool:
    """Whether it is a call of a logger."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in LEVELS:
        return False
    return ast.unparse(node.func.value).rpartition(".")[2] in LOGGERS


def _expression(node: ast.expr, here: Place) -> Iterator[Place]:
    if isinstance(node, ast.JoinedStr) or is_log_line(node):
        return  # a message
    if isinstance(node, ast.IfExp) and is_of_one_form(node.test):
        return
    skipped: list[ast.expr] = []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_cython(node.func.value):
        # The value of declare() and cast() counts, their type does not; the others have to do with types alone.
        skipped = node.args[:1] if node.func.attr in ("declare", "cast") else node.args
    yield here._replace(node=node)
    for child in ast.iter_child_nodes(node):
        inner = child.value if isinstance(child, ast.keyword) else child
        if isinstance(inner, ast.expr) and inner not in skipped:
            yield from _expression(inner, here)
        elif isinstance(inner, ast.comprehension):
            for part in (inner.iter, *inner.ifs):
                yield from _expression(part, here)


def _is_cython(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "cython"


def _last(node: ast.expr | ast.stmt) -> int:
    return node.end_lineno or node.lineno
