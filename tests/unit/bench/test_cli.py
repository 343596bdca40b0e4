"""The command lines that are measured: what is filled in, and what is left out with a reason."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.cli import BROKERS, FILE, TOPIC, Tool, kcat, measure_one, tools, write_lines
from bench.support import ChildFailed
from tools.kafka import RealKafka


class Counting:
    """A broker that says what the test tells it."""

    name = "counting"
    kafka: RealKafka | None = None
    bootstrap_servers = "here:1"

    def __init__(self, arrived: int) -> None:
        self._arrived = arrived

    def fresh_topic(self) -> str:
        return "fresh"

    def take(self, topic: str) -> int:
        assert topic == "fresh"
        return self._arrived

    def cpu_seconds(self) -> float:
        return 0


def checking(*expected: str) -> tuple[str, ...]:
    """A command that fails unless its arguments are these."""
    code = f"import sys; sys.exit('wrong: ' + repr(sys.argv[1:]) if sys.argv[1:] != {list(expected)!r} else 0)"
    return sys.executable, "-c", code


def test_lines_have_the_size_and_are_all_there(tmp_path: Path) -> None:
    write_lines(tmp_path / "x", 12, 20)
    lines = (tmp_path / "x").read_bytes().splitlines(keepends=True)
    assert [len(line) for line in lines] == [20] * 12
    assert [int(line.split()[0]) for line in lines[:10]] == list(range(10))


def test_a_run_is_filled_in_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "x"
    write_lines(file, 10, 20)
    tool = Tool("some", (*checking("here:1", "fresh", str(file)), BROKERS, TOPIC, FILE))
    found = measure_one(tool, file, 10, Counting(10))
    assert found["label"] == "some" and found["cpu_s_per_million"] > 0 and found["peak_mib"] > 0
    with pytest.raises(ChildFailed, match="some: status 0, 9 of 10 arrived"):
        measure_one(tool, file, 10, Counting(9))
    with pytest.raises(ChildFailed, match=r"status 1, 10 of 10 arrived: wrong: \['a'\]"):
        measure_one(Tool("some", (*checking("b"), "a")), file, 10, Counting(10))
    whole = f"import sys; sys.exit(len(sys.stdin.buffer.read()) != {10 * 20})"
    assert measure_one(Tool("stdin", (sys.executable, "-c", whole), by_input=True), file, 10, Counting(10))


def test_what_cannot_be_had_is_left_out_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(command: list[str], **settings: Any) -> None:
        raise subprocess.CalledProcessError(100, command)

    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(subprocess, "run", fail)
    with kcat() as found:
        assert found is None
    assert "without kcat: it is not on the path" in capsys.readouterr().err
    assert {tool.label for tool in tools(None, None)} == {"forebay produce", "forebay produce, keys", "forebay kcat"}
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    with kcat() as found:
        assert found == ("/bin/kcat", {})
    assert {"kcat", "kcat, keys"} <= {tool.label for tool in tools(found, None)}
