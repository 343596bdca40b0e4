"""A build in place: a source that is edited while it runs is compiled by the next one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.package.conftest import ROOT

#: Edits the source between Cython's look at it and the C that comes of that.
BUILD = """
import runpy, sys
from pathlib import Path
from setuptools import Extension, setup

setup_py, edits = sys.argv.pop(1), sys.argv.pop(1)
program = runpy.run_path(setup_py, run_name="setup")
inner = program["BuildModules"].build_extensions.__globals__
translated = inner["translated"]

def edited(module):
    found = translated(module)
    if edits == "edits" and module.name == "tiny":
        Path("tiny.py").write_text("VALUE = 2")
        Path("tiny.c").write_text(Path("tiny.c").read_text())  # which is written last
    return found

inner["translated"] = edited
setup(name="tiny", ext_modules=[Extension("tiny", ["tiny.py"])], cmdclass={"build_ext": program["BuildModules"]})
"""
#: Stands in for Python: counts the builds, and edits a source in the first one.  Until the system's clock of files,
#: which ticks every few ms, tells that edit from the build's begin.
FAKE_PYTHON = """#!/bin/sh
echo "$@" >> builds
[ "$(grep -c build_ext builds)" -gt 1 ] && exit
until [ -n "$(find src/forebay/module.py -newer "$(find . -name '*.begun')")" ]; do
    echo "edited" >> src/forebay/module.py
done
"""


@pytest.mark.rest("an edit within the moment of a build")
def test_what_is_edited_during_a_build_is_translated_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text("VALUE = 1")
    (tmp_path / "build.py").write_text(BUILD)

    def build(edits: str) -> str:
        command = [sys.executable, "build.py", str(ROOT / "setup.py"), edits, "--quiet", "build_ext", "--inplace"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        program = "import tiny; print(tiny.__file__.rpartition('.')[2], tiny.VALUE)"
        done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    assert build("edits") == "so 1"
    assert build("nothing") == "so 2"


def test_make_builds_again_after_an_edit_during_a_build(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    for name in ("pyproject.toml", "setup.py", "src/forebay/module.py", "venv/bin/python", "venv/.tools"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "venv/bin/python").write_text(FAKE_PYTHON)
    (tmp_path / "venv/bin/python").chmod(0o755)
    counts = []
    for _ in range(3):
        subprocess.run(["make", "build", "VENV=venv", "PYTHON=python3"], cwd=tmp_path, check=True, capture_output=True)
        counts.append((tmp_path / "builds").read_text().count("build_ext"))
    assert counts == [1, 2, 2]
