"""The order of the runs of exactly-once beside at-least-once."""

from __future__ import annotations

from typing import Any

from bench.guarantees import CASES, runs_of


class Kafka:
    """Notes the topics that are made."""

    bootstrap_servers = "h:1"

    def __init__(self) -> None:
        self.topics: list[str] = []

    def create_topic(self, name: str, partitions: int) -> None:
        self.topics.append(name)


def test_each_case_begins_with_a_round_that_is_not_counted_and_the_ways_take_turns() -> None:
    kafka: Any = Kafka()
    runs = runs_of(kafka, 2)
    assert len(runs) == len(CASES) * 9
    assert [run["round"] for run in runs[:9]] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [run["way"] for run in runs[3:6]] == ["at least once", "exactly once", "noop"]
    assert kafka.topics == [run["options"]["topic"] for run in runs if run["way"] != "noop"]
    assert [run["options"].get("deliveryGuarantee") for run in runs[:3]] == [None, None, "exactly-once"]
    assert {run["sink"] for run in runs} == {"noop", "forebay"}
