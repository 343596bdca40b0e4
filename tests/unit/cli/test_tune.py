"""``forebay tune``: a file to begin with, and what its settings give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forebay.cli.commands import execute
from forebay.tune import advice
from forebay.tune.racing import Effort

LOAD = """
[load]
rate = 500
sizes = 100
topics = {orders = 4}
[cluster]
nodes = 2
[goal]
p99_ms = 50
[settings]
"linger.ms" = 5
"""


def written(folder: Path, text: str = LOAD) -> str:
    path = folder / "load.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_to_begin_with_can_be_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute(["tune", "init"]) == 0
    assert execute(["tune", "predict", "load.toml", "--seconds", "1"]) == 0
    shown = capsys.readouterr()
    assert "load.toml is written" in shown.out
    assert "2,000 records/s" in shown.out
    assert shown.err == ""


def test_a_file_that_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    assert execute(["tune", "init", path]) == 2
    assert "is there already" in capsys.readouterr().err
    assert Path(path).read_text(encoding="utf-8") == LOAD
    assert execute(["tune", "init", str(tmp_path / "none" / "load.toml")]) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advice with few short runs."""
    effort = Effort(first_seeds=2, first_seconds=0.3, last=2, last_seeds=2, last_seconds=0.5, trial_seconds=0.3)
    monkeypatch.setattr(advice, "effort_for", lambda load: effort)


@pytest.mark.usefixtures("quick")
def test_advice_and_the_settings_it_proposes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, properties = written(tmp_path), tmp_path / "producer.properties"
    question = ["tune", "advise", path, "--seed", "3", "--goal", "p99_ms=30", "-X", "linger.ms=0"]
    assert execute([*question, "--properties", str(properties)]) == 0
    text = capsys.readouterr().out
    assert "advice    set " in text and "goal      kept: p99_ms 30\n" in text
    proposed = dict(line.split("=", 1) for line in properties.read_text(encoding="utf-8").splitlines())
    assert float(proposed["linger.ms"]) > 0
    assert execute([*question, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"linger.ms": "0", **{name: str(value) for name, value in found["settings"].items()}} == proposed


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ("p99=5", "p99_ms"),
        ("p99_ms=soon", "p99_ms"),
        ("least=speed", "requests, latency, memory, cpu, bytes"),
    ],
)
def test_a_part_of_the_goal_that_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], goal: str, said: str
) -> None:
    assert execute(["tune", "advise", written(tmp_path), "--goal", goal]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("quick")
def test_a_goal_that_nothing_meets_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["tune", "advise", written(tmp_path), "--goal", "p99_ms=0.01"]) == 1
    assert "nothing that was tried keeps the goal" in capsys.readouterr().out


def test_text_and_json_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    assert execute(["tune", "predict", path, "--seconds", "2", "-X", "linger_ms=20", "--seed", "7"]) == 0
    text = capsys.readouterr().out
    assert execute(["tune", "predict", path, "--seconds", "2", "-X", "linger_ms=20", "--seed", "7", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "settings  linger.ms=20\n" in text
    assert "goal      kept: p99_ms 50\n" in text
    assert f"{found['latency']['p99']:,.2f}" in text
    assert (found["seed"], found["settings"]) == (7, {"linger.ms": "20"})


def test_a_limit_that_is_not_kept_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["tune", "predict", written(tmp_path), "--seconds", "2", "-X", "linger.ms=200"]) == 1
    assert "goal      not kept: p99_ms is 20" in capsys.readouterr().out


def test_a_load_that_is_not_served_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "[load]\nrate = 10\nsizes = 2000000\n")
    assert execute(["tune", "predict", path, "--seconds", "2"]) == 1
    shown = capsys.readouterr().out
    assert "MESSAGE_TOO_LARGE" in shown
    assert "the load is not served by these settings" in shown


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("[load]\nrat = 1", [], "load.toml: unknown key 'rat' in [load]; did you mean 'rate'?"),
        (LOAD, ["-X", "linger.sm=1"], "Unknown option 'linger.sm': did you mean 'linger.ms'?"),
        (LOAD, ["-X", "linger"], "write name=value"),
        (LOAD, ["-X", "transactional.id=a"], "transactions are not simulated"),
        (LOAD, ["--seconds", "0"], "0.0 is not in the range"),
        (LOAD, ["-X", "compression.type=lz4"], "compression = {ratio = 0.3}"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, more: list[str], said: str
) -> None:
    assert execute(["tune", "predict", written(tmp_path, text), *more]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert (shown.err.count("\n"), shown.out) == (1, "")
