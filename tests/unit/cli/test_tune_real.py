"""``forebay tune calibrate`` and ``check``: they ask, keep what is another's, and say what they found."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forebay.cli import tune_real
from forebay.cli.failure import CommandError
from forebay.config import ProducerConfig
from forebay.errors import ConfigError
from forebay.tune import Broker, Brokers, Costs, Stalls, Workload, calibration, checking, own_costs, predict, real_check
from forebay.tune.calibration import Calibration, Node

CONFIG = ProducerConfig(bootstrap_servers="host:9092")
FOUND = Calibration("scratch", (Node(3, "host:9092", Broker(rtt_ms=0.4, fixed_ms=2.5), 0.3, 2.9),), 744)
STALLS = Stalls(seconds=10.0, long=((5.0, 4.0),), spread=(*[0.1] * 99, 0.2, 4.0))
MEASURED = Costs(wake=0.02, turn=0.015, request=0.006, batch=0.002, record=0.0001)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, list[str], list[str]]]:
    """Runs it in a folder of its own; its exit code, its lines and its questions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(calibration, "measure", lambda config, topic, tell: FOUND)
    monkeypatch.setattr(own_costs, "measured", lambda: MEASURED)
    monkeypatch.setattr(tune_real, "watch", lambda clock, wait, seconds: replace(STALLS, seconds=seconds))

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
    assert questions == ["Write up to 2,917 records and 18 MiB to topic scratch of host:9092 for each broker?"]
    assert lines[0].startswith("broker 3    round trip 0.4 ms, a request 2.5 ms")
    assert 'from 744 records; name it in a load\'s file: [cluster] file = "cluster.toml"' in lines[-1]
    Path("load.toml").write_text('[load]\nrate = 10\n[cluster]\nfile = "cluster.toml"\n', encoding="utf-8")
    assert Brokers.from_toml("load.toml").nodes == (Broker(rtt_ms=0.4, fixed_ms=2.5),)
    assert own_costs.kept(own_costs.cache_file(), own_costs.machine()) == MEASURED
    assert own_costs.kept_stalls(own_costs.cache_file(), own_costs.machine()) == STALLS
    assert "stalls      0.1 times a second for 0.5 ms or more; a thread wakes 0.1 ms late" in lines[-2]


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


def test_stalls_are_watched_into_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_real, "watch", lambda clock, wait, seconds: replace(STALLS, seconds=seconds))
    path = tmp_path / "stalls.json"
    lines: list[str] = []
    assert tune_real.stalls_watched(str(path), lines.append, seconds=30) == 0
    assert lines[0].startswith("this machine is watched for 30 s")
    assert f'[client] stalls = "{path}"' in lines[-1]
    assert Stalls.from_json(path) == replace(STALLS, seconds=30.0)
    assert tune_real.stalls_watched(str(path), lines.append, seconds=20) == 0
    assert Stalls.from_json(path) == replace(STALLS, seconds=20.0)


def test_a_file_that_is_none_of_stalls_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_real, "watch", lambda *_given: pytest.fail("it must not be watched"))
    path, lines = tmp_path / "load.toml", list[str]()
    path.write_text(LOAD, encoding="utf-8")
    with pytest.raises(CommandError, match=r"load\.toml is there already, and is no file of stalls"):
        tune_real.stalls_watched(str(path), lines.append, seconds=1)
    with pytest.raises(CommandError, match="cannot be written: there is no such folder"):
        tune_real.stalls_watched(str(tmp_path / "none" / "stalls.json"), lines.append, seconds=1)
    assert (path.read_text(encoding="utf-8"), lines) == (LOAD, [])


LOAD = """
[load]
rate = 100
topics = {orders = 3}
[cluster]
nodes = 2
[[cluster.outage]]
node = 1
seconds = [0.5, 0.9]
[settings]
"linger.ms" = 5
"""


