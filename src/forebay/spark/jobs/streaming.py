"""A stream from its start to its end: micro-batch by micro-batch, and stopped well by a signal or after its time.

In output mode update each micro-batch is a batch write, which replaces the file of counters, so they are added here.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

from forebay._runtime.clock import Clock, SystemClock
from forebay.spark.commit import FORMAT, Counters
from forebay.spark.jobs.job import TRIGGER_NOW, Stream
from forebay.spark.jobs.session import Show, judged
from forebay.spark.jobs.table import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Values = Mapping[str, Any]

POLL_S = 0.3
GAP_POLL_S = 0.02
"""Between two looks for the end of a micro-batch, while a stream is to stop.

A stream that is behind begins the next one at once.  It plans it for longer than this before its tasks write.
"""
LAST_BATCH_S = 60.0
"""How long a stream that is to stop may take for the micro-batch that runs."""


class Interrupted(Exception):
    """A signal stopped a stream; what it wrote is in ``counters``."""

    def __init__(self, number: int, counters: Mapping[str, Any]) -> None:
        super().__init__("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)
        self.exit_code: int = 128 + number
        self.counters = counters


@dataclass
class StreamRun:
    """What became of a stream."""

    batches: list[Mapping[str, Any]] = field(default_factory=list)
    """Spark's progress of the micro-batches, oldest first; the newest of a long run."""
    signal: int | None = None
    """The signal that stopped it."""


def run_stream(stream: Stream, frame: DataFrame, options: Mapping[str, str], show: Show, done: StreamRun) -> None:
    """Starts the stream and returns when it has ended.

    Args:
        options: the sink's.
        done: gets what became of it, also if it fails.

    Raises:
        JobError: Spark refused it, or a micro-batch failed; the last line of the reason.
        KeyboardInterrupt: a second signal.
    """
    clock = SystemClock()
    with _signals(done):
        # Started in here, because a signal meanwhile must not leave a running stream behind.
        query = judged(lambda: _started(stream, frame, options), "stream")
        try:
            judged(lambda: _follow(query, stream, done, show, clock), "stream")
        finally:
            judged(lambda: _stop(query, done), "stream")
    failed = query.exception()
    if failed is not None and done.signal is None:
        judged(lambda: _raise(failed), "stream")


def _stop(query: Any, done: StreamRun) -> None:
    # First of all: until then the next micro-batch may begin.
    query.stop()
    done.batches = [_plain(progress) for progress in query.recentProgress]


def _started(stream: Stream, frame: DataFrame, options: Mapping[str, str]) -> Any:
    writer = frame.writeStream.outputMode(stream.output_mode).option("checkpointLocation", stream.checkpoint)
    if stream.output_mode == "update":
        writer = writer.foreachBatch(_update_batches(options))
    else:
        writer = writer.format("forebay").options(**options)
    if stream.name is not None:
        writer = writer.queryName(stream.name)
    if stream.trigger == TRIGGER_NOW:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=stream.trigger).start()


def _update_batches(options: Mapping[str, str]) -> Callable[[DataFrame, int], None]:
    """Writes micro-batches of output mode update, which Spark refuses to a Python sink, and adds their counters up."""
    from forebay.spark import write_batches

    total = options.get("metrics.path")
    if total is None:  # on a Connect server, which counts for itself
        return write_batches(options)
    one = f"{total}.batch"
    write = write_batches({**options, "metrics.path": one})

    def each(frame: DataFrame, batch_id: int) -> None:
        write(frame, batch_id)
        add_batch(total, one, batch_id)

    return each


def _follow(query: Any, stream: Stream, done: StreamRun, show: Show, clock: Clock) -> None:
    """Waits until the stream has ended, or has to; then the micro-batch that runs may end."""
    ends = None if stream.stop_after_s is None else clock.now() + stream.stop_after_s * 1000
    rows, seen = 0, -1
    while not query.awaitTermination(POLL_S):
        if done.signal is not None or (ends is not None and clock.now() >= ends):
            _let_finish(query, clock)
            return
        progress = query.lastProgress
        if progress is not None and progress["batchId"] != seen:
            seen = progress["batchId"]
            rows += progress["numInputRows"]
            show(f"micro-batch {seen}, rows read", rows, None)


def _let_finish(query: Any, clock: Clock) -> None:
    """Returns between two micro-batches, if one ends soon: one that is cut short is written again by a restart."""
    last = query.lastProgress
    ends = clock.now() + LAST_BATCH_S * 1000
    while query.status["isTriggerActive"] and query.lastProgress == last and clock.now() < ends:
        if query.awaitTermination(GAP_POLL_S):
            return


@contextmanager
def _signals(done: StreamRun) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM is noted, the second one raises; only the main thread can."""
    if current_thread() is not main_thread():
        yield
        return

    def noted(number: int, frame: Any) -> None:
        if done.signal is not None:
            raise KeyboardInterrupt
        done.signal = number

    before = {number: signal.signal(number, noted) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise(error: BaseException) -> None:
    raise error


def _plain(progress: Any) -> Mapping[str, Any]:
    """What the report needs of Spark's progress."""
    return {
        "batch_id": progress["batchId"],
        "timestamp": progress["timestamp"],
        "rows": progress["numInputRows"],
        "duration_ms": dict(progress["durationMs"]),
    }


def read_counters(path: str) -> dict[str, Any]:
    """What the file holds; nothing if there is none, since a stream that found nothing to do commits nothing.

    Raises:
        JobError: something else is in the file.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise JobError(f"[sink] metrics {path!r} holds no counters of a job: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise JobError(f"[sink] metrics {path!r} holds no counters of a job; name another file")
    return found


def added(old: Values, new: Values, batch_id: int) -> dict[str, Any]:
    """``old`` with one write's counters on top; ``old`` may be empty.

    Args:
        batch_id: the micro-batch's number, which its write does not know.
    """
    total = Counters(old)
    total.merge(Counters(new), batch_id)
    return total.as_dict()


def add_batch(total: str, one: str, batch_id: int) -> None:
    """Adds the counters in file ``one``, which is taken away, to those in file ``total``."""
    new = read_counters(one)
    if new:
        Path(one).write_text(json.dumps(added(read_counters(total), new, batch_id), indent=2) + "\n", encoding="utf-8")
        os.replace(one, total)
