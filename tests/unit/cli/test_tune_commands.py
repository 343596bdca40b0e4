"""``forebay tune``: what its flags hand on."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from forebay.cli import tune as tune_command
from forebay.cli import tune_real
from forebay.cli.commands import execute


def test_the_flags_of_calibrate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    def calibrated(config: Any, topic: str, output: str, write: Any, sure: Any) -> int:
        seen.append((config["bootstrap.servers"], config["max.block.ms"], topic, output, sure("?")))
        return 0

    monkeypatch.setattr(tune_real, "calibrated", calibrated)
    assert execute(["tune", "calibrate", "-b", "h:1", "-t", "scratch", "-o", "c.toml", "--timeout", "3", "--yes"]) == 0
    assert seen == [(("h:1",), 3000, "scratch", "c.toml", True)]
    assert execute(["tune", "calibrate", "-b", "h:1"]) == 2
    assert "Missing option '-t' / '--topic'" in capsys.readouterr().err
    assert execute(["tune", "calibrate", "--topic", "t", "--yes"]) == 2
    assert "no broker is named" in capsys.readouterr().err


def test_the_flags_of_check(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def checked(path: str, given: Any, config: Any, topic: str, write: Any, sure: Any, **more: Any) -> int:
        seen.append((path, given, config["max.block.ms"], topic, sure("?"), more))
        return 1

    monkeypatch.setattr(tune_real, "checked", checked)
    flags = ["-b", "h:1", "-t", "load", "-X", "linger.ms=7", "--seconds", "5", "--yes", "--json"]
    assert execute(["tune", "check", "load.toml", *flags]) == 1
    given = {"linger.ms": "7", "bootstrap.servers": "h:1"}
    assert seen == [("load.toml", given, 10_000, "load", True, {"seconds": 5.0, "seed": 1, "as_json": True})]


def test_the_flags_of_predict_advise_and_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def noted(name: str) -> Any:
        def called(path: str, *_given: Any, **more: Any) -> int:
            seen[name] = (path, more)
            return 0

        return called

    monkeypatch.setattr(tune_command, "predicted", noted("predict"))
    monkeypatch.setattr(tune_command, "advised", noted("advise"))
    monkeypatch.setattr(tune_real, "stalls_watched", noted("stalls"))
    assert execute(["tune", "predict", "load.toml", "--seeds", "5", "--seed", "2"]) == 0
    assert execute(["tune", "advise", "load.toml", "--workers", "3"]) == 0
    assert execute(["tune", "stalls", "s.json", "--seconds", "2"]) == 0
    wanted = {"as_json": False, "seed": 2, "seeds": 5, "seconds": None, "sample": None, "report": None}
    assert seen["predict"] == ("load.toml", wanted)
    assert seen["advise"][1]["workers"] == 3
    assert seen["stalls"] == ("s.json", {"seconds": 2.0})
    assert execute(["tune", "advise", "load.toml", "--workers", "0"]) == 2


def test_nobody_to_measure_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.socket() as closed:  # bound, and nobody listens
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        arguments = ["-b", address, "-t", "scratch", "--timeout", "0.2", "--yes", "-o", str(tmp_path / "cluster.toml")]
        assert execute(["tune", "calibrate", *arguments]) == 2
    shown = capsys.readouterr()
    assert f"{address} did not answer within 0.2 s: " in shown.err
    assert len(shown.err.splitlines()) == 1
