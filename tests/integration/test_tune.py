"""``forebay tune`` before a real Kafka: it measures it, and its own load is what it predicted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from forebay import KafkaProducer
from forebay.cli.commands import execute
from forebay.tune import Brokers, Workload, calibrate, check, own_costs
from tests.integration.test_cli import COMMAND, ENVIRONMENT
from tests.support.fixtures import TopicFactory
from tests.support.pace import HANG_S, until
from tests.support.readback import read_all
from tools.kafka import RealKafka


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_cluster_is_measured_on_a_scratch_topic(
    kafka: RealKafka, topic: TopicFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scratch, output = topic(kafka, 2), tmp_path / "cluster.toml"
    arguments = ["tune", "calibrate", "-b", kafka.bootstrap_servers, "-t", scratch, "-o", str(output), "--yes"]
    assert execute(arguments) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    load = tmp_path / "load.toml"
    load.write_text('[load]\nrate = 100\n[cluster]\nfile = "cluster.toml"\n', encoding="utf-8")
    (broker,) = Brokers.from_toml(load).nodes
    assert broker.fixed_ms > 0
    assert broker.per_mib_ms > 0
    assert own_costs.kept(own_costs.cache_file(), own_costs.machine()) is not None
    # Its own records do not matter the second time; each of them says whose it is.
    assert execute(arguments) == 0
    records = read_all(kafka.bootstrap_servers, scratch)
    assert len(records) > 600
    assert all(dict(record.headers or ())["forebay-tune"] == b"1" for record in records)


def test_records_of_others_and_a_topic_that_is_not_there(
    kafka: RealKafka, topic: TopicFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken, output = topic(kafka), tmp_path / "cluster.toml"
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        producer.send(taken, b"order").result()
    common = ["tune", "calibrate", "-b", kafka.bootstrap_servers, "-o", str(output), "--yes", "-t"]
    assert execute([*common, taken]) == 2
    assert "holds a record at offset 0 that is not the tuner's" in capsys.readouterr().err
    assert execute([*common, f"{taken}-none"]) == 2
    assert "there is none; make one for the tuner alone" in capsys.readouterr().err
    assert not output.exists()


def test_a_load_is_sent_beside_its_prediction(
    kafka: RealKafka, topic: TopicFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, path = topic(kafka, 2), tmp_path / "load.toml"
    path.write_text('[load]\nrate = 200\ntopics = {orders = 2}\n[settings]\n"linger.ms" = 20\n', encoding="utf-8")
    arguments = ["tune", "check", str(path), "-b", kafka.bootstrap_servers, "-t", target, "--seconds", "2", "--yes"]
    for _ in range(2):  # the second time the topic is not empty, but the tuner's
        # Whether it is within the tolerances is up to the machine.
        assert execute(arguments) in (0, 1)
        shown = capsys.readouterr()
        assert shown.err == ""
        figures = {line[:18].strip(): line[18:].split() for line in shown.out.splitlines()}
        assert {"p50, ms", "p99, ms", "requests/s", "fill", "longest hold, ms", "lost", "stalls"} <= set(figures)
        assert figures["lost"][:2] == ["0", "0"]
        assert float(figures["p50, ms"][1]) > 1
    records = read_all(kafka.bootstrap_servers, target)
    assert len(records) > 700


def test_ctrl_c_ends_an_advice_and_its_workers(tmp_path: Path) -> None:
    path = tmp_path / "load.toml"
    path.write_text("[load]\nrate = 300000\nsizes = 100\ntopics = {t = 12}\nproducers = 8\n", encoding="utf-8")
    command = [*COMMAND, "tune", "advise", str(path), "--workers", "2"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=ENVIRONMENT, start_new_session=True, **pipes) as process:
        try:
            until(lambda: len(group_of(process.pid)) == 3, "two workers run")
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=HANG_S)
        finally:
            process.kill()
    assert (process.returncode, out, err.strip()) == (130, b"", b"forebay: error: interrupted")
    assert group_of(process.pid) == []


def group_of(leader: int) -> list[str]:
    """The processes of a group that run."""
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, check=True)
    lines = [line.split() for line in listed.stdout.decode().splitlines()]
    return [state for group, state in lines if int(group) == leader and not state.startswith("Z")]


def test_a_program_measures_and_checks(kafka: RealKafka, topic: TopicFactory) -> None:
    cluster = {"bootstrap.servers": kafka.bootstrap_servers}
    told: list[str] = []
    measured = calibrate(cluster, topic(kafka, 2), tell=told.append)
    assert len(measured.brokers.nodes) == len(told) == 1 and measured.records > 600
    load, settings = Workload(rate=200, topics={"orders": 2}), {**cluster, "linger.ms": 20}
    found = check(load, settings, topic(kafka, 2), brokers=measured.brokers, seconds=2)
    assert found.measured.lost == 0 and found.measured.sent > 300
    assert found.measured.sent <= found.predicted.sent
    assert json.loads(found.as_json())["rows"][0]["measured"] == found.measured.p50 > 1
