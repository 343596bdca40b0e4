"""What an installation from source says where it cannot compile, and what it needs where it is not to compile."""

from __future__ import annotations

import email
import os
import re
import runpy
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.package.conftest import ROOT

WITHOUT_A_COMPILER = [
    {"CC": "/nonexistent/cc"},
    {"PATH": str(Path(sys.executable).parent), "CC": ""},
    {"CC": "false"},  # there is one, and it fails, as one without the system's headers
]


def build(tree: Path, to: Path, surroundings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in {**os.environ, **surroundings}.items() if value}
    if "FOREBAY_INTERPRETED" not in surroundings:
        environment.pop("FOREBAY_INTERPRETED", None)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(to), "."]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.rest("what a machine without a compiler is told")
@pytest.mark.parametrize("surroundings", WITHOUT_A_COMPILER, ids=["wrong", "none", "broken"])
def test_without_a_compiler_one_line_says_what_can_be_done(
    source_tree: Path, tmp_path: Path, surroundings: dict[str, str]
) -> None:
    done = build(source_tree, tmp_path, surroundings)
    assert done.returncode != 0
    said = {line.strip() for line in (done.stdout + done.stderr).splitlines() if "forebay: " in line}
    assert len(said) == 1, done.stdout + done.stderr
    (line,) = said
    for word in ("C compiler", "python3-dev", "FOREBAY_INTERPRETED=1"):
        assert word in line
    assert "Traceback" not in done.stdout + done.stderr
    assert not list((source_tree / "src").rglob("*.c")), "nothing is translated where nothing can be compiled"


def requirements(wheel: Path) -> list[str]:
    (name,) = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA")]
    told = email.message_from_bytes(zipfile.ZipFile(wheel).read(name)).get_all("Requires-Dist") or []
    return [each for each in told if "extra ==" not in each]


def test_a_plain_python_gets_a_package_for_every_codec(wheel: Path) -> None:
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not [each for each in requirements(wheel) if each.startswith("zstandard")]
    else:
        assert {re.split(r"[><=; ]", each)[0] for each in requirements(wheel)} == {"zstandard", "cramjam"}


def test_a_python_without_the_gil_gets_those_that_are_built_for_it() -> None:
    """No build of cramjam for 3.13t, of lz4 and zstandard for 3.14t."""
    program = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")
    chosen = [Requirement(each) for each in program["dependencies"](True)]
    for version, expected in (("3.13", {"lz4", "backports.zstd"}), ("3.14", {"cramjam"}), ("3.15", {"cramjam"})):
        surroundings = {"python_version": version}
        found = {each.name for each in chosen if each.marker is None or each.marker.evaluate(surroundings)}
        assert found == expected


@pytest.mark.rest("the interpreted form")
def test_the_interpreted_form_is_installed_without_one(source_tree: Path, tmp_path: Path) -> None:
    done = build(source_tree, tmp_path, {"CC": "/nonexistent/cc", "FOREBAY_INTERPRETED": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = tmp_path.glob("forebay-*-py3-none-any.whl")
    names = zipfile.ZipFile(built).namelist()
    assert {"forebay/py.typed", "forebay/producer/_path.py", "forebay/producer/_path.pyi"} <= set(names)
    assert not [name for name in names if name.endswith((".so", ".c"))]
