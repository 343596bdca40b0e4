"""Command lines of kcat and kafka-console-producer run as they stand, but for the program's name."""

from __future__ import annotations

import contextlib
import io
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from forebay.cli.commands import execute
from forebay.testing import EmbeddedBroker
from tests.integration.command_lines import CONSOLE, FILES, KCAT, Line
from tests.support.readback import ReadBack, ReadRecord
from tests.support.readme import ROOT, Snippet, snippets
from tests.support.readme import run as run_block
from tools.kafka import RealKafka

COMMANDS = {
    "kcat": "kcat",
    "kafka-console-producer": "console-producer",
    "kafka-console-producer.sh": "console-producer",
}


class Cluster:
    """A broker with the lines' topics, each read all the time."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        names = {topic_of(line.text) for line in (*KCAT, *CONSOLE)} - {""}
        self.broker = stack.enter_context(EmbeddedBroker(topics={**dict.fromkeys(names, 4), "known": 3}))
        self._readers = {
            name: stack.enter_context(ReadBack(self.broker.bootstrap_servers, name)) for name in sorted(names)
        }
        self._seen = dict.fromkeys(names, 0)

    def arrived(self, topic: str) -> list[ReadRecord]:
        """What came since the last call."""
        if not topic:
            return []
        found = self._readers[topic].until_end()[self._seen[topic] :]
        self._seen[topic] += len(found)
        return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with contextlib.ExitStack() as stack:
        yield Cluster(stack)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working and home folder, with the files that the lines name."""
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def run(line: Line, address: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs a line in this process; its exit code."""
    text = line.text
    for name in ("mybroker:9092", "localhost:9092", "mybroker"):
        text = text.replace(name, address)
    before, _, command = text.rpartition(" | ")
    words = shlex.split(command)
    data = subprocess.run(before, shell=True, capture_output=True, check=True).stdout if before else b""
    if "<" in words:
        data = Path(words.pop()).read_bytes()
        words.remove("<")
    while "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return execute([COMMANDS[Path(words[0]).name], *words[1:]])


def topic_of(text: str) -> str:
    """The topic that a line writes to; empty if it writes to none."""
    words = shlex.split(text.rpartition(" | ")[2])
    if {"-L", "-C", "-Q", "-V"} & {*words}:
        return ""
    for at, word in enumerate(words):
        if word in ("-t", "--topic", "-topic"):
            return words[at + 1]
    return "t" if "--topic=t" in words else ""


def test_there_are_fifty_of_each() -> None:
    assert len({line.text for line in KCAT}) >= 50 and len({line.text for line in CONSOLE}) >= 50


@pytest.mark.parametrize("line", [*KCAT, *CONSOLE], ids=lambda line: line.text)
def test_the_line_does_what_it_does_there(
    line: Line,
    cluster: Cluster,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    code = run(line, cluster.broker.bootstrap_servers, monkeypatch)
    shown = capfdbinary.readouterr()
    found = cluster.arrived(topic_of(line.text))
    if line.refused:
        assert (code, found) == (2, []) and line.refused in shown.err.decode()
        return
    assert line.shows in shown.out.decode()
    assert code == line.code, shown.err.decode()
    assert sorted(map(repr, line.records)) == sorted(repr((each.key, each.value)) for each in found)
    assert {each.headers for each in found} <= {line.headers}
    if line.partition is not None:
        assert {each.partition for each in found} == {line.partition}


PAGE = ROOT / "docs" / "command_line.md"


@pytest.mark.parametrize("block", [block for block in snippets(PAGE) if block.language == "sh"], ids=str)
def test_the_blocks_of_the_page_run(block: Snippet, kafka: RealKafka, tmp_path: Path) -> None:
    done = run_block(block, tmp_path, kafka.bootstrap_servers, 60)
    assert done.returncode == 0, done.stderr
    sent = block.text.count("produce -") - block.text.count("produce -q")
    assert done.stderr.count(" records acknowledged, 0 failed") == sent, done.stderr
    assert "error" not in done.stderr
    if "completion" in block.text:
        assert all("forebay" in path.read_text() for path in tmp_path.glob("forebay*"))
