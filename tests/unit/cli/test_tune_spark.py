"""``forebay tune spark``: a table from the command line, or from a job's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forebay.cli import tune_spark
from forebay.cli.commands import execute
from forebay.spark.jobs import load

JOB = """
[job]
name = "nightly"
[source]
format = "csv"
path = "rows.csv"
[map]
key = "id"
value = "text"
[sink]
topic = "rows"
[producer]
"bootstrap.servers" = "localhost:9092"
"linger.ms" = 20
"sasl.jaas.config" = "secret"
[spark]
master = "local[3]"
"""
TABLE = ["--rows", "20000", "--bytes", "100"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def job(folder: Path, text: str = JOB) -> str:
    (folder / "rows.csv").write_text("id,text\n1,a\n", encoding="utf-8")
    path = folder / "job.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_table_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = tmp_path / "cluster.toml"
    cluster.write_text("[cluster]\nnodes = 3\n", encoding="utf-8")
    flags = [*TABLE, "--tasks", "2", "--partitions", "6", "--cluster", str(cluster), "-X", "linger_ms=7"]
    assert execute(["tune", "spark", *flags]) == 0
    text = capsys.readouterr().out
    assert "20,000 rows of 100 B, without keys, to 6 partitions" in text
    assert "linger.ms=7" in text and "node 3: requests/s, busy" in text
    assert len(text.splitlines()) <= 40
    assert execute(["tune", "spark", *flags, "--json", "--keyed", "--seed", "4"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["seed"], found["table"]["keyed"], len(found["present"]["busy"])) == (4, True, 3)


def test_a_job_says_what_it_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["tune", "spark", job(tmp_path), *TABLE, "--json"]) == 0
    shown = capsys.readouterr().out
    table = json.loads(shown)["table"]
    assert (table["tasks"], table["keyed"], table["grouped"], table["arrow_bytes"]) == (3, True, False, 1 << 20)
    assert table["options"] == {"linger.ms": "20"} and "secret" not in shown


def test_the_command_line_replaces_what_a_job_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--tasks", "2", "--no-keys", "-X", "linger.ms=3"]
    assert execute(["tune", "spark", job(tmp_path), *TABLE, *flags, "--json"]) == 0
    table = json.loads(capsys.readouterr().out)["table"]
    assert (table["tasks"], table["keyed"], table["options"]) == (2, False, {"linger.ms": "3"})


@pytest.mark.parametrize(
    ("column", "keyed"), [('key = "id"', True), ('partition = "id"', True), ('timestamp = "id"', False)]
)
def test_rows_that_have_a_partition_may_be_in_tasks_by_it(tmp_path: Path, column: str, keyed: bool) -> None:
    text = JOB.replace('key = "id"', column).replace("[producer]", "repartition = true\n[producer]")
    told = tune_spark.told_by(load(job(tmp_path, text)))
    assert (told.keyed, told.grouped) == (keyed, keyed)


@pytest.mark.parametrize(("given", "size"), [("1m", 1 << 20), ("64kb", 1 << 16), ("2GB", 2 << 30), ("5000", 5000)])
def test_sizes_as_spark_has_them(tmp_path: Path, given: str, size: int) -> None:
    conf = f'[spark.conf]\n"{tune_spark.ARROW}" = "{given}"\n'
    assert tune_spark.told_by(load(job(tmp_path, JOB + conf))).arrow_bytes == size


def test_the_trigger_of_a_stream(tmp_path: Path) -> None:
    stream = f'[stream]\ncheckpoint = "{tmp_path}/point"\ntrigger = '
    streaming = JOB.replace('path = "rows.csv"', 'path = "rows.csv"\nschema = "id INT, text STRING"')
    assert tune_spark.told_by(load(job(tmp_path, f'{streaming}{stream}"2 minutes"\n'))).trigger_s == 120
    assert tune_spark.told_by(load(job(tmp_path, f'{streaming}{stream}"available now"\n'))).trigger_s is None
    assert tune_spark.told_by(load(job(tmp_path))).trigger_s is None


def test_a_write_that_takes_longer_than_its_trigger_is_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["tune", "spark", *TABLE, "--tasks", "1", "--rate", "10000", "--trigger-seconds", "1"]) == 1
    assert "Take a longer trigger" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--rows", "5"], "--bytes is missing"),
        ([*TABLE], "--tasks is missing"),
        ([*TABLE, "--tasks", "1", "--cluster", "none.toml"], "none.toml: no such file"),
        ([*TABLE, "--tasks", "1", "--grouped"], "rows without keys"),
        ([*TABLE, "--tasks", "1", "-X", "linger=5"], "linger"),
        ([*TABLE, "--tasks", "1", "-X", "compression.type=zstd"], "ratio"),
        (["none.toml", *TABLE], "job file 'none.toml' does not exist"),
    ],
)
def test_what_is_missing_or_wrong_is_one_line(capsys: pytest.CaptureFixture[str], flags: list[str], said: str) -> None:
    assert execute(["tune", "spark", *flags]) == 2
    shown = capsys.readouterr().err
    assert said in shown and len(shown.splitlines()) == 1


def test_a_job_without_rows_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = job(tmp_path)
    assert execute(["tune", "spark", path]) == 2
    assert f"--rows is missing; {path} does not say it" in capsys.readouterr().err
