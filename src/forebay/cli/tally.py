"""What became of the records a command sent: counts, and a line for each failure as long as they are few."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from forebay.cli.failure import one_line, reason
from forebay.errors import IllegalStateError, KafkaError
from forebay.model import RecordMetadata

LINES_PER_KIND = 20
"""Failures of one kind that get a line each; a broker that refuses a million records must not write as many."""


class Tally:
    """Counts outcomes.

    ``settled`` runs on the sender's thread, and on the caller's for a record that was never accepted.  What the
    sender's thread alone counts needs no lock; failures come from both and have one.

    Args:
        say: takes a line for the user; may be called from either thread.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self.acknowledged: int = 0
        self.bytes: int = 0
        """Of acknowledged keys and values, as serialized."""
        self.failed: int = 0
        self.stuck: KafkaError | None = None
        """The first error after which the next record could not do better: it waited ``max.block.ms``, or is fatal."""
        self._say = say
        self._lock = threading.Lock()
        self._kinds: Counter[str] = Counter()

    def settled(self, name: str, number: int, metadata: RecordMetadata, error: KafkaError | None) -> None:
        """The outcome of the record at this place of the input; bound to the place it is an ``on_delivery``."""
        if error is None:
            self.acknowledged += 1
            # -1 stands for null.
            self.bytes += max(metadata.serialized_key_size, 0) + max(metadata.serialized_value_size, 0)
            return
        where = f" (partition {metadata.partition})" if metadata.partition >= 0 else ""
        self.refused(name, number, error, where)

    def refused(self, name: str, number: int, error: KafkaError, where: str = "") -> None:
        """A record that was not delivered, or not even accepted."""
        waited = str(error.context.get("phase", "")).startswith("waiting for")
        if self.stuck is None and (error.fatal or waited or isinstance(error, IllegalStateError)):
            self.stuck = error
        self.fail(type(error).__name__, f"{name}:{number}: {reason(error)}{where}")

    def failed_silently(self) -> None:
        """Counts a record whose failure is reported elsewhere."""
        with self._lock:
            self.failed += 1

    def fail(self, kind: str, line: str) -> None:
        """Counts a record that failed, and says why unless that was said often enough."""
        with self._lock:
            self.failed += 1
            self._kinds[kind] += 1
            said = self._kinds[kind]
        if said <= LINES_PER_KIND:
            self._say(one_line(line))

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
