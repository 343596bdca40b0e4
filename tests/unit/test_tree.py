"""The tree as a whole: tests mirror sources, modules stand alone, what is public is exported."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import forebay

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "forebay"
UNIT = ROOT / "tests" / "unit"

# A module without a test of its own, and what tries it instead.
TESTED_ELSEWHERE = {
    "__init__.py": "this file",
    "_arrow/abi.py": "tests/unit/_arrow/test_columns.py, which reads every layout through it",
    "_runtime/clock_source.py": "tests/unit/_runtime/test_clock.py: the two numbers are only what _clock makes of them",
    "_network/options.py": "a declaration, used by every test of the client",
    "_records/decoded.py": "tests/unit/_records/test_reader.py, which reads nothing else",
    "producer/_topics.py": "tests/scenario/test_metadata_wait.py, through send(), partitions_for() and PendingSend",
    "config/_typed.py": "tests/unit/tools/test_option_types.py, which writes it; tests/package/test_wrong_uses.py",
    "aio.py": "tests/unit/test_public_names.py",
    "pipeline.py": "tests/spark/test_pipeline.py, which imports through it",
    "admin/_assembly.py": "tests/unit/admin/world.py, which makes every AdminClient by it",
    "producer/_acknowledged.py": "tests/unit/test_interceptors.py, through send()",
    "compat/kafka/_own_structs.py": "tests/unit/compat/kafka/test_structs.py, beside those of kafka-python",
    "compat/aiokafka/_own_structs.py": "tests/unit/compat/aiokafka/test_structs.py, beside those of aiokafka",
    "spark/jobs/__init__.py": "tests/unit/spark/jobs/test_runner.py, which imports through it",
    "spark/__init__.py": "tests/unit/spark/test_source.py and every test in tests/spark",
    "testing/clock.py": "tests/unit/_runtime/test_manual_clock.py: it hands on the class",
    "testing/resolver.py": "tests/unit/_network/test_static_resolver.py: it hands on the class",
    "testing/__init__.py": "tests/unit/test_public_names.py, and every test that imports through it",
    "testing/pytest_plugin.py": "tests/integration/test_pytest_plugin.py, in processes of their own",
}
# A test module that mirrors no single source.
BEYOND_THE_MIRROR = {
    "test_tree.py": "this file",
    "test_imports.py": "the package as a whole",
    "test_text_files.py": "every file of text that a user hands over",
    "test_pace.py": "tests/support/pace.py",
    "_records/test_builder.py": "tests/support/records_builder.py, out of what _records offers",
    "test_what_to_do_when.py": "errors and lines of the package as a whole, beside the page of that name",
    "_assembly/test_parts_used_up.py": "_assembly/parts.py, where something is used up",
    "producer/test_parity.py": "producer/threads.py and producer/aio.py, which have the same calls",
    "producer/test_send_face.py": "producer/_path.py and producer/aio.py, whose send is written the same",
    "test_waits.py": "every public call with a timeout",
    "test_public_names.py": "what is public of the package as a whole",
    "compat/test_confluent_kafka.py": "the names of compat/confluent_kafka, which only hands them on",
    "test_java_checks.py": "the tables beside this folder",
    "_transactions/test_model.py": "random histories against a model of a broker",
    "tools/test_look.py": "tools/look.sh, and what make refuses",
    "testing/test_forward.py": "several modules of testing",
}
CYTHON = ("import cython", "from cython.cimports")
# The fork keeps the price of a fresh process low enough to pay it for every module.
IMPORT_EACH = """
import importlib, os, sys, traceback
failed = 0
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except BaseException:
            print(f"--- {name}")
            traceback.print_exc(limit=-1, file=sys.stdout)
            sys.stdout.flush()
            os._exit(1)
        os._exit(0)
    failed += os.waitpid(child, 0)[1] != 0
