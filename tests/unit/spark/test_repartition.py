"""What ``repartition`` refuses before it looks at a frame; what it does is in tests/spark."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.errors import ConfigError
from forebay.spark.options import parse
from forebay.spark.repartition import repartition

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
