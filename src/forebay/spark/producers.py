"""The producers of one Spark worker process, kept from task to task.

Spark uses a worker for task after task and ends it without a word (no ``atexit``, no finaliser), so a producer is
kept here and every task leaves it flushed.  One task runs in a process at a time.  This is the package's one
module-level state: a worker hands a task nothing else that outlives it.
"""

from __future__ import annotations

import gc
import logging
import os
import platform
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from forebay._runtime.clock import SystemClock
from forebay.errors import KafkaError
from forebay.spark import secrets, sizes
from forebay.spark.options import SinkOptions

if TYPE_CHECKING:
    from forebay.model import TransactionIdentity
    from forebay.producer import KafkaProducer

logger: logging.Logger = logging.getLogger("forebay.spark")

MOST_KEPT = 2
"""Producers a worker keeps; a worker rarely serves more than one sink, and each holds threads and memory."""

IDLE_MS = 300_000.0
"""A producer that no task has used for so long is closed when the next task comes.  Spark itself ends a worker that no
task has used for a minute."""

CLOSE_TIMEOUT_S = 5.0

PRODUCER_GROUP = "producer-metrics"
TOPIC_GROUP = "producer-topic-metrics"
TOPIC_TOTALS = ("byte-total",)
"""What only topics count: bytes of batches as they were sent."""


class RowProducer(Protocol):
    """What a task needs of a producer."""

    batch_size: int
    """Option ``batch.size``, in bytes."""

    def prepare(self, topic: str | None) -> None:
        """Called before the rows of a task: makes ready for the topic that all of them go to, None for several."""
        ...

    def append(self, columns: Any, deliveries: Any, first_row: int) -> None:
        """Puts every row of ``columns`` into batches; waits for memory and metadata up to max.block.ms."""
        ...

    def flush(self) -> None:
        """Returns when everything appended has an outcome."""
        ...

    def counts(self) -> Mapping[str, float]:
        """Running totals by Kafka's metric names."""
        ...

    def begin(self, transactional_id: str) -> None:
        """Begins a transaction under this id, whose older producer is fenced."""
        ...

    def detach(self) -> TransactionIdentity:
        """Leaves the transaction, all of whose records are acknowledged, to another process."""
        ...

    def abort(self, timeout: float) -> None:
        """Aborts the transaction."""
        ...

    def close(self, timeout: float) -> None:
        """Ends the producer; what is not sent within ``timeout`` seconds fails."""
        ...


class _Kept(NamedTuple):
    producer: RowProducer
    used_at: float
    """Monotonic ms of the last task's start."""


_Key = tuple[int, tuple[tuple[str, str], ...], bool]
_kept: dict[_Key, _Kept] = {}
_set_apart = False
"""Whether what was there at the first producer is out of the collector's way.  The collector's own count does not tell:
Python 3.12 also counts objects that live for ever."""


def _key(options: SinkOptions) -> _Key:
    # By the process, because a forked child cannot use what it inherits.  Not by a write's own id: a producer serves
    # the next write too.
    return os.getpid(), options.producer, options.exactly_once is not None


def acquire(options: SinkOptions, *, now: float | None = None) -> RowProducer:
    """The producer for ``options``, made if this process has none yet; those that were not used for long are closed.

    Args:
        now: monotonic ms; None asks the clock.
    """
    now = SystemClock().now() if now is None else now
    key = _key(options)
    kept = _kept.pop(key, None)
    producer = kept.producer if kept else _open(options)
    mine = [other for other in _kept if other[0] == key[0]]
    for place, other in enumerate(mine):
        if place <= len(mine) - MOST_KEPT or now - _kept[other].used_at >= IDLE_MS:
            _kept.pop(other).producer.close(CLOSE_TIMEOUT_S)
    _kept[key] = _Kept(producer, now)  # last in the order: the first one is the longest unused
    return producer


def discard(options: SinkOptions) -> None:
    """Ends the producer of a task that failed: what it still holds belongs to rows that will be written again."""
    kept = _kept.pop(_key(options), None)
    if kept is not None:
        kept.producer.close(0)


