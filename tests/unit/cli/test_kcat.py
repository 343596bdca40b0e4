"""cli.kcat: where its options come from, what becomes of its flags, and how it lists a cluster."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from forebay.cli import flags, kcat
from forebay.cli.failure import CommandError
from forebay.cli.input.blocks import Block
from forebay.cli.input.files import Layout
from forebay.cli.input.lines import LineFormat
from forebay.cli.produce import ProduceJob
from forebay.config import ProducerConfig
from forebay.errors import ConfigError, UnknownTopicOrPartitionError
from forebay.model import ClusterDescription, Node, PartitionInfo, TopicDescription

NODES = (Node(1, "a", 9092), Node(2, "b", 9093))
KNOWN = TopicDescription(
    "t", (PartitionInfo("t", 0, NODES[1], 5, (1, 2), (2,)), PartitionInfo("t", 1, None)), False, None
)
GONE = TopicDescription("gone", (), False, UnknownTopicOrPartitionError("not there"))
CLUSTER = ClusterDescription("id", NODES[0], NODES, (GONE, KNOWN))


class Outside:
    """What a command line sends, asks and writes."""

    def __init__(self) -> None:
        self.jobs: list[ProduceJob] = []
        self.asked: list[tuple[ProducerConfig, str | None]] = []
        self.written: list[str] = []

    def produce(self, job: ProduceJob) -> int:
        self.jobs.append(job)
        return 7

    def describe(self, config: ProducerConfig, topic: str | None) -> ClusterDescription:
        self.asked.append((config, topic))
        return CLUSTER

    def run(self, *arguments: str, environment: dict[str, str] | None = None) -> int:
        @click.command()
        @flags.apply(flags.KCAT)
        @click.argument("paths", nargs=-1)
        def command(paths: Sequence[str], **values: Any) -> int:
            return kcat.run(
                values,
                paths,
                produce=self.produce,
                describe=self.describe,
                write=self.written.append,
                environment={"HOME": "/nonexistent"} if environment is None else environment,
            )

        code: int = command.main(list(arguments), standalone_mode=False)
        return code


def job(*arguments: str, environment: dict[str, str] | None = None) -> ProduceJob:
    outside = Outside()
    assert outside.run("-P", "-t", "t", *arguments, environment=environment) == 7
    (found,) = outside.jobs
    return found


def same(job: ProduceJob, other: ProduceJob) -> bool:
    """But for the partitioner, a partial, which is equal to itself alone."""
    return dataclasses.replace(job, partitioner=None) == dataclasses.replace(other, partitioner=None)


def test_lines_files_and_whole_files() -> None:
    config = job("-b", "h").config
    assert config["bootstrap.servers"] == ("h:9092",)
    lines = Layout("lines", LineFormat(skip_empty=True), decompress=False, limit=1_000_000)
    assert (job("-b", "h").paths, job("-b", "h").layout) == (("-",), lines)
    assert job("-b", "h", "-l", "x.gz").layout == lines
    whole = job("-b", "h", "x.gz", "y", "-K:", "-T")
    assert (whole.paths, whole.layout.form, whole.layout.decompress, whole.tee) == (("x.gz", "y"), "whole", False, None)
    keyed = job("-b", "h", "-K:", "-D;", "-Z", "-c3", "-p2", "-k", "key", "-H", "a=1", "-H", "n", "-E")
    assert keyed.layout.lines == LineFormat(b";", b":", skip_empty=True)
    assert (keyed.empty_is_null, keyed.count, keyed.partition, keyed.key) == (True, 3, 2, b"key")
    assert (keyed.headers, keyed.skip_bad, keyed.quiet) == ([("a", b"1"), ("n", None)], True, True)
    assert keyed.skip_flag == "-E"
    assert job("-b", "h", "-p", "-1").partition is None


def test_keys_go_where_librdkafka_sends_them() -> None:
    choose = job("-b", "h").partitioner
    assert choose is not None
    # The check value of CRC-32.
    assert (choose(b"123456789", 7), choose(b"", 7), choose(None, 7)) == (0xCBF43926 % 7, None, None)
    java = job("-b", "h", "-X", "partitioner=murmur2").partitioner
    assert java is not None and java(None, 5) is not None
    assert job("-b", "h").config["partitioner.ignore.keys"] is True


def test_how_long_it_waits_and_what_it_shows() -> None:
    assert job("-b", "h").config["max.block.ms"] == 5000
    assert job("-b", "h", "-m", "1.5").config["max.block.ms"] == 1500
    assert job("-b", "h", "-E", "-X", "message.timeout.ms=7000").config["max.block.ms"] == 7000
    shown = [job("-b", "h", *more) for more in ([], ["-v"], ["-vv"], ["-d", "all"], ["-q", "-vv", "-d", "all"])]
    assert [(each.quiet, each.verbosity) for each in shown] == [(True, 0), (False, 0), (False, 1), (True, 2), (True, 0)]


def test_options_come_from_a_file_then_from_flags(tmp_path: Path) -> None:
    home, named = tmp_path / ".config" / "kcat.conf", tmp_path / "own.conf"
    home.parent.mkdir()
    home.write_text("# home\n\nbootstrap.servers=home\nlinger.ms = 1\ntopic.acks=1\nenable.idempotence=false\n")
    named.write_text("metadata.broker.list=named:1\ngroup.id=g\nauto.offset.reset=earliest\nlinger.ms=2\n")
    at_home = {"HOME": str(tmp_path)}
    found = job(environment=at_home).config
    assert (found["bootstrap.servers"], found["linger.ms"], found["acks"]) == (("home:9092",), 1, 1)
    for environment, arguments in (({**at_home, "KCAT_CONFIG": str(named)}, []), (at_home, ["-F", str(named)])):
        found = job(*arguments, environment=environment).config
        assert (found["bootstrap.servers"], found["linger.ms"]) == (("named:1",), 2)
    flags_win = ["-F", str(named), "-X", "linger.ms=3", "-X", "compression.type=gzip", "-z", "lz4", "-b", "flag"]
    found = job(*flags_win, environment=at_home).config
    assert (found["bootstrap.servers"], found["linger.ms"], found["compression.type"]) == (("flag:9092",), 3, "lz4")
    found = job(environment={"KAFKA_BOOTSTRAP_SERVERS": "env:5"}).config
    assert found["bootstrap.servers"] == ("env:5",)
    named.write_text("linger.ms=1\nacks\n")
    with pytest.raises(CommandError, match=r"own.conf:2: write property=value"):
        job("-F", str(named))
    named.write_bytes(b"\xff")
    with pytest.raises(CommandError, match="is no text in UTF-8"):
        job("-F", str(named))


def test_brokers_have_kafka_s_port_unless_they_name_another() -> None:
    assert kcat.with_ports(" a, b:1,[::1],[::1]:2,PLAINTEXT://c ,") == "a:9092,b:1,[::1]:9092,[::1]:2,c:9092"
    assert kcat.with_ports("sasl_ssl://c:1", "SASL_SSL") == "c:1"
    for wrong in ("a:b", "::1", "a b://c:1:2"):
        with pytest.raises(CommandError, match="write host or host:port"):
            kcat.with_ports(wrong)


def test_a_terminal_without_a_mode_is_where_kcat_would_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(CommandError, match="without -P kcat would read here"):
        Outside().run("-b", "h", "-t", "t")
    assert Outside().run("-b", "h", "-t", "t", "file") == 7
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert Outside().run("-b", "h", "-t", "t") == 7


@pytest.mark.parametrize("flags", ["-e", "-o -5", "-o end", "-o s@17", "-f %s", "-O", "-u", "-J", "-e -u -o 5 -O"])
def test_flags_that_kcat_takes_no_notice_of_where_it_writes_or_lists(flags: str) -> None:
    assert same(job("-b", "h", *flags.split()), job("-b", "h"))
    assert Outside().run("-L", "-b", "h", *flags.split()) == 0


@pytest.mark.parametrize("count", ["0", "-1", "-99999999999"])
def test_no_count_is_no_limit(count: str) -> None:
    assert same(job("-b", "h", "-c", count), job("-b", "h"))
    assert job("-b", "h", "-l", "x", "-c", "2").count == 2
    assert job("-b", "h", "x", "y", "-c", "1").count is None  # files as a whole are not counted


def test_no_file_may_be_asked_for(tmp_path: Path) -> None:
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config" / "kcat.conf").write_text("linger.ms=1\n")
    for none in ("none", "-"):
        found = job("-b", "h", "-F", none, environment={"HOME": str(tmp_path)})
        assert found.config == job("-b", "h").config


@pytest.mark.parametrize("line", ["nope=1", "acks=7", "linger.ms=x"])
def test_a_refused_option_of_a_file_names_its_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "own.conf"
    path.write_text(f"# mine\n\nclient.id=x\n{line}\n")
    with pytest.raises((CommandError, ConfigError), match=f"^{re.escape(str(path))}:4: "):
        job("-b", "h", "-F", str(path))


def test_what_the_options_adjust_is_for_v(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    for given, lines in (((), 0), (("-q", "-vv"), 0), (("-vv",), 1)):
        job("-b", "h", "-X", "acks=1", *given)
        assert capsys.readouterr().err.count("Idempotence is switched off") == lines
    assert caplog.records == []


@pytest.mark.parametrize("flag", ["-C", "-Gg", "-Q", "-ss", "-rx"])
def test_flags_for_reading_are_refused_by_name(flag: str) -> None:
    with pytest.raises(CommandError, match=f"^{flag[:2]} is for reading"):
        Outside().run("-b", "h", "-t", "t", flag)


def test_tee_copies_lines_without_their_ends() -> None:
    out = io.BytesIO()
    kcat.copy_out(b"", out, Block([1, 2], [b"a", b"b"], 2))
    kcat.copy_out(b"::", out, Block([1, 2, 3], [b"a", b"", b"c"], 5, [b"k", b"", None]))
    assert out.getvalue() == b"abk::a::c"


def test_a_cluster_is_listed_as_kcat_lists_it() -> None:
    outside = Outside()
    assert outside.run("-L", "-b", "h") == 0
    assert outside.asked[0][1] is None
    assert outside.written == [
        """Metadata for all topics (from broker -1: h:9092/bootstrap):
 2 brokers:
  broker 1 at a:9092 (controller)
  broker 2 at b:9093
 2 topics:
  topic "gone" with 0 partitions: Broker: Unknown topic or partition
  topic "t" with 2 partitions:
    partition 0, leader 2, replicas: 1,2, isrs: 2
    partition 1, leader -1, replicas: , isrs: , Broker: Leader not available"""
    ]
    assert outside.run("-L", "-J", "-b", "h", "-t", "t") == 0
    assert outside.asked[1][1] == "t"
    document = json.loads(outside.written[1])
    assert (document["query"], document["controllerid"]) == ({"topic": "t"}, 1)
    assert document["brokers"] == [{"id": 1, "name": "a:9092"}, {"id": 2, "name": "b:9093"}]
    gone, known = document["topics"]
    assert gone == {"topic": "gone", "error": "Broker: Unknown topic or partition", "partitions": []}
    assert known["partitions"][1]["error"] == "Broker: Leader not available"
    assert document["originating_broker"] == {"id": -1, "name": "h:9092/bootstrap"}
    assert outside.run("-L", "-J", "-b", "x,b:9093") == 0
    assert json.loads(outside.written[2])["originating_broker"] == {"id": 2, "name": "b:9093/2"}
    assert outside.run("-L", "-b", "a") == 0
    assert outside.written[3].startswith("Metadata for all topics (from broker 1: a:9092/1):\n")
    assert known["partitions"][0] == {
        "partition": 0,
        "leader": 2,
        "replicas": [{"id": 1}, {"id": 2}],
        "isrs": [{"id": 2}],
    }


def test_options_are_listed_and_dumped() -> None:
    outside = Outside()
    assert outside.run("-X", "list") == 0
    assert outside.run("-X", "dump", "-b", "h", "-t", "t", "-X", "linger.ms=9", "-P") == 0
    assert "linger.ms  (" in outside.written[0] and "linger.ms = 9" in outside.written[1]
    assert outside.jobs == []
