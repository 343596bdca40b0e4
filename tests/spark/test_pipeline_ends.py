"""How ``forebay pipeline run`` ends on a terminal: Ctrl-C between micro-batches, a restart, and a failure in a task."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer

import forebay
from forebay.testing import EmbeddedBroker
from tests.spark.conftest import ReadAll
from tests.support.pace import PROGRAM_S

pytestmark = pytest.mark.rest("starts a JVM of its own")

PACKAGE = f"{Path(forebay.__file__).parent}{os.sep}"

JOB = """
[source]
format = "rate"
options = {{ rowsPerSecond = 50 }}

[sql]
query = "SELECT value AS number, {late} AS late FROM source"

[map]
value = "struct(*)"

[value]
format = "avro"
schema = '''{{"type": "record", "name": "R", "fields": [
  {{"name": "number", "type": "long"}}, {{"name": "late", "type": "boolean"}}
]}}'''

[sink]
topic = "{topic}"

[producer]
bootstrap.servers = "{servers}"
linger.ms = 5

[spark]
master = "local[1]"

[stream]
checkpoint = "state"
trigger = "8 seconds"
"""


def started(path: Path) -> subprocess.Popen[str]:
    # A session of its own, as a terminal's job has: Ctrl-C reaches every process of it, Java included.
    command = [sys.executable, "-m", "forebay", "pipeline", "run", str(path), "--json"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=path.parent
    )


def wait_for_rows(broker: EmbeddedBroker, topic: str, count: int) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": f"w{count}", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        found = 0
        while found < count:
            found += sum(message.error() is None for message in consumer.consume(count, 1.0))
    finally:
        consumer.close()


def numbers(messages: list[bytes]) -> Counter[int]:
    """Avro's long, which is all of the record but its last byte."""
    read: Counter[int] = Counter()
    for data in messages:
        number = 0
        for place, byte in enumerate(data[:-1]):
            number |= (byte & 0x7F) << (7 * place)
        read[number >> 1] += 1
    return read


def test_ctrl_c_ends_a_stream_between_two_micro_batches_and_a_restart_goes_on(
    tmp_path: Path, broker: EmbeddedBroker, topic: str, read_all: ReadAll
) -> None:
    path = tmp_path / "job.toml"
    path.write_text(JOB.format(topic=topic, servers=broker.bootstrap_servers, late="false"))
    read: Counter[int] = Counter()
    for _ in range(2):
        process = started(path)
        wait_for_rows(broker, topic, sum(read.values()) + 60)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PROGRAM_S)
        assert process.returncode == 130, err
        assert err.splitlines()[-1] == "forebay: error: stopped by Ctrl-C"
        # PySpark's own processes may say that they were interrupted, or that Java is gone; no code of a job's does.
        assert f'File "{PACKAGE}' not in err and "at org.apache" not in err, err
        read = numbers([message.value() for message in read_all(topic)])
        assert json.loads(out)["acknowledged"] == sum(read.values())
        # Every row once: none was cut off in the middle of a micro-batch, none was left out by the restart.
        assert set(read.values()) == {1}
        assert sorted(read) == list(range(len(read)))


def test_a_failure_in_a_task_is_the_last_line_and_no_page_of_java(
    tmp_path: Path, broker: EmbeddedBroker, topic: str
) -> None:
    path = tmp_path / "job.toml"
    path.write_text(JOB.format(topic=topic, servers=broker.bootstrap_servers, late="IF(value = 30, NULL, false)"))
    out, err = started(path).communicate(timeout=PROGRAM_S)
    last = err.splitlines()[-1]
    assert last.startswith("forebay: error: stream: row ")
    assert 'cannot be encoded as avro: Field(R.late) is None expected boolean. The row: {"value": {"number": 30' in last
    assert "at org.apache" not in err and out == ""
