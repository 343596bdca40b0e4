"""Sizes of batches for tables: larger than Kafka's, as far as the memory suffices for a batch of each partition.

A task has many rows at once and flushes at its end, so larger batches save requests and delay nothing.  But each open
batch takes ``batch.size`` of ``buffer.memory``.  A topic whose partitions do not all get one would be written in
pieces of a few records.  So the size follows the number of partitions, which is known when the first rows come.
"""

from __future__ import annotations

from collections.abc import Mapping

LINGER_MS = "100"
"""Rows that a task still has to come fill the batches meanwhile; the flush at its end does not wait for it."""

TIMEOUTS = ("delivery.timeout.ms", "request.timeout.ms")
"""Options that have to leave room for ``linger.ms``: whoever sets one of them gets Kafka's."""

LARGEST, SMALLEST = 128 << 10, 16 << 10
"""Bytes of a batch; the smallest is Kafka's default of ``batch.size``."""

MEMORY = 32 << 20
"""Kafka's default of ``buffer.memory``, in bytes."""

OF_THE_USER = ("batch.size", "buffer.memory", "max.request.size")
"""Whoever sets one of them means sizes of their own, and gets Kafka's defaults for the others."""


def configured(options: Mapping[str, str], size: int = LARGEST) -> dict[str, str]:
    """The producer's configuration: ``options``, and the sink's own defaults where they leave them open.

    Args:
        size: of a batch, in bytes, unless the options say something of sizes.
    """
    config = dict(options)
    if not any(name in options for name in TIMEOUTS):
        config.setdefault("linger.ms", LINGER_MS)
    if chooses(options):
        config["batch.size"] = str(size)
    return config


def chooses(options: Mapping[str, str]) -> bool:
    """Whether the sink chooses the size of batches."""
    return not any(name in options for name in OF_THE_USER)


def size_for(partitions: int) -> int:
    """Bytes of a batch for a topic with so many partitions: open batches take half of the memory at most.

    The other half is for batches on their way.
    """
    size = LARGEST
    while size > SMALLEST and size * partitions > MEMORY // 2:
        size //= 2
    return size
