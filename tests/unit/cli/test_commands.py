"""cli.commands: every mistake on the command line is one line and an exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import forebay
from forebay import implementation
from forebay.cli.__main__ import main
from forebay.cli.commands import cli, execute
from tests.fakes.names import FORBIDDEN_TOPICS


def test_help_lists_every_command_and_documents_every_flag() -> None:
    runner = CliRunner()
    shown = runner.invoke(cli, ["--help"])
    assert shown.exit_code == 0
    own = {"produce", "kcat", "console-producer", "perf", "broker", "top", "topics", "tail", "doctor"}
    assert set(cli.commands) == own | {"config", "pipeline", "transactions", "tune"}
    assert all(f"\n  {name} " in shown.output for name in cli.commands)
    for name in sorted(own):
        options = [each for each in cli.commands[name].params if isinstance(each, click.Option)]
        assert [option.name for option in options if not option.help and not option.hidden] == [], name
        assert runner.invoke(cli, [name, "--help"]).exit_code == 0


def test_version_says_which_form_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["--version"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("forebay ") and f"({implementation}, Python 3." in shown


def groups(command: click.Command, *words: str) -> list[tuple[str, ...]]:
    """Every command that has commands below it, by the words that name it."""
    if not isinstance(command, click.Group):
        return []
    return [words, *(found for name, each in command.commands.items() for found in groups(each, *words, name))]


def test_a_group_alone_shows_its_help_and_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    found = groups(cli)
    assert {(), ("pipeline",), ("transactions",), ("tune",)} <= {*found}
    for words in found:
        assert execute([*words]) == 2
        shown = capsys.readouterr()
        assert shown.out.startswith(" ".join(["Usage: forebay", *words])) and "\n\nCommands:\n" in shown.out
        assert shown.err == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("bogus", "No such command 'bogus'. (forebay --help lists what there is)"),
        ("produce -b h:1", "Missing option '-t' / '--topic'. (forebay produce --help lists what there is)"),
        ("produce -t t --bogus", "No such option"),
        ("produce -t t", "no broker is named"),
        ("produce -t t -b h:1 -p x", "Invalid value for '-p'"),
        ("produce -t t -b h", "--bootstrap-server: Invalid entry 'h' in bootstrap.servers: the port is missing"),
        ("produce -t t -b h:1 -X linger.mss=5", "-X: Unknown option 'linger.mss': did you mean 'linger.ms'?"),
        ("produce -t t -b h:1 -X linger.ms=x", "-X: Invalid value 'x' for option linger.ms"),
        ('produce -t t -b h:1 --separator "', "--separator must be one character, no quote"),
        ("produce -t t -b h:1 -z brotli", "-z: Invalid value 'brotli' for option compression.type"),
        (
            "produce -t t -b h:1 -X metric.reporters=a.B",
            "not available in this version: it has no metric reporters",
        ),
        ("produce -t t -b h:1 -F /nonexistent/p", "properties file '/nonexistent/p' cannot be read"),
        ("produce -t t -b h:1 /nonexistent/x", "file '/nonexistent/x' cannot be read: No such file"),
        ("perf --topic t --num-records 1", "give exactly one of --record-size, --payload-file and"),
        ("perf --topic t --num-records 1 --record-size 1 --payload-monotonic", "give exactly one of"),
        ("perf --topic t --num-records 0 --record-size 1 -b h:1", "--num-records must be at least 1"),
        (
            "perf --topic t --num-records 1 --record-size 1 -b h:1 --transaction-duration-ms 0",
            "--transaction-duration-ms must be above 0, not 0",
        ),
        (
            "perf --topic t --num-records 1 --record-size 1 -b h:1 --transactional-id x -X acks=1",
            "transactional.id needs idempotence",
        ),
        ("kcat -C -b h -t t", "-C is for reading, which forebay does not"),
        ("kcat -P -L -b h -t t", "-P and -L exclude each other"),
        ("kcat -M 3 -b h", "-M runs a mock cluster, which `forebay broker --nodes` does here"),
        ("kcat -P -b h", "-t is missing"),
        ("kcat -P -t t", "-b is missing: name a broker, or set KAFKA_BOOTSTRAP_SERVERS"),
        ("kcat -P -b h -t t -X nope=1", 'No such configuration property: "nope"'),
        ("kcat -P -b h -t t -X acks=7", "Invalid value '7' for option acks"),
        ("kcat -P -b SSL://h -t t", "-b 'SSL://h': give -X security.protocol=ssl too"),
        ("kcat -P -b h:1:2 -t t", "-b 'h:1:2': write host or host:port"),
        *(
            (f"{command} {seconds}", f"{seconds!r}: write seconds, from 0.001 to 2147483")
            for command in (
                *("kcat -P -b h -t t -m", "produce -t t -b h:1 --timeout", "topics -b h:1 --timeout"),
                *("tail t -b h:1 --timeout", "transactions list --timeout", "transactions describe x --timeout"),
                *("transactions abort x --timeout", "perf --topic t --num-records 1 --record-size 1 --timeout"),
            )
            for seconds in ("0", "-1", "nan", "inf", "1e400", "x", "1e9")
        ),
        ("kcat -P -b h -t t -F /nonexistent/f", "configuration file '/nonexistent/f' cannot be read: No such file"),
        ("console-producer --topic t", "no broker is named"),
        ("console-producer --bootstrap-server h:1", "--topic is missing"),
        ("console-producer --bootstrap-server h:1 --topic t --timeout x", "--timeout: Invalid value 'x' for option"),
        ("console-producer --bootstrap-server h:1 --topic t --reader-config /nonexistent/f", "cannot be read"),
        ("topics", "no broker is named"),
        ("tail -b h:1", "Missing argument 'TOPIC'. (forebay tail --help"),
        ("tail -b h:1 -n 0 t", "Invalid value for '-n'"),
        ("tail -b h:1 --isolation none t", "Invalid value for '--isolation'"),
        ("transactions describe -b h:1", "Missing argument"),
        ("transactions bogus", "No such command 'bogus'"),
        ("broker --topics :3", "topic ':3': write a name"),
        ("broker --advertise ::1", "advertise '::1': write HOST or HOST:PORT"),
        ("config xyzzy", "No option contains 'xyzzy'"),
        ("config --format xml", "Invalid value for '--format'"),
        ("pipeline run none.toml", "job file 'none.toml' does not exist"),
        ("pipeline run none.toml --set x", "give section.key=value"),
    ],
)
def test_mistakes(arguments: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(arguments.split()) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("forebay: error: ") and expected in shown.err
    assert shown.err.count("\n") == 1


OF_A_TOPIC = (
    "produce -b h:1 -t",
    "perf -b h:1 --num-records 1 --record-size 1 --topic",
    "kcat -P -b h -t",
    "kcat -L -b h -t",
    "console-producer --bootstrap-server h:1 --topic",
    "topics -b h:1",
    "tail -b h:1",
    "broker --topics",
    "doctor --spark -b h:1 -t",
)
"""What stands before a topic's name."""


