"""Builds the compiled form of ``prim_probe`` once a run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit._runtime import prim_probe

ROOT = Path(__file__).parents[3]
SETUP = """
from Cython.Build import cythonize
from setuptools import Extension, setup
module = Extension("compiled_probe", ["compiled_probe.py"], include_dirs=[{codec!r}])
directives = {{"boundscheck": False, "wraparound": False, "cdivision": True}}
setup(ext_modules=cythonize([module], include_path=[{source!r}], language_level=3, compiler_directives=directives))
"""


@pytest.fixture(scope="session")
def compiled_probe(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder = tmp_path_factory.mktemp("probe")
    shutil.copy(Path(__file__).with_name("prim_probe.py"), folder / "compiled_probe.py")
    source = ROOT / "src"
    (folder / "setup.py").write_text(SETUP.format(codec=str(source / "forebay" / "_runtime"), source=str(source)))
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder,
        check=True,
        capture_output=True,
        env={**os.environ, "CFLAGS": "-O1"},
    )
    (library,) = [path for path in folder.iterdir() if path.suffix in (".so", ".pyd")]
    spec = importlib.util.spec_from_file_location("compiled_probe", library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["interpreted", "compiled"])
def probe(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "interpreted":
        return prim_probe
    compiled: ModuleType = request.getfixturevalue("compiled_probe")
    return compiled
