"""Writes the `.pyi` beside each compiled module that users' types come from: `python -m tools.stubs [--check]`.

Below `typings/` it writes what `cython.cimports` has of this package: for mypy, pyright and editors, which find so what
a module cimports.

A type checker reads the sources, and has no types for `cython` where users are.  There a class with its decorators, and
each subclass of it, is Any.  So a stub declares the public part of these modules without `cython`.  All else is
internal and may stay unknown, because checkers report nothing inside an installed package.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "forebay"

# The classes that are, or are a base of, something public.
PUBLIC = {
    "producer/_path": ["SendPath"],
    "_delivery/future": ["RecordFuture"],
    "model/_metadata": ["RecordMetadata", "DeliveryReport"],
    "_runtime/clock": ["Clock", "SystemClock"],
    "_network/selector": ["Selector"],
    "compat/_librdkafka_messages": ["Events", "Message"],
    "compat/_librdkafka_path": ["ProducePath"],
    "compat/kafka/_path": ["FutureRecordMetadata", "SendingPath"],
    "compat/aiokafka/_send": ["DeliveryFuture", "SendCalls"],
    "compat/aiokafka/_batch": ["AppendedMetadata", "BatchBuilder"],
    "producer/_columns/batch_delivery": ["OffsetRun", "FailedRows", "BatchDelivery"],
}
# Methods that other modules of the package call; they have no underscore, and are no user's.
INNER = {"RecordFuture": {"metadata"}, "DeliveryFuture": {"wake"}}
# Bases that have nothing for a user.
INNER_BASES = {"CompiledCallback", "AddedCallback"}
# Old spellings, which are refused with the new one: no user's.
REFUSED = ("old", "timestamp_ms")
# Those of object, and pickling, which no user calls.
LEFT_OUT = {"__repr__", "__str__", "__reduce__", "__dealloc__", "__del__"}
# A C type, and what Python makes of it.
PLAIN = {"bint": "bool", "int": "int", "longlong": "int", "Py_ssize_t": "int", "double": "float", "void": "None"}
HEAD = "# Written by `make generated` from the module beside it (tools/stubs.py): its public part, without Cython.\n"

TYPINGS = PACKAGE.parents[1] / "typings"
CIMPORTS = "cython.cimports."

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Plain(ast.NodeTransformer):
    """C types as Python's."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == "cython":
            return ast.Name(PLAIN[node.attr])
        return node


def decorators(node: ast.ClassDef | Function) -> set[str]:
    """Their names, without arguments."""
    return {ast.unparse(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list}


def is_public(function: Function, inner: set[str]) -> bool:
    """Whether a method is one that users call."""
    name = function.name
    dunder = name.startswith("__") and name.endswith("__")
    named_tuple = name in ("_asdict", "_replace")
    if name in inner | LEFT_OUT or "cython.cfunc" in decorators(function):
        return False
    return dunder or named_tuple or not name.startswith("_")


@cache
def c_functions() -> frozenset[str]:
    """Names in those modules that are C functions; run as Python, the sources show them as methods."""
    trees = (ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8")) for module in PUBLIC)
    return frozenset(
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and "cython.cfunc" in decorators(node)
    )


def without_refused(function: Function) -> None:
    """Takes out of a signature what only refuses an old spelling."""
    given = function.args
    if given.vararg is not None and given.vararg.arg == REFUSED[0]:
        given.vararg = None
        kept_names = [
            (name, value)
            for name, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)
            if name.arg not in REFUSED
        ]
        given.kwonlyargs, given.kw_defaults = [name for name, _ in kept_names], [value for _, value in kept_names]


def declared(function: Function) -> Function:
    """A method without its body."""
    kept = [each for each in function.decorator_list if not ast.unparse(each).startswith("cython.")]
    function.decorator_list = kept
    function.body = [ast.Expr(ast.Constant(...))]
    without_refused(function)
    return Plain().visit(function)  # type: ignore[no-any-return]


def members(node: ast.ClassDef) -> Iterator[ast.stmt]:
    """What a class has for users."""
    for item in node.body:
        if isinstance(item, Function):
            if is_public(item, INNER.get(node.name, set())):
                yield declared(item)
        elif isinstance(item, ast.AnnAssign) or (
            isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) in ("__match_args__", "_fields")
        ):
            yield item