@pytest.mark.parametrize("name", [name for name in FORBIDDEN_TOPICS if "\0" not in name], ids=ascii)
@pytest.mark.parametrize("command", OF_A_TOPIC)
def test_a_name_that_no_topic_has_is_a_mistake(command: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if command.startswith("broker") and (not name or name != name.strip() or {*name} & {",", ":"}):
        return  # there they stand between names
    assert execute([*command.split(), *(["--"] if command[:4] in ("topi", "tail") else []), name]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("forebay: error: ") and shown.err.count("\n") == 1 and len(shown.err) < 300


def test_every_command_that_takes_a_topic_is_among_them() -> None:
    takers = {
        name
        for name, command in cli.commands.items()
        if any({"topic", "topics"} & {param.name or ""} for param in command.params)
    }
    assert takers == {line.split()[0] for line in OF_A_TOPIC}


def test_a_bad_job_file_is_a_mistake_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "job.toml"
    path.write_text("[source\n")
    assert execute(["pipeline", "run", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"forebay: error: {path}: not TOML: ")
    path.write_text('[source]\nformat = "csv"\npath = "gone.csv"\n[sink]\ntopic = "t"\n')
    arguments = ["pipeline", "run", str(path), "-b", "localhost:9092", "--master", "local[1]"]
    assert execute(arguments) == 2
    assert "[source] path" in capsys.readouterr().err


def test_config_in_its_forms(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["config", "--format", "json", "linger_ms"]) == 0
    assert "linger.ms" in {row["name"] for row in json.loads(capsys.readouterr().out)}
    assert execute(["config"]) == 0
    assert capsys.readouterr().out.startswith("bootstrap.servers  (list")


@pytest.mark.parametrize("module", ["forebay", "forebay.cli"])
def test_the_package_and_its_command_line_run_as_modules(module: str) -> None:
    source = str(Path(forebay.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"forebay {forebay.__version__} (")


def test_closed_standard_streams_are_no_reason_to_fail() -> None:
    source = str(Path(forebay.__file__).parents[1])
    command = f"exec {sys.executable} -m forebay.cli broker --topics : >&- 2>&-"  # a mistake, which is told on stderr
    done = subprocess.run(["sh", "-c", command], env={**os.environ, "PYTHONPATH": source}, check=False)
    assert done.returncode == 2


def test_main_is_execute(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("forebay ")
