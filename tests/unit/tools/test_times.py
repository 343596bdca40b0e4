"""The times of parts: noted by each, read by the last."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tools.times import main, note, noted


def test_each_part_has_its_newest_time(tmp_path: Path) -> None:
    assert noted(tmp_path, 0) == {}
    note(tmp_path, "compile", 3.0)
    note(tmp_path, "packages", 1.26)
    note(tmp_path, "compile", 2.0)
    assert noted(tmp_path, 0) == {"compile": 2.0, "packages": 1.3}


def test_what_an_earlier_run_noted_is_not_shown(tmp_path: Path) -> None:
    note(tmp_path, "compile", 3.0)
    assert noted(tmp_path, time.time() + 60) == {}


def test_a_command_is_run_and_its_status_kept(tmp_path: Path) -> None:
    assert main([str(tmp_path), "compile", sys.executable, "-c", "raise SystemExit(3)"]) == 3
    assert list(noted(tmp_path, 0)) == ["compile"]
