"""Tasks of a table's write: each hands over its rows table by table, flushes at its end, and is over then."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from forebay._runtime.ticket import Ticket
from forebay.tune._world.callers import Record, TableCaller, records
from forebay.tune._world.world import SimulatedProducer, World


class Flushed(Ticket):
    """Counts the batches that a task's flush waits for."""

    def __init__(self, task: TaskCaller) -> None:
        super().__init__()
        self._task = task
        self.left: int = 1

    def wake(self) -> None:
        """As ``Ticket.wake``: one batch less."""
        self.left -= 1
        if not self.left:
            self._task.flushed()


class TaskCaller(TableCaller):
    """A task: the records of its source, then a flush."""

    def __init__(self, producer: SimulatedProducer, source: Iterator[Record], **more: Any) -> None:
        super().__init__(producer, source, **more)
        self.ended_at: float | None = None
        """When its last row was acknowledged, or failed."""
        self._parts = producer.parts
        self._flushes = False

    def _take(self, free_at: float) -> float:
        at = super()._take(free_at)
        if self.record is None and not self._flushes:
            self._flushes = True
            self._agenda.at(free_at, self._flush)
        return at

    def _flush(self) -> None:
        ticket = Flushed(self)
        batches = self._parts.accumulator.begin_flush()
        ticket.left += sum(not batch.result.subscribe(ticket) for batch in batches)
        self._parts.client.wakeup()
        ticket.wake()

    def flushed(self) -> None:
        """All batches have their outcome."""
        self._parts.accumulator.end_flush()
        self.ended_at = self._agenda.clock.now()


class TaskWorld(World):
    """A world in which each producer writes ``rows`` rows of the load's one stream, which hands over tables.

    A task reads for the stream's ``think_ms`` before each of them.
    """

    rows: int = 0
    begun_at: float = 0.0

    def _begin_callers(self, begin: float, end: float) -> None:
        self.begun_at = begin
        (stream,) = self.load.streams
        for number, producer in enumerate(self.producers):
            source = records(stream, self._topics, f"{self.seed} task {number}", begin, end)
            caller = TaskCaller(
                producer,
                islice(source, self.rows),
                rows=stream.batch_rows,
                think_ms=stream.think_ms,
                record_ms=self.costs.row,
                wake_ms=self.costs.wake,
                end=end,
            )
            self.callers.append(caller)
            caller.begin(begin + stream.think_ms)

    def task_ms(self) -> float | None:
        """How long the slowest task took; None: it did not end."""
        ends = [caller.ended_at for caller in self.callers if isinstance(caller, TaskCaller)]
        known = [end for end in ends if end is not None]
        return max(known) - self.begun_at if len(known) == len(ends) else None
