"""The blocks of docs/spark.md and docs/from_spark_kafka.md, each alone; and the options that spark.md has to name."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark
import pytest

from forebay.spark import options
from forebay.testing import EmbeddedBroker
from tests.spark.conftest import ReadAll
from tests.support.pace import PROGRAM_S
from tests.support.readme import ROOT, Snippet, run, snippets

PAGE = ROOT / "docs" / "spark.md"
BLOCKS = {snippet.language + (" stream" if "readStream" in snippet.text else ""): snippet for snippet in snippets(PAGE)}


def succeeded(snippet: Snippet, folder: Path, broker: EmbeddedBroker) -> str:
    done = run(snippet, folder, broker.bootstrap_servers, timeout_s=PROGRAM_S)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_these_are_all_blocks() -> None:
    assert sorted(BLOCKS) == ["python", "python stream", "sh stream", "text"]
    assert len(snippets(PAGE)) == 5, "two of them are text: settings"


@pytest.mark.rest("starts a JVM of its own")
def test_a_batch(broker: EmbeddedBroker, read_all: ReadAll, tmp_path: Path) -> None:
    broker.create_topic("orders", 3)
    printed = succeeded(BLOCKS["python"], tmp_path, broker)
    assert json.loads(printed)["acknowledged"] == 1000
    assert {json.loads(message.value())["id"] for message in read_all("orders")} == set(range(1000))


@pytest.mark.rest("starts a JVM of its own")
def test_a_stream(broker: EmbeddedBroker, read_all: ReadAll, tmp_path: Path) -> None:
    broker.create_topic("lines", 3)
    assert "2 rows in the last micro-batch" in succeeded(BLOCKS["python stream"], tmp_path, broker)
    assert sorted(message.value() for message in read_all("lines")) == [b"a", b"b"]


@pytest.mark.rest("starts a JVM of its own")
def test_the_block_for_those_who_move(broker: EmbeddedBroker, read_all: ReadAll, tmp_path: Path) -> None:
    (block,) = snippets(ROOT / "docs" / "from_spark_kafka.md")
    broker.create_topic("moved", 1)
    assert "2 rows written" in succeeded(block, tmp_path, broker)
    assert sorted((message.key(), message.value()) for message in read_all("moved")) == [(b"a", b"1"), (b"b", b"2")]


@pytest.mark.rest("starts a JVM of its own")
def test_a_sink_of_declarative_pipelines(
    broker: EmbeddedBroker, read_all: ReadAll, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("arrivals", 3)
    monkeypatch.setenv("SPARK_HOME", str(Path(pyspark.__file__).parent))
    # Its own server listens on a port of its choice then; a fixed one may be taken.
    monkeypatch.setenv("SPARK_TESTING", "1")
    printed = succeeded(BLOCKS["sh stream"], tmp_path, broker)
    assert "COMPLETED" in printed, printed
    assert [(message.key(), message.value()) for message in read_all("arrivals")] == [(b"1", b'{"id":1}')]


@pytest.mark.parametrize("name", [*options.OURS, *options.REFUSED])
def test_the_page_names_every_option(name: str) -> None:
    assert f"`{name}`".lower() in PAGE.read_text(encoding="utf-8").lower()
