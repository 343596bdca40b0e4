"""``forebay tune calibrate``: it asks, keeps what is another's, and says what it found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forebay.cli import tune_real
from forebay.cli.failure import CommandError
from forebay.config import ProducerConfig
from forebay.tune import Broker, Brokers, Costs, own_costs
from forebay.tune.calibrate import Calibration, Node

CONFIG = ProducerConfig(bootstrap_servers="host:9092")
FOUND = Calibration("scratch", (Node(3, "host:9092", Broker(rtt_ms=0.4, fixed_ms=2.5), 0.3, 2.9),), 744)
MEASURED = Costs(wake=0.02, turn=0.015, request=0.006, batch=0.002, record=0.0001)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, list[str], list[str]]]:
    """Runs it in a folder of its own; its exit code, its lines and its questions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tune_real, "calibrate", lambda config, topic, tell: FOUND)
    monkeypatch.setattr(own_costs, "measured", lambda: MEASURED)

    def call(output: str = "cluster.toml", *, sure: bool = True) -> tuple[int, list[str], list[str]]:
        lines: list[str] = []
        questions: list[str] = []

        def answer(question: str) -> bool:
            questions.append(question)
            return sure

        return tune_real.calibrated(CONFIG, "scratch", output, lines.append, answer), lines, questions

    return call


def test_what_was_found_is_written_and_said(run: Any) -> None:
    code, lines, questions = run()
    assert code == 0
    assert questions == ["Write hundreds of records to topic scratch of host:9092, about 12 MiB for each broker?"]
    assert lines[0].startswith("broker 3    round trip 0.4 ms, a request 2.5 ms")
    assert 'from 744 records; name it in a load\'s file: [cluster] file = "cluster.toml"' in lines[-1]
    Path("load.toml").write_text('[load]\nrate = 10\n[cluster]\nfile = "cluster.toml"\n', encoding="utf-8")
    assert Brokers.from_toml("load.toml").nodes == (Broker(rtt_ms=0.4, fixed_ms=2.5),)
    assert own_costs.kept(own_costs.cache_file(), own_costs.machine()) == MEASURED


def test_without_consent_nothing_is_written(run: Any) -> None:
    code, lines, _questions = run(sure=False)
    assert (code, lines) == (1, ["nothing was measured"])
    assert not Path("cluster.toml").exists()


def test_its_own_file_is_replaced_and_another_kept(run: Any) -> None:
    assert run()[0] == 0
    assert run()[0] == 0
    Path("load.toml").write_text("[load]\n", encoding="utf-8")
    with pytest.raises(CommandError, match=r"load\.toml is there already, and is no cluster that was measured"):
        run("load.toml")
    with pytest.raises(CommandError, match=r"none/c\.toml cannot be written: there is no such folder"):
        run("none/c.toml")
    with pytest.raises(CommandError, match="cannot be written: Is a directory"):
        run(".")
