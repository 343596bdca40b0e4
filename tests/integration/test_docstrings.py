"""The examples of docstrings, each as it stands but for the broker's address, with the names that its place implies."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forebay
from forebay.errors import NotLeaderOrFollowerError
from forebay.producer.process import PerProcess
from forebay.testing import EmbeddedBroker, MockProducer
from tests.integration.workload import WAIT_S
from tests.support.readme import ADDRESS

PACKAGE = Path(forebay.__file__).parent
EXAMPLE = re.compile(r"::\n\n((?:    .*\n|\n)+)")


def place_order(producer: MockProducer) -> None:
    producer.send("orders", b"order 41")


NAMES: dict[str, dict[str, Any]] = {
    "AsyncKafkaProducer": {"AsyncKafkaProducer": forebay.AsyncKafkaProducer},
    "compat/confluent_kafka/__init__.py": {},
    "metrics/otel.py": {"KafkaProducer": forebay.KafkaProducer},
    "per_process": {"per_process": forebay.per_process},
    "EmbeddedBroker": {"EmbeddedBroker": EmbeddedBroker, "KafkaProducer": forebay.KafkaProducer},
    "Faults": {"NotLeaderOrFollowerError": NotLeaderOrFollowerError},
    "MockProducer": {"MockProducer": MockProducer, "place_order": place_order},
}
"""What each example takes as known; a new one needs its line here."""


def examples() -> Iterator[tuple[str, str]]:
    """The place of each example, and its text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = str(path.relative_to(PACKAGE)) if isinstance(node, ast.Module) else node.name
                for found in EXAMPLE.findall((ast.get_docstring(node) or "") + "\n"):
                    yield name, textwrap.dedent(found)


def test_each_example_is_known() -> None:
    assert sorted(name for name, _ in examples()) == sorted(NAMES)


@pytest.mark.parametrize(("name", "text"), list(examples()), ids=[name for name, _ in examples()])
def test_an_example_runs(name: str, text: str, embedded: EmbeddedBroker) -> None:
    names = {**NAMES[name], "kafka_broker": embedded}
    code = compile(
        text.replace(ADDRESS, embedded.bootstrap_servers), name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    try:
        done = eval(code, names)
        if inspect.isawaitable(done):
            asyncio.run(asyncio.wait_for(done, WAIT_S))
        if name == "per_process":
            names["handle"](b"an event")
    finally:
        close(names.get("producer"))


def close(producer: Any) -> None:
    """What an example leaves open; an asyncio one it closes itself."""
    if isinstance(producer, PerProcess):
        producer = producer()
    if producer is not None and not isinstance(producer, forebay.AsyncKafkaProducer):
        producer.close()
