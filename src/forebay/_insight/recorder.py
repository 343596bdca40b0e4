"""Recorder: writes a trace of what a running producer is given, on a thread of its own (``record_trace``).

It watches batches, not sends: ``BatchWatch`` reads a batch's encoded records when it closes, and notes its outcome.
Sending costs no more than before, and a closing batch a walk over its records.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
import shutil
import tempfile
import weakref
from typing import IO, TYPE_CHECKING, Any

from forebay._accumulator.watching import BatchWatch, room_of
from forebay._insight.trace_file import BATCH, encoded, head_line, of_rows, turned
from forebay._metrics.names import PRODUCER
from forebay._runtime.threads import start_thread
from forebay._runtime.ticket import Latch
from forebay._runtime.times import is_number
from forebay._runtime.version import VERSION
from forebay.errors import IllegalArgumentError, IllegalStateError

if TYPE_CHECKING:
    from collections.abc import Mapping


logger = logging.getLogger("forebay.producer")

POLL_MS = 50.0
METRICS_MS = 1000.0
"""Between two looks at the metrics, of which nothing is left once the producer has ended."""
GRACE_MS = 5_000.0
"""How long outcomes are waited for after the end; the producer's own end ends it, too."""
EXIT_MS = 10_000.0
"""How long the exit of the process waits for the files."""
MOST_WAITING = 32 << 20
"""Bytes of notes that may wait for the thread; what comes then is left out, and counted."""
BLOCK_SIZE = 1 << 20
STALL_MS = 0.5
"""From which on it is noted that the thread woke late."""
MOST_STALLS = 10_000
MOST_EVERY = 1000
FOUND_S = 600.0
"""For which a trace is recorded that the environment asks for without a time."""
SETTINGS = frozenset(
    {
        *("acks", "batch.size", "buffer.memory", "buffer.memory.max.node.share", "compression.type", "linger.ms"),
        *("compression.gzip.level", "compression.lz4.level", "compression.zstd.level", "delivery.timeout.ms"),
        *("enable.idempotence", "max.block.ms", "max.in.flight.requests.per.connection", "max.request.size"),
        *("max.sparse.batches.in.flight", "metadata.max.age.ms", "partitioner.adaptive.partitioning.enable"),
        *("partitioner.availability.timeout.ms", "partitioner.ignore.keys", "request.timeout.ms"),
        *("retries", "retry.backoff.max.ms", "retry.backoff.ms"),
    }
)
"""What a trace tells of the configuration: nothing of how brokers are reached, and nothing secret."""

_recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()


