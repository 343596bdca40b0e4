"""The producers of one Spark worker process, kept from task to task.

Spark uses a worker for task after task and ends it without a word (no ``atexit``, no finaliser), so a producer is
kept here and every task leaves it flushed.  One task runs in a process at a time.  This is the package's one
module-level state: a worker hands a task nothing else that outlives it.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from forebay.spark.options import SinkOptions

MOST_KEPT = 2
"""Producers a worker keeps; a worker rarely serves more than one sink, and each holds threads and memory."""

CLOSE_TIMEOUT_S = 5.0


class RowProducer(Protocol):
    """What a task needs of a producer."""

    batch_size: int
    """Option ``batch.size``, in bytes."""

    def append(self, columns: Any, deliveries: Any, first_row: int) -> None:
        """Puts every row of ``columns`` into batches; waits for memory and metadata up to max.block.ms."""
        ...

    def flush(self) -> None:
        """Returns when everything appended has an outcome."""
        ...

    def counts(self) -> Mapping[str, float]:
        """Running totals by Kafka's metric names."""
        ...

    def close(self, timeout: float) -> None:
        """Ends the producer; what is not sent within ``timeout`` seconds fails."""
        ...


_kept: dict[SinkOptions, RowProducer] = {}


def acquire(options: SinkOptions) -> RowProducer:
    """The producer for ``options``, made if this process has none yet."""
    producer = _kept.pop(options, None) or _open(options)
    while len(_kept) >= MOST_KEPT:
        _kept.pop(next(iter(_kept))).close(CLOSE_TIMEOUT_S)
    _kept[options] = producer  # last in the order: the first one is the longest unused
    return producer


def discard(options: SinkOptions) -> None:
    """Ends the producer of a task that failed: what it still holds belongs to rows that will be written again."""
    producer = _kept.pop(options, None)
    if producer is not None:
        producer.close(0)


def _open(options: SinkOptions) -> RowProducer:
    try:
        from forebay._columnar import ColumnProducer
        from forebay.producer import KafkaProducer
    except ImportError as error:
        raise ImportError(
            f"forebay cannot be loaded on this executor ({sys.executable}, Python {platform.python_version()}, "
            f"{platform.system()} {platform.machine()}): {error}. Install forebay for this interpreter on every node, "
            "or ship an environment with spark.archives (venv-pack, conda-pack), or an unpacked wheel with "
            "spark.archives and spark.executorEnv.PYTHONPATH; --py-files cannot carry compiled modules"
        ) from error
    return ColumnProducer(KafkaProducer(dict(options.producer)))
