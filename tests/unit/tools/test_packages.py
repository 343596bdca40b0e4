"""Filling the environment: what pip says becomes progress, the time of downloads, and one sentence where it fails."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tools import packages
from tools.packages import PackagesMissing, Progress, install, main, shortened, why
from tools.times import noted

FAILURES = [
    (
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError'\nERROR: None found",
        "does not reach a package index",
    ),
    (
        "Temporary failure in name resolution\nERROR: No matching distribution found for rich",
        "does not reach a package",
    ),
    ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "the disk is full"),
    ("ERROR: No matching distribution found for rich>=99\n", "No matching distribution found for rich>=99"),
    ("something else\nat last", "pip failed: at last"),
    ("", "pip failed: it said nothing"),
]
PIP = """#!/bin/sh
case "$*" in *"-m pip "*) ;; *) exit 9 ;; esac
printf '%s\\n' "$*" >> {arguments}
printf '%b' '{said}'
exit {status}
"""


def environment_with_pip(folder: Path, said: str, status: int = 0) -> Path:
    """A folder whose Python is a program that answers like pip."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(PIP.format(said=said, status=status, arguments=folder / "arguments"))
    python.chmod(0o755)
    return folder


@pytest.mark.parametrize(("said", "expected"), FAILURES)
def test_a_failure_is_one_sentence(said: str, expected: str) -> None:
    sentence = why(said, Path("folder"))
    assert expected in sentence
    assert sentence.endswith("all that pip said is in folder/pip.log")
    assert "\n" not in sentence


def test_steps_are_said_and_the_whole_output_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "Collecting rich\\n  Downloading rich-15.whl (310 kB)\\nnoise\\nInstalling collected packages: rich\\n"
    folder = environment_with_pip(tmp_path, said)
    install(folder, ["rich>=13"])
    assert capsys.readouterr().out == (
        "packages: downloading rich-15.whl (310 kB)\npackages: installing collected packages rich\n"
    )
    assert (folder / "pip.log").read_text() == said.replace("\\n", "\n")
    assert (folder / "arguments").read_text().split()[-1] == "rich>=13"


def test_the_time_of_downloads_is_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 1.0, 2.0, 5.0, 9.0, 9.5, 10.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    progress = Progress()  # at 0
    progress.see("Collecting rich")  # at 1
    progress.see("  Downloading rich (310 kB)")  # from 2 to 5
    progress.see("  Downloading pygments (1 MB)")  # from 5 to 9
    progress.see("Installing collected packages: rich")  # at 9
    progress.see("Successfully installed")
    assert progress.downloads == 7.0


def test_a_long_step_is_said_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(packages, "STILL_S", 0.0)
    said = ""
    with Progress() as progress:
        progress.see("  Downloading rich (310 kB)")
        while "still downloading rich (310 kB)\n" not in said:
            said += capsys.readouterr().out
    assert said.count("packages: downloading") == 1


def test_the_demo_gets_pyspark_first_and_uncompressed(tmp_path: Path) -> None:
    environment_with_pip(tmp_path, "")
    assert main([str(tmp_path), "demo"]) == 0
    first, second = (tmp_path / "arguments").read_text().splitlines()
    assert "--config-settings=--build-option=--compression=stored" in first
    assert first.rpartition(" ")[2].startswith("pyspark>=")
    assert second.endswith("-e .[demo]")
    assert set(noted(tmp_path, 0)) == {"packages (demo)", "downloads (demo)"}


def test_a_failure_ends_the_command_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment_with_pip(tmp_path, "ERROR: No space left on device", 1)
    assert main([str(tmp_path), "demo"]) == 1
    assert capsys.readouterr().err.startswith("forebay: the disk is full: ")
    with pytest.raises(PackagesMissing):
        install(tmp_path, ["rich"])


def test_names_are_cut_to_a_line() -> None:
    assert shortened("short") == "short"
    assert shortened("x" * 100) == "x" * 60 + " ..."
