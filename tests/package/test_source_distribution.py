"""The source distribution: the same bytes for the same sources, whenever and by whomever it is built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.package.conftest import ROOT

pytestmark = pytest.mark.rest("a matter of releases")

PROGRAM = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
CARRIED = ("MANIFEST.in", "Makefile", "CHANGELOG.md", "CONTRIBUTING.md", "DESIGN.md", "tests", "tools")


def archive(tree: Path, to: Path, **surroundings: str) -> Path:
    environment = {**os.environ, "FOREBAY_INTERPRETED": "1", **surroundings}
    subprocess.run([sys.executable, "-c", PROGRAM, to], cwd=tree, env=environment, check=True, capture_output=True)
    (made,) = to.iterdir()
    return made


def test_the_same_sources_make_the_same_bytes(source_tree: Path, tmp_path: Path) -> None:
    made = []
    for number, mode in enumerate((0o644, 0o664)):
        tree = tmp_path / f"tree{number}"
        shutil.copytree(source_tree, tree)
        for name in CARRIED:
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tree / name)
        for file in tree.rglob("*.py"):
            os.utime(file, (1_600_000_000 + number, 1_600_000_000 + number))
            file.chmod(mode)
        made.append(archive(tree, tmp_path / f"made{number}", SOURCE_DATE_EPOCH="1700000000"))
    assert made[0].read_bytes() == made[1].read_bytes()
    with tarfile.open(made[0]) as tar:
        members = tar.getmembers()
    assert {member.mtime for member in members} == {1_700_000_000}
    assert {(member.uid, member.uname) for member in members} == {(0, "")}
    folder = made[0].name.removesuffix(".tar.gz")
    names = {member.name for member in members}
    assert {f"{folder}/{name}" for name in ("setup.py", "PKG-INFO", "src/forebay/producer/_path.py", *CARRIED)} <= names
    assert not [name for name in names if name.endswith((".so", ".pyc"))]


def test_without_the_variable_files_keep_their_times(source_tree: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(source_tree, tree)
    os.utime(tree / "setup.py", (1_600_000_000, 1_600_000_000))
    made = archive(tree, tmp_path / "made", SOURCE_DATE_EPOCH="")
    with tarfile.open(made) as tar:
        assert tar.getmember(f"{made.name.removesuffix('.tar.gz')}/setup.py").mtime == 1_600_000_000
