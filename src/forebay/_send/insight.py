"""What a producer tells of itself: its metrics and its inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay._assembly import Parts
from forebay._metrics.registry import MetricsSnapshot

if TYPE_CHECKING:
    from forebay._description.values import ProducerDescription


class Insight:
    """A base of KafkaProducer.  Any thread, signal handlers and callbacks too: nothing here waits."""

    _parts: Parts

    def _check_not_forked(self) -> None:
        raise NotImplementedError

    def metrics(self) -> MetricsSnapshot:
        """Every metric by the Java client's names, as of now."""
        self._check_not_forked()
        return self._parts.metrics.snapshot(self._parts.clock.now())

    def describe(self) -> ProducerDescription:
        """The inside of the producer as of now: partitions with records under way, memory, brokers, producer id.

        The log gets the same when records have expired, at most once a minute.  ``forebay top`` shows it live, of
        another process too (option ``describe.socket``).
        """
        self._check_not_forked()
        from forebay._description.reading import describe  # only those who look

        return describe(self._parts)
