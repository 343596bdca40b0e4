"""Which form is chosen, and what is said when there is none."""

from __future__ import annotations

import json.decoder
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

import forebay
from forebay import _interpreted
from forebay._interpreted import CimportFinder, SourceOnlyFinder, choose

SHOW = "import forebay, forebay._delivery.future as f; print(forebay.implementation, f.__file__.rsplit('.', 1)[1])"


def run(
    value: str | None, program: str = SHOW, folder: Path = Path(forebay.__file__).parents[1]
) -> subprocess.CompletedProcess[str]:
    """The program in a Python of its own, with the variable set to ``value`` and the package in ``folder``."""
    environment = {"PYTHONPATH": str(folder)}
    if value is not None:
        environment[_interpreted.VARIABLE] = value
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)


def pick(folder: Path, *, interpreted: bool, meta_path: list[Any]) -> str:
    return choose("basin", folder, interpreted=interpreted, executable="python9", meta_path=meta_path)


def test_the_variable_takes_the_source_beside_a_compiled_module() -> None:
    assert run("1").stdout.split() == ["interpreted", "py"]


@pytest.mark.skipif(forebay.implementation != "compiled", reason="the modules may not be compiled at all")
@pytest.mark.parametrize("value", [None, "", "0"])
def test_without_it_the_compiled_module_is_taken(value: str | None) -> None:
    assert run(value).stdout.split() == ["compiled", "so"]


def test_a_folder_with_compiled_modules_is_compiled_and_leaves_the_import_system_alone(tmp_path: Path) -> None:
    witness = tmp_path / _interpreted.WITNESS.replace(".", "/")
    witness.parent.mkdir()
    witness.with_suffix(EXTENSION_SUFFIXES[0]).touch()
    meta_path: list[Any] = []
    assert pick(tmp_path, interpreted=False, meta_path=meta_path) == "compiled"
    assert meta_path == []


def test_without_modules_for_this_python_the_first_one_needed_says_what_to_do(tmp_path: Path) -> None:
    witness = tmp_path / _interpreted.WITNESS.replace(".", "/")
    witness.parent.mkdir()
    witness.with_suffix(".cpython-27-other.so").touch()
    meta_path: list[Any] = []
    assert pick(tmp_path, interpreted=False, meta_path=meta_path) == "missing"
    (finder,) = meta_path
    assert finder.find_spec("basin.errors", [str(tmp_path)]) is None
    with pytest.raises(ImportError, match=r"not compiled for python9.*make build.*FOREBAY_INTERPRETED=1"):
        finder.find_spec("basin._delivery", [str(tmp_path)])


def test_an_installation_without_compiled_modules_has_errors_and_options_but_no_producer(tmp_path: Path) -> None:
    source = Path(forebay.__file__).parent
    shutil.copytree(source, tmp_path / "forebay", ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
    program = (
        "import forebay; print(forebay.implementation, forebay.errors.KafkaError.__name__, forebay.ProducerConfig)\n"
        "from forebay import KafkaProducer"
    )
    done = run(None, program, tmp_path)
    assert done.stdout.split()[:2] == ["missing", "KafkaError"]
    assert f"ImportError: forebay in {tmp_path / 'forebay'} is not compiled for {sys.executable}" in done.stderr


def test_the_interpreted_form_puts_its_finder_first(tmp_path: Path) -> None:
    meta_path: list[Any] = ["another"]
    assert pick(tmp_path, interpreted=True, meta_path=meta_path) == "interpreted"
    assert [type(finder) for finder in meta_path[:2]] == [CimportFinder, SourceOnlyFinder]
    assert meta_path[2:] == ["another"]


def test_a_cimport_of_its_package_is_the_module_itself_with_its_own_spec() -> None:
    finder = CimportFinder("json")
    assert finder.find_spec("cython.cimports.river.pool", None) is None
    assert finder.find_spec("json.decoder", None) is None
    spec = finder.find_spec("cython.cimports.json.decoder", None)
    assert spec is not None
    own = json.decoder.__spec__
    module = finder.create_module(spec)
    module.__spec__ = spec  # as the import system does
    finder.exec_module(module)
    assert module is json.decoder and module.__spec__ is own


def test_the_finder_sees_sources_of_its_package_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "pool.py").touch()
    (tmp_path / f"pool{EXTENSION_SUFFIXES[0]}").touch()
    (tmp_path / f"binary{EXTENSION_SUFFIXES[0]}").touch()
    finder, path = SourceOnlyFinder("basin"), [str(tmp_path)]
    found = finder.find_spec("basin.pool", path)
    assert found is not None
    assert found.origin == str(tmp_path / "pool.py")
    assert finder.find_spec("basin.binary", path) is None
    assert finder.find_spec("river.pool", path) is None
    assert finder.find_spec("basin", None) is None


def test_new_sources_are_seen_after_the_caches_are_dropped(tmp_path: Path) -> None:
    finder = SourceOnlyFinder("basin")
    assert finder.find_spec("basin.late", [str(tmp_path)]) is None
    (tmp_path / "late.py").touch()
    finder.invalidate_caches()
    assert finder.find_spec("basin.late", [str(tmp_path)]) is not None