def declared_class(node: ast.ClassDef) -> ast.ClassDef:
    decorated: list[ast.expr] = [ast.Name("final")] if "cython.final" in decorators(node) else []
    bases = [base for base in node.bases if ast.unparse(base) not in INNER_BASES]
    return ast.ClassDef(node.name, bases, node.keywords, [*members(node)] or [ast.Pass()], decorated)


def names_in(nodes: list[ast.ClassDef]) -> set[str]:
    return {name.id for node in nodes for name in ast.walk(node) if isinstance(name, ast.Name)}


def imports(tree: ast.Module, wanted: set[str]) -> Iterator[ast.stmt]:
    """The module's imports of these names, those for type checkers alone among them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            kept = [alias for alias in node.names if (alias.asname or alias.name) in wanted]
            wanted -= {alias.asname or alias.name for alias in kept}
            if kept:
                yield ast.ImportFrom((node.module or "").removeprefix(CIMPORTS), kept, node.level)


def stub(source: str, classes: list[str]) -> str:
    """The text of a stub, not yet formatted."""
    tree = ast.parse(source)
    found = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    shown = [declared_class(found[name]) for name in classes]
    wanted = names_in(shown)
    body = [*imports(tree, wanted - set(classes)), *shown]
    if "final" in wanted:
        body.insert(0, ast.ImportFrom("typing", [ast.alias("final")], 0))
    return HEAD + "\n" + ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))


def formatted(text: str, name: str) -> str:
    """As the other sources are."""
    for command in (["check", "--quiet", "--fix", "--select", "I"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", name, "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def cimported(sources: Path) -> dict[str, set[str]]:
    """What the modules below ``sources`` cimport from each other: the names by module."""
    found: dict[str, set[str]] = {}
    for path in sources.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if isinstance(node, ast.ImportFrom) and module.startswith(f"{CIMPORTS}{PACKAGE.name}"):
                found.setdefault(module.removeprefix(CIMPORTS), set()).update(alias.name for alias in node.names)
    return found


def stubs_of_cimports(sources: Path) -> dict[Path, str]:
    """Stubs that say that ``cython.cimports.X`` is X, by their paths below the folder for typings."""
    top = Path(*CIMPORTS.strip(".").split("."))
    found = {top / "__init__.pyi": ""}
    for module, names in sorted(cimported(sources).items()):
        path = top.joinpath(*module.split("."))
        is_package = (sources.parent / Path(*module.split("."))).is_dir()
        target = path / "__init__.pyi" if is_package else path.with_suffix(".pyi")
        for folder in target.parents:
            if top in folder.parents:
                found.setdefault(folder / "__init__.pyi", "")
        found[target] = "".join(f"from {module} import {name} as {name}\n" for name in sorted(names))
    return found


def differing(fresh: dict[Path, str], typings: Path) -> list[Path]:
    """What of the stubs of cimports is missing, differs, or is no longer wanted."""
    there = {path.relative_to(typings) for path in (typings / "cython" / "cimports").rglob("*.pyi")}
    changed = {path for path, text in fresh.items() if path not in there or (typings / path).read_text() != text}
    return sorted(changed | (there - set(fresh)))


def write_cimports(fresh: dict[Path, str], typings: Path) -> None:
    for path in differing(fresh, typings):
        target = typings / path
        if path in fresh:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(fresh[path])
        else:
            target.unlink()


def main(arguments: list[str]) -> int:
    fresh_cimports = stubs_of_cimports(PACKAGE)
    stale = [str(path) for path in differing(fresh_cimports, TYPINGS)]
    if arguments != ["--check"]:
        write_cimports(fresh_cimports, TYPINGS)
    for module, classes in PUBLIC.items():
        source = PACKAGE / f"{module}.py"
        target = source.with_suffix(".pyi")
        fresh = formatted(stub(source.read_text(encoding="utf-8"), classes), str(target))
        if not target.exists() or target.read_text(encoding="utf-8") != fresh:
            stale.append(target.name)
            if arguments != ["--check"]:
                target.write_text(fresh, encoding="utf-8")
    if stale and arguments == ["--check"]:
        print(f"{', '.join(stale)}: not what the modules say; run `make generated`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
