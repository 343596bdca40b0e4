"""What a wheel may not be, and the time that everything built of a commit has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import forebay
from tools.wheels.build import LARGEST_WHEEL, last_commit, why_not

COMPILED = "forebay-0.1.0-cp311-cp311-manylinux_2_17_x86_64.whl"


@pytest.mark.parametrize(
    ("name", "size", "words"),
    [
        (COMPILED, LARGEST_WHEEL, ""),
        (COMPILED, LARGEST_WHEEL + 1, f"{COMPILED} has 4,000,001 bytes, allowed: 4,000,000"),
        ("forebay-0.1.0-py3-none-any.whl", 1, "forebay-0.1.0-py3-none-any.whl has no compiled modules"),
    ],
)
def test_why_a_wheel_is_refused(name: str, size: int, words: str) -> None:
    assert why_not(Path(name), size) == words


def test_the_time_is_that_of_the_last_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    dates = {"GIT_COMMITTER_DATE": "1700000000 +0100"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in dates.items():
            patch.setenv(name, value)
        git("commit", "--allow-empty", "-m", "a")
    assert last_commit(tmp_path) == "1700000000"


NOT_IN_A_WHEEL = (".c", ".h", ".pxd", ".pyc", ".so")  # .so: of other Pythons


@pytest.mark.skipif(forebay.implementation != "compiled", reason="weighs the compiled modules")
@pytest.mark.skipif(
    "FOREBAY_BUILD_CHECKED" in os.environ, reason="weighs what a wheel holds, which is never this build"
)
@pytest.mark.skipif(sys.platform != "linux", reason="strips modules with the options of GNU's tools")
def test_a_wheel_of_these_modules_would_be_allowed(tmp_path: Path) -> None:
    """Each file as a wheel has it, which takes minutes to make: modules without symbols, everything deflated."""
    strip = shutil.which("strip")
    assert strip is not None, "binutils has it, which comes with each C compiler"
    size = 0
    for path in Path(forebay.__file__).parent.rglob("*"):
        if path.name.endswith(EXTENSION_SUFFIXES[0]):
            if not path.with_name(path.name.partition(".")[0] + ".py").exists():
                continue  # left over from a source that is gone
            subprocess.run([strip, "-o", tmp_path / "stripped", path], check=True)
            size += len(zlib.compress((tmp_path / "stripped").read_bytes(), 9))
        elif path.is_file() and path.suffix not in NOT_IN_A_WHEEL:
            size += len(zlib.compress(path.read_bytes(), 9))
    assert LARGEST_WHEEL // 2 < size < LARGEST_WHEEL
