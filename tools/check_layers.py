"""Holds cimports to the layers that import-linter holds imports to: ``python -m tools.check_layers``.

The list of layers is read from pyproject.toml, so there is one list; so is what drop-in classes may not use.
``from cython.cimports.forebay.X import ...`` in a ``.py`` and both forms of ``cimport`` in a ``.pxd`` count.  The
interpreted branch must also import (or declare) what the compiled branch cimports, else one of the two forms breaks
unseen.

Only ``@cython.cfunc`` may take a C struct.  A ``def`` or ``ccall`` that takes one is callable from Python.  For that
call Cython converts the struct to a dict and back, pointers included, and crashes.

No compiled code leaves an ``except`` clause by ``return``, ``break`` or ``continue``.  Cython then drops the traceback
without a look whether there is one.  Without memory there is none, and the process crashes.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PACKAGE = "forebay"
PXD = re.compile(rf"^[ \t]*(?:from\s+({PACKAGE}[\w.]*)\s+cimport\s+(.+)|cimport\s+({PACKAGE}[\w.]*))", re.MULTILINE)
CIMPORTED = re.compile(rf"^from\s+({PACKAGE}[\w.]*)\s+cimport\s+(\([^)]*\)|.+)", re.MULTILINE)
STRUCT = re.compile(r"^[ \t]*(?:cdef\s+|ctypedef\s+)?(?:packed\s+)?struct\s+(\w+)", re.MULTILINE)
CIMPORTS = "cython.cimports."


class Edge(NamedTuple):
    """One module's use of another, and where it stands."""

    source: str
    target: str
    place: str


def layers(project: Path) -> dict[str, tuple[int, int]]:
    """(layer, place in its line) of each child of the package, from the contract ``layers``; 0 is the top."""
    tool = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = [entry for entry in tool["contracts"] if entry["id"] == "layers"]
    return {
        name.strip(" ()"): (level, column)
        for level, line in enumerate(contract["layers"])
        for column, name in enumerate(line.split("|"))
    }


def forbidden(project: Path) -> dict[str, set[str]]:
    """What a child of the package must not use, by the child: the contract ``frontends``; empty if there is none."""
    tool = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["importlinter"]
    found = [entry for entry in tool["contracts"] if entry["id"] == "frontends"]
    return {source: set(entry["forbidden_modules"]) for entry in found for source in entry["source_modules"]}


def of_no_front(edge: Edge, barred: Mapping[str, set[str]]) -> str | None:
    """What is wrong with this edge by ``forbidden``, or None."""
    source, target = (".".join(module.split(".")[:2]) for module in (edge.source, edge.target))
    if target not in barred.get(source, ()):
        return None
    return f"{edge.place}: {edge.source} cimports {edge.target}; let producer/_frontend.pxd offer it"


def module_name(path: Path, source: Path) -> str:
    """``_network/client.pxd`` below ``source`` as ``forebay._network.client``."""
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def cimports_of_py(tree: ast.AST, source: str, file: str) -> Iterator[Edge]:
    """The cimports of a module in pure-Python mode."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{CIMPORTS}{PACKAGE}"):
            yield Edge(source, (node.module or "").removeprefix(CIMPORTS), f"{file}:{node.lineno}")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith(f"{CIMPORTS}{PACKAGE}"):
                    yield Edge(source, alias.name.removeprefix(CIMPORTS), f"{file}:{node.lineno}")


def cimports_of_pxd(text: str, source: str, file: str) -> Iterator[Edge]:
    """The cimports of a declaration file."""
    for match in PXD.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Edge(source, match[1] or match[3], f"{file}:{line}")


def refused(edge: Edge, order: dict[str, tuple[int, int]]) -> str | None:
    """What is wrong with this edge, or None."""
    names = [f"{module}.".split(".")[1] for module in (edge.source, edge.target)]
    if names[0] == names[1]:
        return None
    for name in names:
        if name not in order:
            return f"{edge.place}: {PACKAGE}.{name} stands in no layer of pyproject.toml"
    (level, _), (target_level, _) = order[names[0]], order[names[1]]
    if level < target_level:
        return None
    why = "a sibling" if level == target_level else "a layer above"
    return f"{edge.place}: {edge.source} cimports {edge.target}, {why}"


def is_compiled_branch(node: ast.AST) -> bool:
    """Whether this is ``if cython.compiled:``."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "cython.compiled"


