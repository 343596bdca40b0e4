"""Tasks of a table's write, without costs of the client."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.tune._world.tasks import TaskWorld
from forebay.tune.brokers import Brokers
from forebay.tune.workload import Stream, Workload
from tests.support.costs import NO_COSTS


def world_of(rows: int, *, producers: int = 1, settings: dict[str, Any] | None = None, **stream: Any) -> TaskWorld:
    kind = Stream(**{"callers": "closed", "think_ms": 10.0, "batch_rows": 100, "sizes": 100, **stream})
    load = Workload([kind], topics={"table": 4}, producers=producers)
    brokers = Brokers.alike(2, rtt_ms=1, fixed_ms=2, per_mib_ms=0)
    world = TaskWorld(load, brokers, settings or {"linger.ms": 100}, costs=NO_COSTS, seed=1)
    world.rows = rows
    world.run(600)
    world.close()
    return world


def test_a_task_sends_its_rows_and_ends_with_a_flush() -> None:
    """Ten tables of 100 rows, 10 ms apart; the last batch does not linger."""
    world = world_of(1000)
    found, ms = world.recorder, world.task_ms()
    assert (found.sent, found.acknowledged) == (1000, 1000)
    assert ms == pytest.approx(10 * 10 + 3, abs=0.01)


def test_the_last_table_may_have_fewer_rows() -> None:
    assert world_of(250).recorder.acknowledged == 250


def test_a_flush_waits_for_a_batch_of_each_partition() -> None:
    world = world_of(100, partitions=(1, 1, 1, 1))
    assert sum(node.batches for node in world.recorder.nodes.values()) == 4
    assert sum(node.requests for node in world.recorder.nodes.values()) == 2
    ms = world.task_ms()
    assert ms == pytest.approx(10 + 3, abs=0.01), "it does not linger"


def test_each_producer_has_a_task() -> None:
    world = world_of(500, producers=3)
    assert world.recorder.acknowledged == 1500
    assert len(world.callers) == 3 and world.task_ms() is not None


def test_a_task_whose_rows_wait_for_memory_ends_later() -> None:
    quick, slow = (
        world_of(2000, sizes=1000, settings={"buffer.memory": memory, "batch.size": 16384}).task_ms()
        for memory in (32 << 20, 1 << 16)
    )
    assert quick is not None and slow is not None and slow > quick
