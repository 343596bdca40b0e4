"""A place without a compiler, and which wheel a Python gets there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tools.wheels.room import (
    COMPILERS,
    LEFT_OUT,
    ROOT,
    Place,
    Python,
    pythons_here,
    try_wheel,
    wheel_for,
    without_compilers,
)


@pytest.mark.parametrize("name", ["cc", "gcc", "gcc-12", "x86_64-linux-gnu-gcc-12", "g++", "clang-19", "c99", "cpp"])
def test_what_is_a_compiler(name: str) -> None:
    assert COMPILERS.fullmatch(name)


@pytest.mark.parametrize("name", ["gcov", "cat", "ccrypt", "python3", "as", "clangd-format"])
def test_what_is_none(name: str) -> None:
    assert not COMPILERS.fullmatch(name)


def test_a_place_has_the_systems_commands_but_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system, links = tmp_path / "system", tmp_path / "links"
    for folder in (system, links):
        folder.mkdir()
    for name in ("gcc", "cc", "tool"):
        (system / name).write_text("#!/bin/sh\necho $CC > told\n")
        (system / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{system}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FOREBAY_INTERPRETED", "1")
    place = Place(None, tmp_path, without_compilers(links))
    assert place.run(["tool"]) == 0
    assert (tmp_path / "told").read_text() == "false\n"
    assert place.run(["sh", "-c", "command -v gcc || command -v cc"], check=False) != 0
    assert place.run(["sh", "-c", 'test -z "$FOREBAY_INTERPRETED$PYTHONPATH"'], check=False) == 0


def test_a_place_with_a_compiler_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "gcc").write_text("#!/bin/sh\n")
    (tmp_path / "gcc").chmod(0o755)
    place = Place(None, tmp_path, f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(SystemExit, match="there is a compiler in this place"):
        try_wheel(place, Path(sys.executable), tmp_path / "none.whl", [])


def test_the_newest_wheel_for_a_python_is_taken(tmp_path: Path) -> None:
    for age, name in enumerate(("0.2-cp311-cp311", "0.1-cp311-cp311", "0.3-cp313-cp313")):
        wheel = tmp_path / f"forebay-{name}-manylinux_2_17_x86_64.whl"
        wheel.touch()
        os.utime(wheel, (1000 - age, 1000 - age))
    found = wheel_for("cp311", tmp_path)
    assert found is not None and found.name.startswith("forebay-0.2-cp311")
    assert wheel_for("cp312", tmp_path) is None


def test_a_python_that_is_not_here_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = pythons_here(["python3.99", sys.executable])
    assert capsys.readouterr().out == "python3.99: not on this machine, so its wheel is not tried\n"
    assert found.tag == f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert found.lent() == Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    assert isinstance(found, Python)


@pytest.mark.parametrize("left", LEFT_OUT)
def test_what_is_left_out_is_still_there(left: str) -> None:
    assert (ROOT / left).exists()
