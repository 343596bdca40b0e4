"""What a DataFrame's write asks of the brokers, what others of them notice, and how many tasks may run.

One task is simulated, from its first row to the flush at its end.  The others that run at the same time are a field of
its requests, and a producer that sends now and then is another one, before and during the write.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from forebay.config import ProducerConfig
from forebay.tune._checks import number, whole
from forebay.tune._world.costs import Costs
from forebay.tune.brokers import Brokers
from forebay.tune.files import SIMULATED
from forebay.tune.spark_table import SparkTable, SparkWrite, WriteFigures
from forebay.tune.spark_text import reasons_for
from forebay.tune.workload import Workload

if TYPE_CHECKING:
    from forebay.tune._world.field import Field, Notes
    from forebay.tune._world.tasks import TaskWorld

VERSION = 1
"""Of the JSON."""
MOST_ROWS = 100_000
"""Rows of a task that are simulated; a longer one takes as much longer."""
START_MS = 20.0
"""What Spark takes for a task beside its rows: a guess."""
LONGEST_S = 7200.0
"""In which a task's rows have to end."""
STEPS = 8
"""Numbers of tasks that are tried for the busy share, at most."""
NEAR = 0.97
"""Part of the busy share that more tasks are to come to, where fewer than that leave some of it."""
LEAST_BUSY = 1e-12
"""A smaller share is like none at all."""
PROBE: Mapping[str, Any] = {"rate": 200.0, "sizes": 200}
"""What another producer sends, with default settings, to as many partitions."""
PROBE_S = 10.0


