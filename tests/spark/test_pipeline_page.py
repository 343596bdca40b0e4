"""The blocks of ``docs/pipeline.md``, as they stand: a shell's in one folder, one after the other."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

from forebay.spark.jobs.loading import ALLOWED
from forebay.spark.jobs.table import known
from forebay.testing import EmbeddedBroker
from tests.support.pace import PROGRAM_S, TEST_S, within
from tests.support.readme import ADDRESS, ROOT, Snippet, run, snippets

PAGE = snippets(ROOT / "docs" / "pipeline.md")
DEMO = [one for one in PAGE if "demo" in one.text]
RUN = [one for one in PAGE if one not in DEMO and (one.language == "sh" or "import" in one.text)]


def test_the_page_has_blocks_of_each_kind() -> None:
    assert [one.language for one in PAGE] == ["sh", "toml", "python", "python", "sh", "sh"]
    assert [one.language for one in RUN] == ["sh", "python", "sh"]
    assert [one.language for one in DEMO] == ["sh"]


@pytest.mark.parametrize("block", [one for one in PAGE if one.language == "toml"], ids=str)
def test_a_part_of_a_job_file_has_known_keys(block: Snippet) -> None:
    for section, values in tomllib.loads(block.text).items():
        known(values, ALLOWED[section] or (), f"[{section}]")


def test_a_part_of_a_module_is_python() -> None:
    (block,) = [one for one in PAGE if one.language == "python" and one not in RUN]
    names: dict[str, object] = {}
    exec(block.text, names)
    assert callable(names["late"])


# Each starts a Spark of its own; the first one starts two.
@pytest.mark.rest("starts a JVM of its own")
@pytest.mark.timeout(2 * TEST_S)
def test_the_blocks_run_one_after_the_other(tmp_path: Path, broker: EmbeddedBroker) -> None:
    broker.create_topic("trips", 3)
    first, program, submitted = (run(one, tmp_path, broker.bootstrap_servers, timeout_s=PROGRAM_S) for one in RUN)
    assert first.returncode == 0, first.stderr
    assert "record 2" in first.stdout and '{"id":"a","km":3}' in first.stdout
    assert "records acknowledged    2" in first.stdout
    assert "<title>trips: forebay pipeline</title>" in (tmp_path / "trips.html").read_text()
    assert program.returncode == 0, program.stderr
    assert program.stdout.splitlines()[-1] == "2 records acknowledged"
    assert submitted.returncode == 0, submitted.stderr
    assert "trips: starting Spark on the master of spark-submit" in submitted.stdout
    assert "'acknowledged': 2" in submitted.stdout


@pytest.fixture
def clone(tmp_path: Path, broker: EmbeddedBroker) -> Path:
    """A folder with the demo in it, whose job names the test's broker."""
    shutil.copytree(ROOT / "demo", tmp_path / "demo", ignore=shutil.ignore_patterns("*.csv", "__pycache__"))
    job = tmp_path / "demo" / "flights.toml"
    text = job.read_text(encoding="utf-8")
    assert ADDRESS in text
    job.write_text(text.replace(ADDRESS, broker.bootstrap_servers), encoding="utf-8")
    return tmp_path


@pytest.mark.rest("starts a JVM of its own, and writes the demo's 336,776 rows")
@pytest.mark.timeout(within(900))
def test_the_demo_runs_in_a_clone(clone: Path, broker: EmbeddedBroker) -> None:
    (block,) = DEMO
    done = run(block, clone, broker.bootstrap_servers, timeout_s=within(800))
    assert done.returncode == 0, done.stderr
    assert "records acknowledged 336,776 " in " ".join(done.stdout.split())
