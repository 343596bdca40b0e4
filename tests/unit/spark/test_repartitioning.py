"""What ``repartition`` refuses before it looks at a frame; what it does is in tests/spark."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pyspark.errors import PySparkAttributeError

from forebay.errors import ConfigError
from forebay.spark.options import parse
from forebay.spark.repartitioning import repartition

FRAME: Any = object()
SERVERS = {"kafka.bootstrap.servers": "h:1"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SERVERS, "repartition needs the option 'topic'"),
        (
            {**SERVERS, "topic": "t", "kafka.partitioner.ignore.keys": "true"},
            "with the option 'kafka.partitioner.ignore",
        ),
        ({**SERVERS, "topic": "t", "topics": "t"}, "Unknown option 'topics'"),
    ],
)
def test_it_refuses_what_it_cannot_do(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        repartition(FRAME, options, partitions=3, tasks=3)


def test_it_needs_a_partition_and_a_task() -> None:
    with pytest.raises(ConfigError, match="not 0 and 1"):
        repartition(FRAME, {**SERVERS, "topic": "t"}, tasks=1, counter=lambda producer, topic: 0)


def test_the_sinks_option_says_what_to_do_instead() -> None:
    with pytest.raises(ConfigError, match=r"Option 'repartition' is not supported: .*forebay.spark.repartition"):
        parse({**SERVERS, "topic": "t", "repartition": "kafka"})


class Context:
    defaultParallelism = 6


class Session:
    """A usual one, one with executors that come and go, or one of Spark Connect."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.conf = {"spark.sql.shuffle.partitions": "40"}
        if kind == "dynamic":
            self.conf["spark.dynamicAllocation.enabled"] = "true"

    @property
    def sparkContext(self) -> Context:
        if self.kind != "connect":
            return Context()
        raise PySparkAttributeError(errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": "x"})


class Frame:
    columns = ("value",)

    def __init__(self, kind: str) -> None:
        self.sparkSession = Session(kind)

    def repartitionById(self, tasks: int, column: Any) -> int:
        return tasks


@pytest.mark.parametrize(
    ("kind", "partitions", "tasks"),
    [("usual", 200, 6), ("usual", 3, 3), ("connect", 200, 40), ("connect", 3, 3), ("dynamic", 200, 40)],
)
def test_there_are_as_many_tasks_as_run_at_a_time(
    monkeypatch: pytest.MonkeyPatch, kind: str, partitions: int, tasks: int
) -> None:
    monkeypatch.setattr(sys.modules["forebay.spark.repartitioning"], "_task_of", lambda *_: None)
    frame: Any = Frame(kind)
    found: Any = repartition(frame, {**SERVERS, "topic": "t"}, partitions=partitions)
    assert found == tasks
