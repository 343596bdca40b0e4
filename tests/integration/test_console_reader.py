"""kafka-console-producer itself: it does what the unit tests have of its reader, and the command does the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_cli import forebay
from tests.support.fixtures import TopicFactory
from tests.support.pace import HANG_S
from tests.support.readback import read_all
from tools.kafka import RealKafka

pytestmark = pytest.mark.rest("a JVM for each line; the unit tests have what it answered")

RECORDED = Path(__file__).parents[1] / "unit" / "cli" / "input" / "console_reader.jsonl"
CASES = [json.loads(line) for line in RECORDED.read_text().splitlines()][::23]
"""Each property is in some of them."""
TOOL = "org.apache.kafka.tools.ConsoleProducer"


def found(kafka: RealKafka, topic: str) -> list[Any]:
    return [
        [*(None if each is None else each.decode() for each in (record.key, record.value)), record.headers]
        for record in read_all(kafka.bootstrap_servers, topic)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(f"{name}={value}" for name, value in case[0].items()))
def test_the_tool_and_the_command_send_what_was_recorded(kafka: RealKafka, topic: TopicFactory, case: Any) -> None:
    properties, text, records, fails = case
    data = text.encode("latin-1")
    flags = [part for name, value in properties.items() for part in ("--property", f"{name}={value}")]
    expected = [
        [key, value, tuple((n, None if v is None else v.encode()) for n, v in pairs)] for key, value, pairs in records
    ]
    theirs, ours = topic(kafka), topic(kafka)
    command = kafka.tool_command(TOOL, "--bootstrap-server", kafka.bootstrap_servers, "--topic", theirs, *flags)
    tool = subprocess.run(command, input=data, capture_output=True, timeout=HANG_S, check=False)
    code, _, err = forebay(
        "console-producer", "--bootstrap-server", kafka.bootstrap_servers, "--topic", ours, *flags, text=data
    )
    assert (tool.returncode != 0, code != 0) == (fails, fails), (tool.stderr, err)
    assert found(kafka, theirs) == found(kafka, ours) == expected
