"""The schedule made whole again after an exception in the middle of it, a lack of memory as far as is known.

Its lists, the lines and the queues' flags say the same thing in several places, and no order of a handful of
allocations keeps them in step whichever of them fails.  What has no outcome is known elsewhere; everything follows
from that.
"""

from __future__ import annotations

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.forebay._accumulator.batch import ProducerBatch
    from cython.cimports.forebay._accumulator.schedule import BatchSchedule
    from cython.cimports.forebay._accumulator.topic import PartitionQueue
    from cython.cimports.forebay._gate import Gate
    from cython.cimports.forebay._mutex import acquire, release
else:
    from forebay._accumulator.batch import ProducerBatch
    from forebay._accumulator.schedule import BatchSchedule
    from forebay._accumulator.topic import PartitionQueue
    from forebay._gate import Gate
    from forebay._mutex import acquire, release


@cython.ccall
def mend(schedule: BatchSchedule, batches: list[Any], now: cython.double, gate: Gate | None) -> cython.void:
    """Every batch that waits, or was drained and not sent, is in its queue, and its queue is looked at.

    Sender thread only.  An exception leaves it to be called again.

    Args:
        batches: all that have no outcome.
    """
    batch: ProducerBatch
    queue: PartitionQueue
    queues: dict[Any, Any] = {}
    schedule.torn = False  # before the look: what is torn from now on counts for the next time
    schedule.collect()
    for batch in batches:
        if batch.done or batch.in_flight:
            continue
        queue = batch.queue
        if not queue.has(batch):
            schedule.reenqueue(batch, now, gate)
        schedule._expect_expiry(batch)
        queues[queue] = None
    lined: set[Any] = set()
    for line in schedule.nodes.values():
        lined.update(line)
    # Those without a batch, too: one that still counts as scheduled is not announced again by its next record.
    known: dict[Any, Any] = dict.fromkeys((*schedule.watched, *schedule.parked.listed(), *lined, *queues))
    for queue in known:
        queue.watched = queue.in_heap = False
    schedule.parked.clear()
    schedule.watched.clear()
    for queue in queues:
        acquire(queue.lock)
        queue.scheduled = True
        release(queue.lock)
        if queue not in lined:
            schedule.join_line(queue)
    for queue in known:
        schedule.wake(queue)
