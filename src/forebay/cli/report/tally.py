"""What became of the records a command sent: counts, and a line for each failure as long as they are few."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from forebay.cli.failure import one_line, reason
from forebay.errors import IllegalStateError, KafkaError
from forebay.model import DeliveryReport

if TYPE_CHECKING:
    from forebay import BatchDelivery
    from forebay.cli.input.blocks import Block

LINES_PER_KIND = 20
"""Failures of one kind that get a line each; a broker that refuses a million records must not write as many."""


class Tally:
    """Counts outcomes.

    Outcomes come on the sender's thread, and on the caller's for what was never accepted or is settled at once.  So a
    lock guards the counts.

    Args:
        say: takes a line for the user; may be called from either thread.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self.acknowledged: int = 0
        self.bytes: int = 0
        """Of acknowledged keys and values, as serialized."""
        self.open_bytes: int = 0
        """Of blocks that are held because not all of their rows have an outcome."""
        self.failed: int = 0
        self.stuck: KafkaError | None = None
        """The first error after which the next record could not do better: it waited ``max.block.ms``, or is fatal."""
        self.lost: dict[str, int] = {}
        """For each input the first row that was sent or refused and has no acknowledgement."""
        self._say = say
        self._lock = threading.Lock()
        self._kinds: Counter[str] = Counter()

    def settled(self, name: str, number: int, report: DeliveryReport) -> None:
        """The outcome of the record at this place of the input; bound to the place it is an ``on_delivery``."""
        metadata, error = report.metadata, report.error
        if error is None:
            # -1 stands for null.
            size = max(metadata.serialized_key_size, 0) + max(metadata.serialized_value_size, 0)
            with self._lock:
                self.acknowledged += 1
                self.bytes += size
            return
        where = f" (partition {metadata.partition})" if metadata.partition >= 0 else ""
        self.refused(name, [number], error, where)

    def follow(self, name: str, block: Block, delivery: BatchDelivery) -> None:
        """Counts the outcome of the rows of ``block`` that were taken, when it is known."""
        with self._lock:
            self.open_bytes += block.size
        delivery.add_done_callback(partial(self._settled_block, name, block))

    def _settled_block(self, name: str, block: Block, delivery: BatchDelivery) -> None:
        failures = delivery.failures
        good = delivery.acknowledged
        if good == len(block.numbers):
            size = block.size
        else:
            lost = {row for failed in failures for row in failed.rows}
            size = block.size_at(row for run in delivery.taken() for row in run if row not in lost)
        with self._lock:
            self.acknowledged += good
            self.bytes += size
            self.open_bytes -= block.size
        for rows, error in failures:
            # In flight an error's context has the partition as topic-number.
            _, _, partition = str(error.context.get("partition", "")).rpartition("-")
            where = f" (partition {partition})" if partition else ""
            self.refused(name, [block.numbers[row] for row in rows], error, where)

    def refused(self, name: str, numbers: Sequence[int], error: KafkaError, where: str = "") -> None:
        """Records that were not delivered, or not even accepted, for the same reason."""
        waited = str(error.context.get("phase", "")).startswith("waiting for")
        if self.stuck is None and (error.fatal or waited or isinstance(error, IllegalStateError)):
            self.stuck = error
        text = f"{reason(error)}{where}"
        with self._lock:
            self.lost[name] = min(self.lost.get(name, numbers[0]), min(numbers))
        said = self._counted(type(error).__name__, len(numbers))
        for number in numbers[: max(0, LINES_PER_KIND - said)]:
            self._say(one_line(f"{name}:{number}: {text}"))

    def failed_silently(self) -> None:
        """Counts a record whose failure is reported elsewhere."""
        with self._lock:
            self.failed += 1

    def fail(self, kind: str, line: str) -> None:
        """Counts a record that failed, and says why unless that was said often enough."""
        if self._counted(kind, 1) < LINES_PER_KIND:
            self._say(one_line(line))

    def _counted(self, kind: str, records: int) -> int:
        """Counts failures of a kind; returns how many there were before."""
        with self._lock:
            self.failed += records
            before = self._kinds[kind]
            self._kinds[kind] += records
        return before

    @property
    def settled_count(self) -> int:
        """Records with an outcome."""
        return self.acknowledged + self.failed

    def unsaid(self) -> list[str]:
        """A line for each kind of failure with failures that were not printed."""
        with self._lock:
            return [
                f"{count - LINES_PER_KIND} more records failed like these: {kind}"
                for kind, count in self._kinds.items()
                if count > LINES_PER_KIND
            ]