sys.exit(failed != 0)
"""


def sources() -> list[str]:
    """Every module below the package with something in it, as a path relative to it."""
    return sorted(
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.name != "__main__.py" and (path.name != "__init__.py" or has_code(path))
    )


def has_code(path: Path) -> bool:
    """Whether a file does more than to re-export: it has a class, or a function other than ``__dir__``."""
    body = ast.parse(path.read_text()).body
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name != "__dir__" for node in body)


def module_name(source: str) -> str:
    """``_network/client.py`` as ``forebay._network.client``."""
    return ".".join(["forebay", *Path(source).with_suffix("").parts]).removesuffix(".__init__")


def expected_tests(source: str) -> list[str]:
    """Where the tests of a source may stand; private parts of a public package may be tried through its face."""
    path = Path(source)
    stem = path.parent.name if path.name == "__init__.py" else path.stem
    folder = path.parent.parent if path.name == "__init__.py" else path.parent
    places = [folder / f"test_{stem.lstrip('_')}.py"]
    if path.stem.startswith("_") and path.parent.name and not path.parent.name.startswith("_"):
        places.append(path.parent.parent / f"test_{path.parent.name}.py")
    return [str(place) for place in places]


def is_about_a_topic(test: str, mirrored: set[str]) -> bool:
    """Whether it goes on with the tests of a source: ``test_manager_epochs.py`` beside ``test_manager.py``."""
    path = Path(test)
    words = path.stem.split("_")
    firsts = [path.with_name("_".join(words[:count]) + ".py") for count in range(2, len(words))]
    return any(str(first) in mirrored and (UNIT / first).exists() for first in firsts)


def test_every_source_has_its_test_module() -> None:
    missing = {
        source: expected_tests(source)[0]
        for source in sources()
        if source not in TESTED_ELSEWHERE and not any((UNIT / place).exists() for place in expected_tests(source))
    }
    for source, reason in TESTED_ELSEWHERE.items():
        print(f"{source}: {reason}")
    assert not missing, "\n".join(f"{source} has no {test}" for source, test in missing.items())


def test_every_unit_test_has_its_source() -> None:
    mirrored = {place for source in sources() for place in expected_tests(source)}
    for path in [*(ROOT / "tools").rglob("*.py"), *(ROOT / "demo").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]:
        folder = path.relative_to(ROOT).parent
        mirrored |= {str(folder / f"test_{path.stem}.py"), f"{folder.parts[0]}/test_{path.stem}.py"}
    strays = {str(path.relative_to(UNIT)) for path in UNIT.rglob("test_*.py")} - mirrored - set(BEYOND_THE_MIRROR)
    assert [stray for stray in strays if not is_about_a_topic(stray, mirrored)] == []


def test_a_topic_needs_the_source_and_its_first_test_module() -> None:
    mirrored = {"_transactions/test_manager.py", "_transactions/test_unwritten.py"}
    assert is_about_a_topic("_transactions/test_manager_in_doubt.py", mirrored)
    assert not is_about_a_topic("_transactions/test_managers.py", mirrored)
    assert not is_about_a_topic("_transactions/test_unwritten_part.py", mirrored)
    assert not is_about_a_topic("_network/test_manager_epochs.py", mirrored)


@pytest.mark.parametrize("source", TESTED_ELSEWHERE)
def test_an_exception_is_still_needed(source: str) -> None:
    assert (PACKAGE / source).exists()
    assert not (UNIT / expected_tests(source)[0]).exists()


def test_every_module_imports_alone() -> None:
    names = [module_name(source) for source in sources() if source != "testing/_broker_process.py"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", IMPORT_EACH, *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("source", [source for source in sources() if "/_" not in f"/{source}"])
def test_what_a_public_module_lists_is_there_and_all_it_defines(source: str) -> None:
    tree = ast.parse((PACKAGE / source).read_text())
    module = importlib.import_module(module_name(source))
    listed = getattr(module, "__all__", None)
    assert module.__doc__
    if listed is None:
        return
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert {name for name in defined if not name.startswith("_")} <= set(listed)
    assert [name for name in listed if not hasattr(module, name)] == []


def test_the_build_compiles_every_module_written_for_it_and_no_other() -> None:
    tree = ast.parse((ROOT / "setup.py").read_text())
    (listed,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMPILED"
    ]
    written = [
        module_name(str(path.relative_to(PACKAGE))).removeprefix("forebay.")
        for path in PACKAGE.rglob("*.py")
        if any(ast.unparse(node).startswith(CYTHON) for node in ast.parse(path.read_text()).body)
    ]
    assert sorted(listed) == sorted(written)


def with_finalisers() -> list[Any]:
    """Every class of the package that has a ``__del__`` of its own in Python.

    That of ``_arrow/batch.py`` is C's, whose fields are zero; interpreted, it is for tests alone.
    """
    named = [source for source in sources() if "def __del__" in text_of(source) and source != "_arrow/batch.py"]
    modules = [importlib.import_module(module_name(source)) for source in named]
    found = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    return sorted((each for each in found if "__del__" in vars(each)), key=lambda each: each.__qualname__)


def text_of(source: str) -> str:
    return (PACKAGE / source).read_text()


@pytest.mark.parametrize("owner", with_finalisers(), ids=lambda owner: owner.__name__)
def test_a_finaliser_runs_where_a_signal_handler_raised_before_the_first_line_of_init(owner: Any) -> None:
    owner.__new__(owner).__del__()


# A row of a ``cdef enum`` in a .pxd.
ENUMERATOR = re.compile(r"^    ([A-Z][A-Z0-9_]*) = (-?\d+)\b", re.MULTILINE)
DECLARED = [path for path in sorted(PACKAGE.rglob("*.pxd")) if ENUMERATOR.search(path.read_text())]


@pytest.mark.skipif(forebay.implementation == "compiled", reason="compares the names of the interpreted form")
@pytest.mark.parametrize("declarations", DECLARED, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_both_forms_have_the_same_constants(declarations: Path) -> None:
    module = importlib.import_module(module_name(str(declarations.with_suffix(".py").relative_to(PACKAGE))))
    found = {name: int(number) for name, number in ENUMERATOR.findall(declarations.read_text())}
    assert {name: getattr(module, name, None) for name in found} == found


def test_the_package_says_which_form_it_runs() -> None:
    assert forebay.implementation in ("compiled", "interpreted")


def test_the_package_exports_what_it_lists_and_refuses_what_it_does_not_have() -> None:
    assert set(forebay.__all__) <= set(dir(forebay))
    assert forebay.KafkaProducer.__module__ == "forebay.producer.threads"
    with pytest.raises(AttributeError, match="has no attribute 'Producer'"):
        forebay.Producer  # noqa: B018


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("from forebay import Control", "forebay.AdminClient"),
        ("from forebay.errors import TimeoutError", "KafkaTimeoutError, which is a TimeoutError of Python, too"),
    ],
)
def test_an_old_name_is_refused_with_the_new_one(line: str, new: str) -> None:
    with pytest.raises(ImportError, match=new):
        exec(line)


def test_every_folder_of_tests_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
