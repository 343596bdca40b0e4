"""Holds functions, classes, files and folders to their limits: ``python -m tools.check_limits``.

Net lines are those with code on them: no blank lines, comments or docstrings.  Those of a function include its
signature and any function inside it.  Complexity is ruff's business (C901).  Two limits have exceptions, each with its
reason: small files (``SMALL``) and wide objects (``WIDE``).  Drop-in classes have the calls of others (``FOREIGN``).
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("src", "tests", "tools", "demo", "bench")
FUNCTION_LINES = 40
FILE_LINES = {"src": 450}
"""Of a file below a folder; ``OTHER_LINES`` elsewhere."""
OTHER_LINES = 500
CLASS_LINES = 400
FIELDS = 30
"""Of an object, with those of its bases."""
HALL = 8
"""Modules of the package itself whose name begins with an underscore."""
SMALL_LINES = 60
"""A module of the package with less net lines needs a reason to be a file of its own."""
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

WIDE = {
    "Prediction": "An answer: each figure that is asked for stands in its JSON under the name of a field.",
    "ProducerOptions": "One key for each option, in a type that nothing is made of.",
    "ProducerMetrics": "One field for each metric.",
    "RowWindow": "The arrays of one window, six of them twice: a section without the GIL can use no object.",
}
"""Classes with more fields, and why."""
FOREIGN = {"forebay/compat/": "Calls of another client keep their parameters."}
"""Folders whose public functions may take more parameters by position, and why."""
TWIN = "The interpreted twin of the .pxd beside it."
COMMAND = "One command of the command line."
SMALL = {
    "forebay/_assembly/surroundings.py": "What goes in and comes out, for parts and for insight, which parts calls.",
    "forebay/_assembly/tls.py": "TLS for security, and for oauth, which security calls.",
    "forebay/_insight/telemetry/instance.py": "Of each producer's start, without the reporter that writes it.",
    "forebay/_arrow/checks.py": "What no column may be, both for those read in place and for tables of pyarrow.",
    "forebay/_sender/warming.py": "Loaded by warm_up() alone.",
    "forebay/aio.py": "A public name.",
    "forebay/pipeline.py": "A public name.",
    "forebay/admin/_assembly.py": "_assembly stands below it.",
    "forebay/producer/_acknowledged.py": "A class that _delivery and the checks of arguments stand below.",
    "forebay/cli/doctor.py": "A command of its own, imported when it is used.",
    "forebay/spark/jobs/formats.py": "What Spark's source formats need: a table.",
    "forebay/compat/confluent_kafka/": "Modules under confluent-kafka's names.",
    "forebay/compat/_librdkafka_partitioner.py": "The partitioners of librdkafka, for produce and for users.",
    "forebay/serializers/rows/times.py": "Where Arrow's casts to text are wrong.",
    "forebay/_delivery/hearing.py": "Compiled, for the futures; what it notes is read by unheard, which is not.",
    "forebay/_protocol/": "A module for each API of the protocol.",
    "forebay/errors/": "Tables of errors by their origin.",
    "forebay/compat/aiokafka/": "Modules under aiokafka's names.",
    "forebay/_network/pkcs12_keys.py": "What the package cryptography does not tell of a store.",
    "forebay/_network/msk_iam.py": "The only place that imports Amazon's package.",
    "forebay/cli/properties.py": "What commands take as options; its parser of properties files serves config, too.",
    "forebay/config/_properties.py": "Java's properties files, read for commands and for placeholders.",
    "forebay/_network/sasl/": "A module for each SASL mechanism.",
    "forebay/_accumulator/states.py": "The tables of states that many modules share.",
    "forebay/tune/described.py": "The words for a load that texts and pages share; what they are of stands above it.",
    "forebay/_runtime/times.py": "A rule that model and producer share, and that alone imports datetime.",
    "forebay/model/_gate.py": "An interface: what the accumulator asks of transactions.",
    "forebay/_delivery/awaiting.py": "The only part of a future that needs asyncio.",
    "forebay/_network/options.py": "A type that many modules share.",
    "forebay/_records/codec_packages.py": "The only module that imports codec packages for three others.",
    "forebay/_records/layout.py": "A table: the fields of a batch's header.",
    "forebay/_records/ratio.py": "A type that the sender's thread and sending threads share.",
    "forebay/_runtime/backoff.py": "A rule that four packages share.",
    "forebay/_runtime/clock.py": "An interface, and the system's clock; compiled.",
    "forebay/_runtime/clock_source.py": TWIN,
    "forebay/_runtime/extras.py": "A rule that five packages share.",
    "forebay/_runtime/files.py": "A rule that four packages share.",
    "forebay/_runtime/gil.py": TWIN,
    "forebay/_runtime/memory.py": TWIN,
    "forebay/_runtime/mutex.py": TWIN,
    "forebay/_runtime/owner.py": "A check of the interpreted form that four packages share.",
    "forebay/_runtime/parking.py": TWIN,
    "forebay/_runtime/piece.py": "A type that three packages share.",
    "forebay/_runtime/this_thread.py": TWIN,
    "forebay/_runtime/xxhash64.py": TWIN,
    "forebay/_insight/text.py": "The only form of a description that needs nothing else.",
    "forebay/_sender/producer_id.py": "The one request of an idempotent producer without transactions.",
    "forebay/_transactions/pending.py": "A request until its answer, and their order.",
    "forebay/_transactions/result.py": "A type that four packages share, without the rest of transactions.",
    "forebay/_transactions/state.py": "The table of states.",
    "forebay/_runtime/version.py": "The build reads it without importing the package.",
    "forebay/cli/console.py": "The flags of one foreign command.",
    "forebay/cli/shared.py": "What commands of several files share, and none of them.",
    "forebay/cli/failure.py": "How every command ends.",
    "forebay/cli/input/rows.py": "A type that every input makes, and how cells become bytes.",
    "forebay/cli/payloads.py": "Data for `forebay perf`; no record passes it elsewhere.",
    "forebay/compat/kafka/partitioner.py": "Programs import these classes by this name.",
    "forebay/compat/kafka/serializer.py": "Programs import these classes by this name.",
    "forebay/compat/kafka/_own_structs.py": "Classes that are lazily replaced by another package's.",
    "forebay/compat/aiokafka/_own_structs.py": "Classes that are lazily replaced by another package's.",
    "forebay/compat/_librdkafka_log.py": "One option, with the one handler of all producers.",
    "forebay/admin/_arguments.py": "The checks of every argument, without a cluster.",
    "forebay/compat/_originals.py": "What two drop-in packages share, which know nothing of each other.",
    "forebay/compat/kafka/structs.py": "Programs import these values by this name.",
    "forebay/config/_aliases.py": "A table of names.",
    "forebay/config/_address_map.py": "The rule for one option.",
    "forebay/config/_bootstrap.py": "The rule for one option, which AdminClient shares.",
    "forebay/config/_proxy.py": "The rule for one option.",
    "forebay/config/_door.py": "A decorator of all calls that take options.",
    "forebay/spark/batches.py": "A public function of its own.",
    "forebay/spark/sizes.py": "A rule of its own, without producers and without Spark.",
    "forebay/spark/repartitioning.py": "A public function of its own.",
    "forebay/cli/outputs.py": "The check of every file that a command writes, which knows no command.",
    "forebay/tune/_json.py": "How every result becomes JSON, which knows none of them.",
    "forebay/tune/steps.py": "The rate over time, which predict, fleets, samples and searches ask for.",
    "forebay/tune/_checks.py": "The checks of every value of a question, which know none of them.",
    "forebay/tune/_world/agenda.py": "The events of a simulation, which know nothing of what they do.",
    "forebay/tune/_world/costs.py": "A public value of its own.",
    "forebay/tune/_world/stalling.py": "When threads of a simulation run, which knows nothing of what they do.",
    "forebay/tune/wording.py": "How numbers are written in sentences, which knows none of the sentences.",
    "forebay/tune/goal.py": "A public value of its own, which the search alone needs.",
    "forebay/_runtime/manual_clock.py": "A public class of its own.",
    "forebay/testing/clock.py": "A name that tests import; the class stands below.",
    "forebay/testing/resolver.py": "A name that tests import; the class stands below.",
    "forebay/testing/pytest_plugin.py": "What pytest imports in every run, so it has to be small.",
}
"""Modules with less net lines (a folder stands for all of its modules), and why each is a file of its own."""

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
        is_free = function.name.startswith("test_") or is_foreign(place, function.name)
        if (count := positional(function, is_method)) > allowed and not is_free:
            yield f"{place} takes {count} parameters by position, allowed are {allowed}"


def is_foreign(place: str, name: str) -> bool:
    """Whether a function is a public one of a drop-in class, or makes one."""
    return (name == "__init__" or not name.startswith("_")) and any(folder in place for folder in FOREIGN)


class Fields:
    """The fields of the classes of one tree, by the class's name."""

    def __init__(self) -> None:
        self.own: dict[str, set[str]] = {}
        self.bases: dict[str, list[str]] = {}
        self.place: dict[str, str] = {}

    def add(self, tree: ast.AST, declarations: str, file: str) -> None:
        """The classes of one module; ``declarations`` is its .pxd."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                self.own[node.name] = assigned(node) | declared(node.name, declarations)
                self.bases[node.name] = [ast.unparse(base) for base in node.bases]
                self.place[node.name] = f"{file}:{node.lineno}: {node.name}"

    def of(self, name: str) -> set[str]:
        """Its own fields and those of its bases."""
        return self.own.get(name, set()).union(*(self.of(base) for base in self.bases.get(name, []) if base != name))

    def complaints(self) -> Iterator[str]:
        for name, place in self.place.items():
            if (count := len(self.of(name))) > FIELDS and name not in WIDE:
                yield f"{place} has {count} fields, allowed are {FIELDS}"
        for name in WIDE:
            if name in self.place and len(self.of(name)) <= FIELDS:
                yield f"{self.place[name]} needs no exception any more: it has at most {FIELDS} fields"


def assigned(node: ast.ClassDef) -> set[str]:
    """What a class annotates in its body, or assigns to ``self`` in its methods."""
    found = {
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    for item in ast.walk(node):
        if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store) and ast.unparse(item.value) == "self":
            found.add(item.attr)
    return found


def declared(name: str, declarations: str) -> set[str]:
    """The fields that a .pxd declares for a class."""
    body = re.search(rf"^cdef class {name}\b.*:\n((?:[ \t].*\n|\n)*)", declarations, re.MULTILINE)
    lines = body[1].splitlines() if body else []
    bare = [line.partition("#")[0].rstrip() for line in lines]
    return {line.rpartition(" ")[2].lstrip("*") for line in bare if re.fullmatch(r" +cdef [^(:]+", line)}


def complaints_of_classes(tree: ast.AST, file: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            if (lines := (node.end_lineno or 0) - node.lineno + 1) > CLASS_LINES:
                yield f"{file}:{node.lineno}: {node.name} has {lines} lines, allowed are {CLASS_LINES}"


def complaints_of_size(path: str, net: int) -> Iterator[str]:
    """A small module of the package without a reason, or a reason that is not needed; ``path`` below the package."""
    is_small = net < SMALL_LINES and not path.endswith(("__init__.py", "__main__.py"))
    reason = path in SMALL or any(path.startswith(folder) for folder in SMALL if folder.endswith("/"))
    if is_small and not reason:
        yield f"src/{path}: {net} net lines; a file below {SMALL_LINES} needs a reason (SMALL in tools/check_limits.py)"
    if path in SMALL and not is_small:
        yield f"src/{path}: {net} net lines; it needs no reason any more (SMALL in tools/check_limits.py)"


def complaints_of_package(root: Path) -> Iterator[str]:
    """What is over a limit of the package below ``root/src``: its classes, its small files, its hall."""
    sources, fields = root / "src", Fields()
    for path in sorted(sources.rglob("*.py")):
        source, file = path.read_text(encoding="utf-8"), str(path.relative_to(sources))
        tree = ast.parse(source)
        pxd = path.with_suffix(".pxd")
        fields.add(tree, pxd.read_text(encoding="utf-8") if pxd.exists() else "", f"src/{file}")
        yield from complaints_of_classes(tree, f"src/{file}")
        yield from complaints_of_size(file, len(code_lines(source, tree)))
    yield from fields.complaints()
    hall = sorted(path.name for path in sources.glob("forebay/_[!_]*.py"))
    if len(hall) > HALL:
        yield f"src/forebay: {len(hall)} modules with an underscore, allowed are {HALL}: {', '.join(hall)}"


def check(root: Path) -> list[str]:
    """Every line of complaint about the tree at ``root``."""
    complaints: list[str] = list(complaints_of_package(root))
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.p*")):
        if path.suffix not in (".py", ".pyi", ".pxd"):
            continue
        source, file = path.read_text(encoding="utf-8"), str(path.relative_to(root))
        allowed = FILE_LINES.get(file.split("/")[0], OTHER_LINES)
        if (lines := source.count("\n")) > allowed:
            complaints.append(f"{file}: {lines} lines, allowed are {allowed}")
        if path.suffix == ".py":
            complaints += complaints_of_source(source, file)
    return complaints


def main() -> int:
    complaints = check(Path(__file__).parents[1])
    print("\n".join(complaints) if complaints else "limits: every function, class, file and folder is within them")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
