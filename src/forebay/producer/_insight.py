"""What a producer tells of itself: its metrics, its inside, and who it is to brokers that take its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay._assembly import Components
from forebay._delivery.sender_lock import check_wait
from forebay._metrics.registry import MetricsSnapshot
from forebay._runtime.times import limit
from forebay.errors import IllegalStateError, KafkaTimeoutError
from forebay.errors._base import own_copy

if TYPE_CHECKING:
    import os

    from forebay._insight.advising import LiveAdvice
    from forebay._insight.values import ProducerDescription
    from forebay._runtime.times import Seconds
    from forebay._transactions.result import TransactionalResult


class Insight:
    """A base of KafkaProducer.

    Any thread, signal handlers and callbacks too: nothing here waits but ``client_instance_id``.
    """

    _parts: Components

    def _check_not_forked(self) -> None:
        raise NotImplementedError

    def _check_open(self) -> None:
        raise NotImplementedError

    def _on_sender_thread(self) -> bool:
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
        from forebay._insight.reading import describe  # only those who look

        return describe(self._parts)

    def advise(self, *, p99_ms: float | None = None) -> LiveAdvice:
        """What closed forms say of this producer's settings, out of its own metrics of the last minute.

        It is made for ``print``, and has all of it as values.  It takes some milliseconds; nothing is simulated, no
        broker is asked, and no thread is started.  ``forebay tune advise`` knows more, of a trace that ``record_trace``
        writes.

        Args:
            p99_ms: what the 99th percentile of the latency may come to, in ms; None: what it is now.  Within it the
                settings with the fewest requests are looked for.

        Raises:
            IllegalArgumentError: ``p99_ms`` is no number above 0.
            IllegalStateError: the producer is closed, and has no metrics any more.
        """
        self._check_open()
        from forebay._insight.advising import advise  # only those who ask

        return advise(self._parts, p99_ms)

    def record_trace(self, path: str | os.PathLike[str], *, seconds: Seconds, share: float = 1.0) -> None:
        """Records what comes to this producer and what becomes of it, for ``forebay tune``; returns at once.

        The file has times, partitions and sizes of records, and the times of batches; no keys and no values.  It is
        there when the time is over, or soon after the producer's end.  The variable ``FOREBAY_TRACE=path:seconds`` does
        the same for every producer of a process; in a folder each gets a file of its own.

        Args:
            path: of the file; one that is there is replaced.
            seconds: for how long.
            share: of the moments, of a millisecond each, whose records are noted: less than 1 where there are very
                many.

        Raises:
            OSError: no file can be made there.
            IllegalArgumentError: no time, more than a week, or a share that is not from 0.001 to 1.
            IllegalStateError: another trace of this producer is being recorded, or it is closed.
        """
        self._check_open()
        from forebay._insight.recorder import record  # only those who record

        record(self._parts, path, seconds=limit(seconds) or 0.0, share=share)

    def client_instance_id(self, timeout: Seconds | None = None) -> str:
        """The id that brokers know this producer's metrics by (KIP-714), as Kafka writes it: 22 characters of base64.

        It stays the same for the life of the producer.  The first call may wait for a broker to give it.

        Args:
            timeout: seconds; None for ``max.block.ms``.

        Raises:
            KafkaTimeoutError: no broker gave it in time; most clusters have no plugin that takes metrics.
            IllegalStateError: ``enable.metrics.push`` is false, or the extra ``telemetry`` is not installed; or called
                from a delivery callback, where it would wait for itself.
            KafkaError: a broker refused, and telemetry has ended.
        """
        result, limit = self._instance_call(timeout)
        return self._instance_id(result.wait(limit))

    def _instance_call(self, timeout: Seconds | None) -> tuple[TransactionalResult, float]:
        """What is waited for, and how many ms at most."""
        self._check_not_forked()
        timeout = limit(timeout)
        telemetry = self._parts.telemetry
        if telemetry is None:
            raise IllegalStateError("Telemetry is not enabled: set enable.metrics.push to true")
        result = telemetry.instance.result
        if not result.done:
            telemetry.check_installed()
            if self._on_sender_thread():
                raise IllegalStateError(
                    "client_instance_id() cannot wait in a delivery callback: it would wait for itself"
                )
            check_wait("client_instance_id()")
        return result, self._parts.config["max.block.ms"] if timeout is None else timeout * 1000

    def _instance_id(self, is_known: bool) -> str:
        telemetry = self._parts.telemetry
        assert telemetry is not None
        if telemetry.instance.text:
            return telemetry.instance.text
        if not is_known:
            raise KafkaTimeoutError(f"No client instance id in time: {telemetry.obstacle()}")
        error = telemetry.instance.result.error
        assert error is not None
        raise own_copy(error)