class Recorder:
    """Records from ``begin`` to ``finish``; one for a producer at a time.

    Args:
        parts: of the producer (``_assembly.Components``).
        path: the file; it is there once the recording has ended.
        seconds: for how long.
        share: of the moments (1 ms each) whose records are noted.

    Raises:
        OSError: no file can be made there.
    """

    def __init__(self, parts: Any, path: str, *, seconds: float, share: float) -> None:
        self.path = path
        self.ended = Latch()
        self.process = os.getpid()
        self._parts = parts
        self._stop = Latch()
        folder = os.path.dirname(os.path.abspath(path))
        descriptor, self._name = tempfile.mkstemp(dir=folder, prefix=".forebay-trace-")
        self._file: IO[bytes] = os.fdopen(descriptor, "w+b")
        self._every = round(1 / share)
        now = self._begun = parts.clock.now()
        self._end = now + 1000 * seconds
        self._began_ms = parts.clock.wall()
        self._watch = BatchWatch(parts.clock, self._every, MOST_WAITING)
        self._first_metrics = self._last_metrics = self._metrics()
        self._metrics_at = now
        self._waited_ms = self._buffer_wait_ms()
        self._holds: list[tuple[int, int]] = []
        self._looks = 0
        self._stalls: list[tuple[float, float]] = []
        """When the thread was to wake, from the beginning, and by how much it woke later, in ms."""
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self._counts = {"records": 0, "kept": 0, "batches": 0, "blocks": 0}

    def begin(self) -> None:
        """Batches are noted from now on.

        Raises:
            IllegalStateError: another trace of this producer is being recorded.
        """
        if self._parts.accumulator.closer.watch is not None:
            self._drop_file()
            raise IllegalStateError("A trace of this producer is being recorded already; it ends by its time")
        self._parts.accumulator.closer.watch = self._watch

    def run(self) -> None:
        """The thread: looks now and then, and writes the file in the end.  Nothing that fails here fails a send."""
        try:
            while self.is_open():
                due = self._parts.clock.now() + POLL_MS
                self._stop.wait(POLL_MS)
                self.note_stall(due)
                self.look()
            self.finish()
        except Exception as error:
            logger.warning("The trace %s could not be written: %r", self.path, error, exc_info=True)
        finally:
            self._unwatch()
            self._drop_file()
            self.ended.set()

    def stop(self) -> None:
        """Makes the thread finish now."""
        self._stop.set()

    def is_open(self) -> bool:
        """Whether records or outcomes may still come that belong to it."""
        parts, now = self._parts, self._parts.clock.now()
        if parts.thread.finished or self._stop.is_set():
            return False
        return now < self._end or (bool(self._watch.open) and now < self._end + GRACE_MS)

    def look(self) -> None:
        """Writes what is done, and notes the waits for memory."""
        now = self._parts.clock.now()
        if now >= self._end:
            self._watch.stop()
        self._watch.tune_clock()
        self._note_hold(now)
        if now >= self._metrics_at + METRICS_MS:
            self._last_metrics, self._metrics_at = self._metrics() or self._last_metrics, now
        done = self._watch.take()
        self._waiting += done
        self._waiting_size += sum(map(len, done))
        if self._waiting_size >= BLOCK_SIZE:
            self._write_block()

    def note_stall(self, due: float) -> None:
        """The thread, which was to wake at this time (ms), has woken."""
        late = self._parts.clock.now() - due
        self._looks += 1
        if late >= STALL_MS and len(self._stalls) < MOST_STALLS:
            self._stalls.append((round(due - self._begun, 3), round(late, 3)))

    def _note_hold(self, now: float) -> None:
        """A wait for memory counts when it is over; of several threads at once, the longest that can be is noted."""
        waited = self._buffer_wait_ms()
        if waited > self._waited_ms:
            before = self._holds[-1][1] / 1000 + self._begun if self._holds else self._begun
            begin = max(before, now - (waited - self._waited_ms))
            self._holds.append((int(1000 * (begin - self._begun)), int(1000 * (now - self._begun))))
            self._waited_ms = waited

    def _write_block(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting, self._waiting_size = self._waiting, [], 0
        parts = [b"".join(waiting[at::4]) for at in range(4)]
        self._file.write(encoded(*parts))
        columns = dict(zip(BATCH, map(turned, of_rows(parts[0])), strict=True))
        batches, records = len(columns["count"]), sum(columns["count"])
        self._counts["blocks"] += 1
        self._counts["batches"] += batches
        self._counts["records"] += records
        self._counts["kept"] += sum(columns["kept"])
        self._watch.taken(batches * room_of(0) + room_of(records) - room_of(0))

    def finish(self) -> None:
        """Ends the recording, and makes the file.

        Raises:
            OSError: it cannot be written.
        """
        self._unwatch()
        now = self._parts.clock.now()
        self._watch.end_all()
        self.look()
        self._write_block()
        self._file.flush()
        self._file.seek(0)
        head = self._head(min(now, self._end))
        folder = os.path.dirname(os.path.abspath(self.path))
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".forebay-trace-", delete=False) as whole:
            try:
                whole.write(head_line(head))
                shutil.copyfileobj(self._file, whole)
                whole.close()
                os.replace(whole.name, self.path)
            except BaseException:
                os.unlink(whole.name)
                raise
        self._drop_file()
        left = self._watch.left_out_records
        logger.info("The trace %s is written: %d records, %d left out", self.path, self._counts["records"], left)

    def _head(self, end: float) -> Mapping[str, Any]:
        cluster = self._parts.metadata.cluster()
        config = self._parts.config
        given = sorted(SETTINGS.intersection(config.originals()))
        failure, topics = self._watch.failure, list(self._watch.topics)
        return {
            "forebay": VERSION,
            "client_id": self._parts.client_id,
            "began_ms": self._began_ms,
            "seconds": round((end - self._begun) / 1000, 6),
            "share": 1 / self._every,
            "every": self._every,
            "phase_us": (self._watch.begun_us + self._watch.ahead_us) % 1000,
            "settings": {name: config[name] for name in given},
            "metrics": {"begin": self._first_metrics, "end": self._metrics() or self._last_metrics},
            "nodes": sorted(node.id for node in cluster.nodes),
            "topics": topics,
            "leaders": {
                topic: [each.leader.id if each.leader is not None else -1 for each in cluster.partitions(topic)]
                for topic in topics
            },
            "holds": self._holds,
            "stalls": {"looks": self._looks, "long": self._stalls},
            **self._counts,
            "left_out": {"batches": self._watch.left_out_batches, "records": self._watch.left_out_records},
            "failure": None if failure is None else repr(failure),
        }

    def _metrics(self) -> dict[str, float]:
        snapshot = self._parts.metrics.snapshot(self._parts.clock.now())
        numbers = {name.name: value for name, value in snapshot.items() if name.group == PRODUCER}
        return {name: float(value) for name, value in numbers.items() if value == value}  # a mean of nothing is none

    def _buffer_wait_ms(self) -> float:
        return float(self._parts.metrics.buffer_wait_ns.total) / 1e6

    def _unwatch(self) -> None:
        self._watch.stop()
        if self._parts.accumulator.closer.watch is self._watch:
            self._parts.accumulator.closer.watch = None

    def _drop_file(self) -> None:
        if not self._file.closed:
            self._file.close()
            os.unlink(self._name)