@pytest.fixture
def run_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, list[str], list[Any]]]:
    """Checks with a producer that sends nothing, and gives what it is told to have measured."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made: list[Any] = []

    class Producer:
        def __init__(self, config: ProducerConfig) -> None:
            made.append(config)

        def __enter__(self) -> Producer:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    def measure(producer: Any, load: Workload, topic: str, **more: Any) -> checking.Measured:
        settings = {"linger.ms": made[0]["linger.ms"]}
        made.append((load.topics, topic, more["seconds"], more["batch_size"]))
        found = predict(load, settings, brokers=Brokers.alike(2), seconds=more["seconds"], seed=more["seed"])
        p50, p99 = found.latency.p50, found.latency.p99
        return checking.Measured(p50, p99, found.requests_s, found.fill, 0.0, found.sent, 0, STALLS)

    monkeypatch.setattr(real_check, "KafkaProducer", Producer)
    monkeypatch.setattr(checking, "scratch", lambda config, topic: (3, 2))
    monkeypatch.setattr(checking, "warm_up", lambda producer, topic, partitions: made.append(("warm", partitions)))
    monkeypatch.setattr(checking, "measure", measure)

    def call(
        text: str = LOAD, *, sure: bool = True, as_json: bool = False, **given: str
    ) -> tuple[int, list[str], list[Any]]:
        Path("load.toml").write_text(text, encoding="utf-8")
        lines: list[str] = []
        found = {"bootstrap.servers": "host:9092", **given}
        arguments = ("load.toml", found, CONFIG, "real", lines.append, lambda question: sure)
        return tune_real.checked(*arguments, seconds=2.0, seed=3, as_json=as_json), lines, made

    return call


def test_a_load_without_its_outages_is_sent_and_predicted(run_check: Any) -> None:
    code, lines, made = run_check()
    assert code == 0
    assert lines[0].splitlines()[0].split() == [
        *("predicted", "measured", "difference", "with", "stalls", "difference", "allowed")
    ]
    assert "outside" not in lines[0]
    config, warm, load = made
    assert (config["linger.ms"], config["enable.metrics.push"], config["bootstrap.servers"]) == (
        5,
        False,
        ("host:9092",),
    )
    assert (warm, load) == (("warm", 3), ((("real", 3),), "real", 2.0, 16_384))


def test_options_of_the_command_line_count_for_both(run_check: Any) -> None:
    code, lines, made = run_check(linger_ms="40")
    assert code == 0
    assert made[0]["linger.ms"] == 40
    assert float(lines[0].splitlines()[1].split()[2]) > 20


def test_a_figure_outside_is_exit_code_1(run_check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(checking.TOLERANCES, "p50, ms", -1.0)
    code, lines, _made = run_check()
    assert code == 1
    assert "outside" in lines[0]


def test_a_check_as_json(run_check: Any) -> None:
    code, lines, _made = run_check(as_json=True)
    found = json.loads(lines[0])
    assert (code, found["version"], found["kept"], found["topic"], found["seed"]) == (0, 1, True, "real", 3)
    assert found["rows"][0] | {"allowed": 0} == {
        "name": "p50, ms",
        "predicted": found["predicted"]["latency"]["p50"],
        "measured": found["measured"]["p50"],
        "allowed": 0,
        "stalled": found["rows"][0]["stalled"],
        "kept": True,
    }
    assert found["rows"][0]["stalled"] >= found["predicted"]["latency"]["p50"]


def test_what_the_file_says_of_the_client_counts_as_in_a_prediction(
    run_check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("stalls.json").write_text(STALLS.as_json(), encoding="utf-8")
    given: list[Any] = []

    def noted(*arguments: Any, **more: Any) -> Any:
        given.append((more["costs"], more["stalls"]))
        return predict(*arguments, **more)

    monkeypatch.setattr(real_check, "predict", noted)
    text = LOAD + '[client]\nbeside = "computing"\nstalls = "stalls.json"\n'
    run_check(text)
    (costs, stalls), (_costs, measured) = given
    assert costs.switch > 0 and stalls.seconds == STALLS.seconds and stalls.long == STALLS.long
    assert measured is STALLS


def test_no_consent_to_a_check(run_check: Any) -> None:
    assert run_check(sure=False) == (1, ["nothing was sent"], [])


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        (LOAD.replace("orders = 3", "orders = 4"), {}, "topic real has 3 partitions; topic orders of the load has 4"),
        (
            LOAD.replace("nodes = 2", "nodes = 3"),
            {},
            "load.toml: the cluster is said to have 3 nodes; 2 lead partitions of real",
        ),
        (LOAD, {"compression.type": "zstd"}, "compression.type is zstd; a check sends no compressed batches"),
        (LOAD, {"transactional.id": "t"}, "transactions are not simulated"),
    ],
)
def test_a_check_that_would_compare_different_things(
    run_check: Any, text: str, given: dict[str, str], said: str
) -> None:
    with pytest.raises((CommandError, ConfigError)) as caught:
        run_check(text, **given)
    assert said in str(caught.value)