def spark_write(
    table: SparkTable,
    *,
    brokers: Brokers | None = None,
    costs: Costs | None = None,
    seed: int = 1,
    busy: float = 0.5,
    trigger_s: float | None = None,
) -> SparkWrite:
    """What a table's write asks of the brokers; neither Spark nor a broker is needed.

    Args:
        table: rows, tasks, options.
        brokers: what it writes to; None: one node as fast as ``Broker()``.
        costs: of the client's own work; None: guesses.
        busy: the share of the handlers' time that the write may take of any node.
        trigger_s: seconds of a stream's trigger, in which the write has to end.

    Raises:
        ConfigError: an option that is unknown or not simulated, or a value that cannot be.
    """
    number("busy", busy, 0, 1, above=True)
    if trigger_s is not None:
        number("trigger_s", trigger_s, 0, above=True)
    question = _Writes(table, brokers or Brokers(), costs or Costs(), whole("seed", seed, 0))
    before = question.others(None)
    present = question.figures(table)
    fewer = question.within(present, busy)
    grouped = None
    if table.keyed and not table.grouped:
        grouped = question.figures(replace(table, grouped=True, tasks=min(table.tasks, table.partitions), splits=None))
    found = SparkWrite(
        version=VERSION,
        seed=seed,
        table=table,
        settings=table.settings(),
        busy_limit=busy,
        trigger_s=trigger_s,
        before_ms=before,
        present=present,
        fewer=fewer,
        grouped=grouped,
        memory=-(-table.tasks // table.executors) * question.memory(),
        reasons=(),
        assumptions=_assumptions(table, question.brokers, costs),
    )
    return replace(found, reasons=reasons_for(found))


@dataclass(frozen=True, slots=True)
class _Writes:
    """Runs of tables before the same brokers."""

    table: SparkTable
    brokers: Brokers
    costs: Costs
    seed: int

    def figures(self, table: SparkTable, *, probed: bool = True) -> WriteFigures:
        """A whole write; without what others notice of it, if it is not ``probed``."""
        rows = table.rows_a_task
        simulated = min(rows, MOST_ROWS)
        world, field_ = self.task(table, simulated)
        found, ms = world.recorder, self.task_ms(world)
        nodes = [*found.nodes.values()]
        batches = sum(node.batches for node in nodes)
        requests, records = (sum(getattr(node, name) for node in nodes) for name in ("requests", "records"))
        many = rows / simulated * table.in_all
        p50, p99 = self.others(field_) if probed else (0.0, 0.0)
        busy = self.of_average([node.busy_ms for node in nodes], table)
        handlers = [broker.handlers for broker in self.brokers.nodes]
        return WriteFigures(
            tasks=table.tasks,
            splits=table.in_all,
            seconds=round(
                math.ceil(table.in_all / table.tasks) * (START_MS + (ms - START_MS) * rows / simulated) / 1000, 3
            ),
            requests=round(requests * many),
            batches=round(batches * many),
            bytes_a_request=round(sum(node.size for node in nodes) / max(1, requests), 1),
            rows_a_batch=round(records / max(1, batches), 1),
            fill=round(found.batch_bytes / max(1, batches * found.batch_size), 4),
            requests_s=tuple(
                round(1000 * each * table.tasks / ms, 1)
                for each in self.of_average([float(node.requests) for node in nodes], table)
            ),
            busy=tuple(
                digits(min(1.0, each * table.tasks / ms / count)) for each, count in zip(busy, handlers, strict=True)
            ),
            others_p50_ms=p50,
            others_p99_ms=p99,
            failed=sum(found.failed.values()),
        )

    def differ(self, table: SparkTable) -> bool:
        """Whether tasks have other partitions than each other, so that one does on a node what another does elsewhere.

        Rows without keys fill batches of few partitions in the time of a task.
        """
        nodes = self.brokers.nodes
        even = table.partitions % len(nodes) == 0 and len(set(nodes)) == 1
        return table.grouped or (even and not table.keyed)

    def of_average(self, counted: list[float], table: SparkTable) -> list[float]:
        """By node, of all tasks on average, what was counted of one."""
        return [sum(counted) / len(counted)] * len(counted) if self.differ(table) else counted

    def task(self, table: SparkTable, rows: int) -> tuple[TaskWorld, Field]:
        """A task beside the others, and the field of all of them."""
        from forebay.tune._world.field import Notes

        notes = Notes()
        world = self.run(table, rows, None, notes)
        ms, config = self.task_ms(world), world.config
        if table.tasks > 1:
            world = self.run(table, rows, self.field(table, config, notes, ms, table.tasks - 1), None)
        return world, self.field(table, config, notes, ms, table.tasks)

    @staticmethod
    def task_ms(world: TaskWorld) -> float:
        """From the start of a task to that of the next one in its place."""
        return START_MS + (world.task_ms() or 1000 * LONGEST_S)

    def run(self, table: SparkTable, rows: int, around: Field | None, notes: Notes | None) -> TaskWorld:
        """One task, beside a field."""
        from forebay.tune._world.tasks import TaskWorld

        load = Workload([table.stream()], topics={"table": table.partitions}, compression=table.compression)
        settings, costs = table.settings(), self.costs
        world = TaskWorld(load, self.brokers, settings, costs=costs, seed=self.seed, field=around, notes=notes)
        world.rows = rows
        try:
            world.run(LONGEST_S)
        finally:
            world.close()
        return world

    def field(self, table: SparkTable, config: Mapping[str, Any], notes: Notes, ms: float, count: int) -> Field:
        """So many tasks that do what one did alone, one task after the other; they hold up each other."""
        from forebay.tune._world.field import Field, Phases

        partitions = -(-table.partitions // len(self.brokers.nodes))
        phases = Phases(ms, ms, ms)
        return Field.of(notes, count, phases, config, partitions=partitions, in_turn=self.differ(table))

    def others(self, around: Field | None) -> tuple[float, float]:
        """p50 and p99 of another producer beside a field."""
        from forebay.tune._world.world import World

        load = Workload(**PROBE, topics={"others": self.table.partitions})
        world = World(load, self.brokers, {}, costs=self.costs, seed=self.seed, field=around)
        try:
            found = world.run(PROBE_S).from_due
        finally:
            world.close()
        return round(found.quantile(0.5), 3), round(found.quantile(0.99), 3)

    def within(self, present: WriteFigures, limit: float) -> WriteFigures | None:
        """With as many tasks, and no more splits, as keep each node under the busy share; None: these do."""
        if max(present.busy) <= limit or present.tasks == 1:
            return None
        # Tasks that hold up each other do not show how much they ask for.
        alone = self.figures(replace(self.table, tasks=1, splits=self.table.in_all), probed=False)
        few = max(1, min(present.tasks - 1, int(limit / max(*alone.busy, LEAST_BUSY))))
        share = self.busy(few)
        for _ in range(STEPS):
            if share <= limit or few == 1:
                break
            few = max(1, min(few - 1, int(few * limit / max(share, LEAST_BUSY))))
            share = self.busy(few)
        more = min(present.tasks - 1, int(few * NEAR * limit / max(share, LEAST_BUSY)))
        if more > few and self.busy(more) <= limit:
            few = more
        return self.figures(self.of_tasks(few))

    def of_tasks(self, count: int) -> SparkTable:
        """The table in so many tasks."""
        return replace(self.table, tasks=count, splits=None)

    def busy(self, tasks: int) -> float:
        """The share of the busiest node."""
        return max(self.figures(self.of_tasks(tasks), probed=False).busy)

    def memory(self) -> int:
        """Bytes of one producer's buffer."""
        return int(ProducerConfig({**self.table.settings(), **SIMULATED})["buffer.memory"])


def digits(share: float) -> float:
    """Four digits that count: a share that is small is not none."""
    return float(f"{share:.4g}")


def _assumptions(table: SparkTable, brokers: Brokers, costs: Costs | None) -> tuple[str, ...]:
    said = [
        "one task is simulated, and the others do the same at other times",
        f"Spark takes {START_MS:g} ms for a task beside its rows, and nothing for the write as a whole",
        f"another producer sends {PROBE['rate']:g} records/s with default settings",
    ]
    if table.rate is None:
        said.append(f"a task hands over {table.rows_s:,.0f} rows/s at most, a guess")
    if table.rows > MOST_ROWS * table.in_all:
        said.append(f"{MOST_ROWS:,} rows of a task are simulated, and the rest is as they are")
    if not brokers.measured:
        said.append("the times of the brokers are guesses")
    if costs is None:
        said.append("the times of the client's own work are guesses")
    if table.compression is not None:
        said.append(f"every batch compresses to {table.compression.ratio:g} of its bytes")
    return tuple(said)
