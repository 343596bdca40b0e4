"""Writes the list of public names and signatures, docs/public_names.txt: ``python -m tools.public_names [--check]``.

Public is what stands in ``__all__`` of a documented module.  The list is committed, so that no change of it goes
unseen.  It is read from the sources and from stubs, where a class has one: the same text for each Python.
"""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.stubs import decorators, without_refused

SOURCES = Path(__file__).parents[1] / "src"
TARGET = SOURCES.parent / "docs" / "public_names.txt"
MODULES = (
    "",
    "aio",
    "config",
    "errors",
    "interceptors",
    "metrics",
    "model",
    "pipeline",
    "serializers",
    "spark",
    "testing",
    "tune",
)
"""Those that are documented, below ``forebay``."""
CONSTRUCTORS = ("__init__", "__new__", "__call__")

Found = tuple[str, ast.stmt]
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(module: str) -> ast.Module | None:
    """A module of this package; its stub, if it has one."""
    path = SOURCES.joinpath(*module.split("."))
    for candidate in (path.with_suffix(".pyi"), path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return ast.parse(candidate.read_text(encoding="utf-8"))
    return None


def found(module: str, name: str) -> Found | None:
    """The module that defines what ``name`` is in ``module``, and the definition; None if it is not ours."""
    tree = parsed(module)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("forebay"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return found(node.module or "", alias.name)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name == name and tree is not None and node in tree.body:
                return module, node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return module, node
    return None


def exported(module: str) -> list[str]:
    """``__all__`` of a module."""
    tree = parsed(module)
    for node in tree.body if tree else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return sorted(ast.literal_eval(node.value))
    return []


def shown(name: str, function: Function) -> str:
    """A call as users write it."""
    without_refused(function)
    result = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    kind = "async " if isinstance(function, ast.AsyncFunctionDef) else ""
    return f"{kind}{name}({ast.unparse(function.args)}){result}"


def members(module: str, node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """What users see of a class, by name; of its bases in this package, what it does not replace."""
    seen = set()
    for item in node.body:
        if isinstance(item, Function) and (not item.name.startswith("_") or item.name in CONSTRUCTORS):
            if "property" in decorators(item):
                yield item.name, f"{item.name}: {ast.unparse(item.returns) if item.returns else 'Any'}"
            elif f"{item.name}.setter" not in decorators(item):
                yield item.name, shown(item.name, item)
            seen.add(item.name)
        elif isinstance(item, ast.AnnAssign) and not ast.unparse(item.target).startswith("_"):
            default = f" = {ast.unparse(item.value)}" if item.value else ""
            yield ast.unparse(item.target), f"{ast.unparse(item.target)}: {ast.unparse(item.annotation)}{default}"
            seen.add(ast.unparse(item.target))
    for base in node.bases:
        above = found(module, ast.unparse(base))
        # A base that is public has lines of its own.
        if above is not None and isinstance(above[1], ast.ClassDef) and above[1] not in public():
            yield from ((name, text) for name, text in members(above[0], above[1]) if name not in seen)


@cache
def public() -> dict[ast.stmt, str]:
    """The definitions of all public names, and the first name of each."""
    names = ((module, name) for module in modules() for name in exported(module))
    first: dict[ast.stmt, str] = {}
    for module, name in names:
        where = found(module, name)
        if where is not None:
            first.setdefault(where[1], f"{module}.{name}")
    return first


def modules() -> list[str]:
    """The documented modules."""
    return [f"forebay.{name}".rstrip(".") for name in MODULES]


def lines(module: str) -> Iterator[str]:
    """The lines of one module."""
    for name in exported(module):
        where = found(module, name)
        full = f"{module}.{name}"
        if where is None:
            yield full
        elif public()[where[1]] != full:
            yield f"{full}: {public()[where[1]]}"
        elif isinstance(where[1], Function):
            yield shown(full, where[1])
        elif isinstance(where[1], ast.ClassDef):
            bases = ", ".join(ast.unparse(base) for base in where[1].bases if not ast.unparse(base).startswith("_"))
            yield f"class {full}({bases})"
            yield from sorted({f"    {text}" for _, text in members(*where)})  # type: ignore[arg-type]
        else:
            yield full


def text() -> str:
    """The whole list."""
    head = "# Public names and signatures; written by `make generated` (tools/public_names.py)."
    blocks = [head]
    for module in modules():
        blocks.append("\n".join([f"# {module}", *lines(module)]))
    return "\n\n".join(blocks) + "\n"


def main(arguments: list[str]) -> int:
    fresh = text()
    known = TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""
    if arguments != ["--check"]:
        TARGET.write_text(fresh, encoding="utf-8")
        return 0
    for line in difflib.unified_diff(known.splitlines(), fresh.splitlines(), "committed", "now", lineterm="", n=0):
        print(line, file=sys.stderr)
    if fresh != known:
        print(f"{TARGET.name}: what is public has changed; if that is meant, run `make generated`", file=sys.stderr)
    return int(fresh != known)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