def record(parts: Any, path: str | os.PathLike[str], *, seconds: float, share: float = 1.0) -> Recorder:
    """Begins to record, and returns at once.

    Raises:
        IllegalArgumentError: no time, or a share that is not above 0 and at most 1.
        IllegalStateError: another trace is being recorded.
        OSError: no file can be made there.
        RuntimeError: no thread can be started.
    """
    if not 0 < seconds <= 7 * 86_400:
        raise IllegalArgumentError(f"seconds is {seconds!r}; it must be above 0 and at most a week")
    if not is_number(share) or not 1 / MOST_EVERY <= share <= 1:
        raise IllegalArgumentError(f"share is {share!r}; it must be from {1 / MOST_EVERY} to 1")
    recorder = Recorder(parts, os.fspath(path), seconds=seconds, share=share)
    recorder.begin()
    try:
        start_thread(recorder.run, "forebay-trace")
    except BaseException:
        recorder._unwatch()
        recorder._drop_file()
        raise
    _recorders.add(recorder)
    return recorder


_files = itertools.count(1)


def record_as_told(parts: Any, told: str, prefix: str) -> Recorder | None:
    """Begins what the environment asks for by ``path`` or ``path:seconds``; what cannot be done is logged.

    In a folder each producer gets a file of its own.
    """
    path, _, last = told.rpartition(":")
    try:
        seconds = float(last)
    except ValueError:
        path, seconds = told, FOUND_S
    if os.path.isdir(path):
        name = re.sub(r"[^\w.-]", "_", parts.client_id)
        path = os.path.join(path, f"forebay-{os.getpid()}-{next(_files)}-{name}.trace")
    try:
        return record(parts, path, seconds=seconds)
    except (OSError, RuntimeError, IllegalArgumentError) as error:
        # Recording must not keep records from going.
        logger.warning("%sno trace is recorded in %r: %s", prefix, path, error)
        return None


def join_all(limit_ms: float = EXIT_MS) -> bool:
    """Waits until the traces of producers that have ended are written, and ends the others; at exit."""
    own = [recorder for recorder in list(_recorders) if recorder.process == os.getpid()]
    for recorder in own:
        recorder.stop()
    return all(recorder.ended.wait(limit_ms) for recorder in own)