class ColumnProducer:
    """A KafkaProducer as a task uses it, with batches of a size that suits the topic (``sizes``).

    Args:
        options: the producer's, as the user gave them.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        from forebay.producer._columns import append_columns

        self._options = options
        self._append = append_columns
        self._sized = sizes.chooses(options)
        # Topics whose partitions all have memory for a batch.
        self._fitting: set[str | None] = set()
        # What producers counted that were closed because their batches were too large.
        self._earlier: Mapping[str, float] = {}
        self._use(sizes.LARGEST)

    def _use(self, batch_size: int) -> None:
        from forebay.producer import KafkaProducer

        self._producer: KafkaProducer = KafkaProducer(sizes.configured(self._options, batch_size))
        self.batch_size: int = self._producer.config["batch.size"]

    def prepare(self, topic: str | None) -> None:
        """Asks how many partitions the topic has; opens a producer with smaller batches if they are many.

        Raises:
            KafkaError: no answer within max.block.ms.
        """
        if not self._sized or topic in self._fitting:
            return
        size = sizes.SMALLEST if topic is None else sizes.size_for(len(self._producer.partitions_for(topic)))
        if size < self.batch_size:
            # Nothing is on its way: each task ends with a flush, and this one has sent nothing.
            self._earlier = self.counts()
            self.close(CLOSE_TIMEOUT_S)
            self._use(size)
        self._fitting.add(topic)

    def append(self, columns: Any, deliveries: Any, first_row: int) -> None:
        """Puts every row of ``columns`` into batches."""
        self._append(self._producer, columns, deliveries, first_row)

    def flush(self) -> None:
        """Returns when everything appended has an outcome: delivery.timeout.ms at most."""
        self._producer.flush()

    def begin(self, transactional_id: str) -> None:
        """InitProducerId under this id, on the connections that are there; max.block.ms at most."""
        self._producer.set_transactional_id(transactional_id)
        self._producer.init_transactions()
        self._producer.begin_transaction()

    def detach(self) -> TransactionIdentity:
        """What the driver needs to end the transaction."""
        return self._producer.detach_transaction()

    def abort(self, timeout: float) -> None:
        """EndTxn; what was not sent fails."""
        self._producer.abort_transaction(timeout)

    def counts(self) -> Mapping[str, float]:
        """Running totals; those of topics added up over the topics."""
        totals: dict[str, float] = dict(self._earlier)
        for metric, value in self._producer.metrics().items():
            # What a topic counts and the producer too (record-send-total) is taken once, from the producer.
            known = metric.name in TOPIC_TOTALS if metric.group == TOPIC_GROUP else metric.group == PRODUCER_GROUP
            if not known or not metric.name.endswith("-total") or not isinstance(value, (int, float)):
                continue
            totals[metric.name] = totals.get(metric.name, 0.0) + value
        return totals

    def close(self, timeout: float) -> None:
        """Ends the producer; what is not sent within ``timeout`` seconds fails, which its task has reported."""
        try:
            self._producer.close(timeout)
        except KafkaError as error:
            logger.debug("While closing the producer of a finished or failed task: %s", error)


def _open(options: SinkOptions) -> RowProducer:
    global _set_apart
    try:
        # Before there is a producer that a failed import would leave open.
        from forebay.producer import _columns as _columnar  # noqa: F401

        config = secrets.in_task(dict(options.producer))
        if options.exactly_once is not None:
            # Each task gives it another one; this one is never used.
            config["transactional.id"] = options.exactly_once.prefix
        producer = ColumnProducer(config)
    except ImportError as error:
        raise ImportError(
            f"forebay cannot be loaded on this executor ({sys.executable}, Python {platform.python_version()}, "
            f"{platform.system()} {platform.machine()}): {error}. Install forebay for this interpreter on every node, "
            "or ship an environment with spark.archives (venv-pack, conda-pack), or an unpacked wheel with "
            "spark.archives and spark.executorEnv.PYTHONPATH; --py-files cannot carry compiled modules"
        ) from error
    # Spark's worker collects garbage after each task, and goes through all that its imports left: more than a short
    # task's own work.  What is there now stays for the process' life, so it need not be looked at again.  Once only:
    # later there may be a closed producer among it, whose memory would stay too.
    if not _set_apart:
        _set_apart = True
        gc.freeze()
    return producer
