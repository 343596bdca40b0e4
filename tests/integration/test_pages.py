"""The Python blocks of the pages of docs/ that need no Spark, each alone, as it stands, on the run's real Kafka.

Pages with their own tests: command_line.md (test_command_lines.py), security-recipes.md (test_recipes.py), spark.md,
pipeline.md and from_spark_kafka.md (tests/spark).  exactly_once.md and security.md have parts of programs, which are
only parsed here.
"""

from __future__ import annotations

import ast
import fnmatch
import re
import textwrap
from pathlib import Path

import pytest

from tests.integration.test_readme import CHECKS
from tests.integration.workload import WAIT_S
from tests.support.readme import README, ROOT, Snippet, run, snippets
from tools.kafka import RealKafka
from tools.reference_pages import write_pages

pytestmark = pytest.mark.rest("pages of the documentation; those of README are in the other command")

DOCS = ROOT / "docs"
RUN_ELSEWHERE = {"command_line.md", "security-recipes.md", "spark.md", "pipeline.md", "from_spark_kafka.md"}
PARTS = {"exactly_once.md", "security.md"}
PAGES = sorted(page for page in DOCS.glob("*.md") if page.name not in RUN_ELSEWHERE | PARTS)
BLOCKS = [(page, block) for page in PAGES for block in snippets(page) if block.language == "python"]
# A topic that is made by its first record; and what purge() says.
EXPECTED = re.compile(
    r"Error while fetching metadata: .*UNKNOWN_TOPIC_OR_PARTITION|Got error .*, retrying \(|purge\(\) dropped"
)


def succeeds(block: Snippet, folder: Path, broker: RealKafka) -> None:
    done = run(block, folder, broker.bootstrap_servers, WAIT_S)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not EXPECTED.search(line)] == []
    assert bool(done.stdout.strip()) == ("print(" in block.text), done.stdout


@pytest.mark.parametrize(
    "block", [block for _, block in BLOCKS], ids=[f"{page.stem}-{block}" for page, block in BLOCKS]
)
def test_a_block_runs_alone(block: Snippet, kafka: RealKafka, tmp_path: Path) -> None:
    succeeds(block, tmp_path, kafka)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_are_those_that_readme_tries(page: Path) -> None:
    for block in snippets(page):
        assert block.language in {"python", "sh", "text", "toml", "yaml", "{toctree}", "{include}", "{eval-rst}", ""}
        for line in block.text.splitlines() if block.language == "sh" else ():
            CHECKS[" ".join(line.split()[:2])](line)


def test_the_blocks_of_pages_out_of_the_code_run(kafka: RealKafka, tmp_path: Path) -> None:
    write_pages(tmp_path / "reference")
    found = [(page, block) for page in (tmp_path / "reference").glob("*.md") for block in snippets(page)]
    assert [block.language for _, block in found] == ["python"]
    for _, block in found:
        succeeds(block, tmp_path, kafka)


def parsed(text: str) -> None:
    """A program, or the items of a dictionary."""
    try:
        ast.parse(textwrap.dedent(text))
    except SyntaxError:
        ast.parse("{" + text + "}")


@pytest.mark.parametrize("name", sorted(PARTS))
def test_parts_of_programs_are_python(name: str) -> None:
    found = [block.text for block in snippets(DOCS / name) if block.language == "python"]
    assert found
    for text in found:
        parsed(text)


@pytest.mark.parametrize("page", [README, *sorted(DOCS.glob("*.md"))], ids=lambda page: page.stem)
def test_each_fence_of_a_page_is_of_a_block(page: Path) -> None:
    fences = re.findall(r"^```", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(snippets(page))


def test_no_block_was_lost_on_its_way_to_another_page() -> None:
    """A block that is taken out for good takes its one off this number."""
    blocks = [block for page in (README, *DOCS.glob("*.md")) for block in snippets(page)]
    assert sum(block.language in {"python", "sh"} for block in blocks) >= 87


def test_every_page_has_its_place() -> None:
    """A page that is removed leaves no name behind, and the index leads to each."""
    names = {page.name for page in DOCS.glob("*.md")}
    assert names >= RUN_ELSEWHERE | PARTS
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^([\w/*-]+)$", index, re.MULTILINE))
    # The map of files is for those who change forebay, and DESIGN.md leads there.
    pages = {page.removesuffix(".md") for page in names} - {"index", "map"}
    assert {page for page in pages if not any(fnmatch.fnmatch(page, entry) for entry in listed)} == set()
