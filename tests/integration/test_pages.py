"""Pages of docs/ as a stranger uses them: each Python block alone, pasted as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.testing import EmbeddedBroker
from tests.integration.workload import WAIT_S
from tests.support.readme import ROOT, Snippet, run, snippets

PAGES = ("configuration", "deployment", "serialization")
BLOCKS = [
    pytest.param(snippet, id=f"{page}-{snippet.line}")
    for page in PAGES
    for snippet in snippets(ROOT / "docs" / f"{page}.md")
    if snippet.language == "python"
]


def test_each_page_has_code_and_other_blocks_are_no_python() -> None:
    for page in PAGES:
        languages = [snippet.language for snippet in snippets(ROOT / "docs" / f"{page}.md")]
        assert "python" in languages and set(languages) <= {"python", "text", "yaml"}, page


@pytest.mark.parametrize("snippet", BLOCKS)
def test_python(snippet: Snippet, embedded: EmbeddedBroker, tmp_path: Path) -> None:
    for topic in ("events", "orders"):
        embedded.create_topic(topic, 1)
    done = run(snippet, tmp_path, embedded.bootstrap_servers, WAIT_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "each block shows something"
    assert [line for line in done.stderr.splitlines() if "purge() dropped" not in line] == []
