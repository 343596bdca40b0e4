"""docs/what_to_do_when.md has an entry for each public class of errors, each line of the log, and each phase."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from forebay import errors
from forebay._sender.failure_words import unknown_topic
from forebay.errors import KafkaError, UnknownTopicIdError, UnknownTopicOrPartitionError

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "forebay"
PAGE = (ROOT / "docs" / "what_to_do_when.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| `")]
LEVELS = {"warning", "error", "exception", "critical"}
ELSEWHERE = ("cli/", "testing/", "pipeline/")
"""What commands and jobs print, and what tests see: their own pages."""
PASSED_ON = {
    ("_runtime/log.py", "%s"): "the line of its caller",
    ("spark/source.py", "%s"): "the text of an error, which the query raises, too",
}
CLASSES = sorted(
    {kind.__name__ for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KafkaError)}
)


def first_cells() -> list[str]:
    return [re.split(r"(?<!\\)\|", row)[1] for row in ROWS]


def named_classes() -> list[str]:
    return [name for cell in first_cells() for name in re.findall(r"`(\w+Error)`", cell)]


def lines() -> Iterator[tuple[str, str]]:
    """The module and the text of each line of the log."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = str(path.relative_to(PACKAGE))
        if module.startswith(ELSEWHERE):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                not isinstance(node, ast.Call)
                or not isinstance(node.func, ast.Attribute)
                or node.func.attr not in LEVELS
            ):
                continue
            if not re.search("log|limited", ast.unparse(node.func.value), re.IGNORECASE):
                continue
            texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            # With a key that limits it, the key comes first; a text that a function makes is a case below.
            if texts and (module, texts[-1]) not in PASSED_ON:
                yield module, texts[-1]


def literal(text: str) -> str:
    """The longest part of a format that does not change."""
    return max(re.split(r"%[-\d.]*[a-z]", text), key=len)


@pytest.mark.parametrize("name", CLASSES)
def test_each_class_has_its_entry(name: str) -> None:
    assert name in named_classes()


def test_no_entry_is_of_a_class_that_is_gone_and_none_is_there_twice() -> None:
    named = named_classes()
    assert set(named) <= set(CLASSES)
    assert [name for name in set(named) if named.count(name) > 1] == []


UNKNOWN_TOPIC = [unknown_topic(error) for error in (UnknownTopicIdError(), UnknownTopicOrPartitionError())]
"""A function makes these."""
ALL_LINES = sorted(set(lines()))


def entries() -> list[list[str]]:
    """The entries of the table of lines; each as its parts between names and numbers."""
    rows = [row for row in PAGE.partition("## Lines of the log")[2].splitlines() if row.startswith("| `")]
    found = [each.split("...") for row in rows for each in re.findall(r"`([^`]+)`", row.split("|")[1])]
    return [[part for part in parts if part.strip()] for parts in found]


def is_of(text: str, entry: list[str]) -> bool:
    return all(part in text for part in entry)


@pytest.mark.parametrize(("module", "text"), ALL_LINES, ids=[f"{at}-{literal(text)[:20]}" for at, text in ALL_LINES])
def test_each_line_of_the_log_has_its_entry(module: str, text: str) -> None:
    assert any(is_of(text, entry) for entry in entries())


def test_no_entry_is_of_a_line_that_is_gone() -> None:
    texts = [text for _, text in ALL_LINES] + UNKNOWN_TOPIC
    for entry in entries():
        assert sum(len(part) for part in entry) >= 9, entry
        assert any(is_of(text, entry) for text in texts), entry


def test_lines_are_found() -> None:
    assert len(ALL_LINES) > 50
    assert ("_delivery/unheard.py", "%s%d record(s) for %s failed: %s") in ALL_LINES


def test_each_phase_of_a_timeout_has_its_entry() -> None:
    tree = ast.parse((PACKAGE / "_sender" / "failure_words.py").read_text(encoding="utf-8"))
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "waiting_phase"]
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
    phases = {"in flight", "waiting for metadata", "waiting for memory", "flush"}
    for value in returned:
        # Of an f-string only the beginning.
        parts = value.values[:1] if isinstance(value, ast.JoinedStr) else [value]
        texts = [each.value for part in parts for each in ast.walk(part) if isinstance(each, ast.Constant)]
        phases |= {text.strip() for text in texts if isinstance(text, str)}
    assert {"no leader known", "queued (node", "lingering", "backing off"} <= phases
    assert phases <= {cell.strip(" `") for cell in first_cells()}


def test_lines_about_a_topic_that_a_broker_does_not_know() -> None:
    for text in UNKNOWN_TOPIC:
        assert any(is_of(text, entry) for entry in entries())
