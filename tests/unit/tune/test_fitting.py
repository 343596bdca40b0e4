"""tune.fitting: tables that describe what was seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from forebay._insight.values import PartitionDescription, ProducerDescription, TopicDescription
from forebay.errors import ConfigError
from forebay.tune import Brokers, Workload
from forebay.tune.fitting import (
    mix,
    seen_cluster,
    seen_facts,
    seen_load,
    seen_settings,
    steps,
    times_of,
    trace_cluster,
    trace_streams,
)
from tests.unit._insight.test_text import PARTITION, SEEN
from tests.unit.tune.traces import Sent, steady, trace_of

METRICS = {"record-size-avg": 208.0, "request-latency-avg": 4.0, "request-rate": 50.0, "batch-size-avg": 900.0}


MEMORY = replace(SEEN.memory, total=32 << 20)


def busy(*partitions: int) -> tuple[PartitionDescription, ...]:
    return tuple(replace(PARTITION, topic="a", partition=each, records=2 + each, in_flight=0) for each in partitions)


def looks(*counts: int, **more: Any) -> list[ProducerDescription]:
    """A producer that has acknowledged so many records of topic a in all, a second apart."""
    given = {"partitions": busy(1), "idle_partitions": 5, "metrics": METRICS, "memory": MEMORY, **more}
    return [
        replace(
            SEEN,
            uptime_ms=1000.0 * at,
            topics=(TopicDescription("a", count, 0, 0, 250 * count, 8.0, 16.0),),
            **given,
        )
        for at, count in enumerate(counts)
    ]


def test_a_trace_has_a_stream_for_each_topic_with_keys_and_without() -> None:
    keyed = [Sent(at, [(0, 10, 90)], partition=at % 3) for at in range(6)]
    found = trace_streams(trace_of(*keyed, *steady(4), Sent(7, [(0, 0, 5)], topic=1)))
    assert [(each["rate"], each["sizes"], each.get("partitions")) for each in found] == [
        (4.0, {100: 1.0}, None),
        (6.0, {100: 1.0}, [2.0, 2.0, 2.0]),
        (1.0, {5: 1.0}, [1.0]),
    ]
    assert [each["topic"] for each in found] == ["a", "a", "b"]


def test_nodes_of_a_trace_have_the_times_of_their_fast_answers() -> None:
    batches = [Sent(0, [(0, -1, 1)], answer_us=1000 * each, node=2) for each in range(5, 25)]
    table = trace_cluster(trace_of(*batches))
    assert table["node"] == [{"node": 2, "rtt_ms": 1.0, "fixed_ms": 6.0}]
    assert [round(node.rtt_ms + node.fixed_ms, 3) for node in Brokers.of(table).nodes] == [1.5, 7.0]
    assert times_of(0.4) == {"rtt_ms": 0.2, "fixed_ms": 0.2}


def test_many_sizes_become_few_with_the_same_mean() -> None:
    assert mix({5: 1, 7: 3}) == {5: 0.25, 7: 0.75}
    found = mix(dict.fromkeys(range(1000), 1))
    assert len(found) <= 13 and sum(found.values()) == pytest.approx(1)
    assert sum(size * share for size, share in found.items()) == pytest.approx(499.5, abs=1)


def test_the_load_of_a_producer_that_was_looked_at() -> None:
    table = seen_load([looks(1000, 2000, 3010, 3990)])
    assert table == {"rate": pytest.approx(996.667), "sizes": 200, "topics": {"a": 6}, "producers": 1}
    assert Workload.of(table).rate == pytest.approx(996.667)


def test_partitions_that_are_busy_together_are_named() -> None:
    table = seen_load([looks(0, 1000, partitions=busy(0, 1, 3), idle_partitions=0)])
    assert table["partitions"] == [4.0, 6.0, 0.0, 10.0] and table["topics"] == {"a": 4}
    assert Workload.of(table).streams[0].partitions == (4.0, 6.0, 0.0, 10.0)


def test_several_producers_count_as_so_many_of_their_mean() -> None:
    silent = looks(7, 7)
    table = seen_load([looks(0, 1000), looks(0, 3000), silent])
    assert (table["rate"], table["producers"]) == (2000.0, 2)


def test_several_topics_are_streams_with_sizes_in_proportion() -> None:
    seen = [
        replace(
            each,
            topics=(
                TopicDescription("a", 1000 * at, 0, 0, 100_000 * at, 8.0, 16.0),
                TopicDescription("b", 500 * at, 500 * at, 0, 300_000 * at, 8.0, 16.0),
            ),
        )
        for at, each in enumerate(looks(0, 0, 0))
    ]
    table = seen_load([seen])
    assert [(each["topic"], each["rate"], each["sizes"]) for each in table["stream"]] == [
        ("a", 1000.0, 96),
        ("b", 1000.0, 304),
    ]
    assert Workload.of(table).rate == 2000


def test_where_nothing_was_sent_nothing_is_said() -> None:
    nothing: list[list[list[ProducerDescription]]] = [[], [[]], [looks(5)], [looks(5, 5)]]
    for seen in nothing:
        with pytest.raises(ConfigError, match="no record was acknowledged while it was looked at"):
            seen_load(seen)


def test_steps_begin_where_the_rate_changes_by_more_than_chance() -> None:
    assert steps([(1.0, 1000), (1.0, 1050), (1.0, 950)]) == 1000.0
    assert steps([(1.0, 100), (1.0, 130), (2.0, 2000), (1.0, 1000)]) == [[0.0, 115.0], [2.0, 1000.0]]
    assert steps([(1.0, 0)]) == 0.001


def test_what_is_told_of_the_cluster_and_of_settings() -> None:
    seen = [looks(0, 1000)]
    assert seen_cluster(seen) == {"nodes": len({node.id for node in SEEN.nodes if node.id >= 0}), **times_of(4.0)}
    assert seen_cluster([looks(0, 1, metrics={})])["nodes"] >= 1
    assert seen_settings(seen) == {"buffer.memory": 32 << 20}
    facts = seen_facts(seen)
    assert "requests a second: 50.00" in facts and f"fill of open batches: {PARTITION.fill:.2f}" in facts