def bound_names(body: Iterable[ast.AST]) -> set[str]:
    """Every name that these statements bind."""
    names: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.ImportFrom | ast.Import):
                names |= {(alias.asname or alias.name) for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    return names


def one_sided(tree: ast.Module, file: str) -> Iterator[str]:
    """Names that only the compiled branch has."""
    for node in tree.body:
        if not (isinstance(node, ast.If) and is_compiled_branch(node)):
            continue
        # C's and Python's own headers have no module to import; their twins come from anywhere.
        ours = [entry for entry in node.body if ast.unparse(entry).startswith(f"from {CIMPORTS}{PACKAGE}")]
        missing = bound_names(ours) - bound_names(node.orelse)
        if missing:
            yield f"{file}:{node.lineno}: cimported but not in the interpreted branch: {', '.join(sorted(missing))}"


def structs_of_pxd(text: str) -> set[str]:
    """The C structs that a declaration file declares."""
    return set(STRUCT.findall(text))


def offered(structs: dict[str, set[str]], source: Path) -> None:
    """Adds what a declaration file cimports: its users may cimport it from there."""
    for module, own in structs.items():
        path = source.joinpath(*module.split(".")).with_suffix(".pxd")
        for match in CIMPORTED.finditer(path.read_text(encoding="utf-8") if path.exists() else ""):
            own |= structs.get(match[1], set()) & set(re.findall(r"\w+", match[2]))


def structs_in_scope(tree: ast.AST, module: str, structs: Mapping[str, set[str]]) -> set[str]:
    """What a module calls the structs it may use: its own declaration file's, and those it cimports."""
    names = set(structs.get(module, ()))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(CIMPORTS):
            there = structs.get((node.module or "").removeprefix(CIMPORTS), set())
            names |= {alias.asname or alias.name for alias in node.names if alias.name in there}
    return names


def is_compiled(tree: ast.Module) -> bool:
    """Whether the module is written for Cython."""
    return any(isinstance(node, ast.Import) and ast.unparse(node) == "import cython" for node in tree.body)


def struct_parameters(tree: ast.Module, file: str, structs: set[str]) -> Iterator[str]:
    """Functions of a compiled module that take a struct and can be called from Python."""
    if not is_compiled(tree):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if any(ast.unparse(decorator) == "cython.cfunc" for decorator in node.decorator_list):
            continue
        given = node.args
        for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            for struct in sorted(mentioned(parameter.annotation if parameter else None) & structs):
                yield f"{file}:{node.lineno}: {node.name} takes the struct {struct} but is not a @cython.cfunc"


def left_clauses(tree: ast.Module, file: str) -> Iterator[str]:
    """Statements of a compiled module that leave an ``except`` clause other than by its end or by an error."""
    if not is_compiled(tree):
        return
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)):
        for node in leaving(handler.body, in_loop=False):
            word = type(node).__name__.lower()
            yield f"{file}:{node.lineno}: {word} in an except clause crashes without memory; let the clause end first"


def leaving(body: Iterable[ast.AST], *, in_loop: bool) -> Iterator[ast.Return | ast.Break | ast.Continue]:
    """The statements that leave ``body``; a loop inside it keeps its ``break`` and ``continue``."""
    for node in body:
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and not in_loop):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
            loop = in_loop or isinstance(node, ast.For | ast.While)
            yield from leaving(ast.iter_child_nodes(node), in_loop=loop)


def mentioned(annotation: ast.AST | None) -> set[str]:
    """The names in an annotation, whether or not it is written as a string."""
    names: set[str] = set()
    for node in ast.walk(annotation) if annotation is not None else ():
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= set(re.findall(r"\w+", node.value))
    return names


def check(root: Path) -> list[str]:
    """Every line of complaint about the tree at ``root``."""
    order, barred = layers(root / "pyproject.toml"), forbidden(root / "pyproject.toml")
    source = root / "src"
    structs = {
        module_name(path, source): structs_of_pxd(path.read_text(encoding="utf-8"))
        for path in (source / PACKAGE).rglob("*.pxd")
    }
    offered(structs, source)
    complaints: list[str] = []
    for path in sorted((source / PACKAGE).rglob("*")):
        name, file = module_name(path, source), str(path.relative_to(root))
        edges: list[Edge] = []
        if path.suffix == ".py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            edges += cimports_of_py(tree, name, file)
            complaints += one_sided(tree, file)
            complaints += left_clauses(tree, file)
            complaints += struct_parameters(tree, file, structs_in_scope(tree, name, structs))
        elif path.suffix == ".pxd":
            edges += cimports_of_pxd(path.read_text(encoding="utf-8"), name, file)
        complaints += [line for edge in edges if (line := refused(edge, order) or of_no_front(edge, barred))]
    return complaints


def main() -> int:
    complaints = check(Path(__file__).parents[1])
    print(
        "\n".join(complaints)
        if complaints
        else "cimports: every one goes to a lower layer; structs stay in C; except clauses end"
    )
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
