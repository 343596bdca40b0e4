"""README's blocks with Spark, each alone, as it stands; the others are in tests/integration."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from forebay.testing import EmbeddedBroker
from tests.support.pace import within
from tests.support.readme import ADDRESS, ROOT, Snippet, run, snippets

SPARK = [snippet for snippet in snippets() if snippet.needs_spark()]


@pytest.fixture
def clone(tmp_path: Path, broker: EmbeddedBroker) -> Path:
    """A folder with the demo in it, whose job names the test's broker."""
    shutil.copytree(ROOT / "demo", tmp_path / "demo", ignore=shutil.ignore_patterns("*.csv", "__pycache__"))
    job = tmp_path / "demo" / "flights.toml"
    text = job.read_text(encoding="utf-8")
    assert ADDRESS in text
    job.write_text(text.replace(ADDRESS, broker.bootstrap_servers), encoding="utf-8")
    return tmp_path


def test_there_are_such_blocks() -> None:
    assert [snippet.language for snippet in SPARK] == ["python", "sh", "sh"]


# Each starts a Spark of its own, and one of them writes the demo's 336,776 rows.
@pytest.mark.rest("starts a JVM of its own")
@pytest.mark.timeout(within(900))
@pytest.mark.parametrize("snippet", SPARK, ids=str)
def test_it_runs_alone(snippet: Snippet, clone: Path, broker: EmbeddedBroker) -> None:
    done = run(snippet, clone, broker.bootstrap_servers, timeout_s=within(800))
    assert done.returncode == 0, done.stderr
    printed = " ".join(done.stdout.split())
    if snippet.language == "python":
        assert "2 rows written" in printed
    else:
        rows = "336,776" if "flights" in snippet.text else "2"
        assert f"records acknowledged {rows} " in printed
