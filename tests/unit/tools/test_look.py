"""The look at the machine: all that is missing is in one message, with the commands that install it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

LOOK = Path(__file__).parents[3] / "tools" / "look.sh"
SYSTEM = ("sh", "sed", "head", "tail", "rm", "mktemp", "dirname", "df", "awk")
PYTHON = "echo"
"""What a Python prints that lacks nothing."""
ALL = {"python": PYTHON, "cc": "true", "java": "echo 'openjdk version \"17.0.1\"'", "mvn": "true"}
Look = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Looks at a machine that has these programs and the system's own; a program is a line of shell."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in SYSTEM:
        (programs / name).symlink_to(str(shutil.which(name)))

    def run(
        has: dict[str, str], python: str = "python", room: int = 0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        for name, line in has.items():
            (programs / name).write_text(f"#!/bin/sh\n{line}\n")
            (programs / name).chmod(0o755)
        command = [shutil.which("sh") or "sh", str(LOOK), python, str(tmp_path / "env"), str(room), "java", "maven"]
        environment = {"PATH": str(programs), "TMPDIR": str(tmp_path), **variables}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def test_nothing_is_said_where_nothing_is_missing(look: Look) -> None:
    done = look(ALL, room=1)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_all_that_is_missing_is_in_one_message(look: Look) -> None:
    done = look({}, python="")
    assert done.returncode == 1
    missing = [line for line in done.stderr.splitlines() if line.startswith("  - ")]
    assert len(missing) == 4
    for word, line in zip(("Python 3.11", "C compiler", "Java 17", "Maven"), missing, strict=True):
        assert word in line
    for system, packages in (
        ("Debian", ("python3-venv", "python3-dev", "gcc", "libc6-dev", "default-jre-headless", "maven")),
        ("Fedora", ("python3-devel", "gcc", "java-21-openjdk-headless", "maven")),
        ("macOS", ("python@3.13", "xcode-select --install", "openjdk@21", "maven")),
    ):
        (line,) = [line for line in done.stderr.splitlines() if line.startswith(f"  {system}")]
        assert all(package in line for package in packages)


@pytest.mark.parametrize(
    ("lack", "words"),
    [
        ({"python": "echo version 3.9.2"}, ["'python' is 3.9.2"]),
        ({"python": "echo venv"}, ["module venv", "python3-venv"]),
        ({"python": "echo headers"}, ["Python.h", "python3-dev"]),
        ({"python": "echo venv; echo headers"}, ["module venv", "Python.h"]),
        ({"python": "echo 'no such version'; exit 1"}, ["no such version"]),
        ({"cc": "exit 1"}, ["'cc' compiles nothing here", "libc6-dev"]),
        ({"java": "echo 'openjdk version \"11.0.2\"'"}, ["it is 11"]),
        ({"java": "echo 'get it from java.com'; exit 1"}, ["Java 17 or later (on the PATH"]),
    ],
    ids=["old", "venv", "headers", "both", "broken", "compiler", "old-java", "java-of-macos"],
)
def test_what_is_there_and_will_not_do_is_named(look: Look, lack: dict[str, str], words: list[str]) -> None:
    done = look({**ALL, **lack})
    assert done.returncode == 1
    for word in words:
        assert word in done.stderr
    assert done.stderr.count("  - ") == (2 if lack == {"python": "echo venv; echo headers"} else 1)


def test_a_python_that_is_not_there_is_named(look: Look) -> None:
    done = look(ALL, python="python3.99")
    assert done.returncode == 1
    assert "there is no 'python3.99'" in done.stderr


def test_a_java_home_without_java_is_named(look: Look, tmp_path: Path) -> None:
    done = look(ALL, JAVA_HOME=str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert f"where JAVA_HOME is, {tmp_path / 'nowhere'}" in done.stderr


def test_a_full_disk_is_told_before_anything_is_written(look: Look) -> None:
    done = look(ALL, room=10**9)
    assert done.returncode == 1
    assert "MiB are free, about 1000000000 are needed" in done.stderr
    assert "apt-get" not in done.stderr


def test_this_python_lacks_nothing(look: Look) -> None:
    done = look({name: line for name, line in ALL.items() if name != "python"}, python=sys.executable)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("demo", "PYTHN=python3"), "there is no variable PYTHN; there are PYTHON "),
        (("test", "python=python3"), "there is no variable python; there are PYTHON "),
        (("demo", "PYTHON=python3.99", "VENV=nowhere"), "there is no 'python3.99'"),
        (("setup", "PYTHON=python3.99"), "there is no 'python3.99'"),
    ],
)
def test_make_refuses_what_it_cannot_use(given: tuple[str, ...], said: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", *given], cwd=LOOK.parents[1], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
