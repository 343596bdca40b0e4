"""README's block with Spark, alone, as it stands; the others are in tests/integration."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.testing import EmbeddedBroker
from tests.support.pace import within
from tests.support.readme import run, snippets

SPARK = [snippet for snippet in snippets() if snippet.needs_spark()]


def test_there_is_such_a_block() -> None:
    assert [snippet.language for snippet in SPARK] == ["python"]


@pytest.mark.rest("starts a JVM of its own")
@pytest.mark.timeout(within(900))
def test_it_runs_alone(tmp_path: Path, broker: EmbeddedBroker) -> None:
    (snippet,) = SPARK
    done = run(snippet, tmp_path, broker.bootstrap_servers, timeout_s=within(800))
    assert done.returncode == 0, done.stderr
    assert "2 rows written" in done.stdout
