"""``forebay perf``: kafka-producer-perf-test's work and output with this producer, for the same scripts.

Standard output has that tool's lines and nothing else.  Unlike there, a record that fails makes the exit code 1.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from forebay._runtime.clock import Clock
from forebay.cli import payloads, sending
from forebay.cli.failure import FAILED, OK, CommandError, exit_code_of, reason
from forebay.cli.report.latency import Stats
from forebay.cli.report.progress import WAIT_S, Display, LogLines
from forebay.cli.report.tally import Tally
from forebay.config import ProducerConfig
from forebay.errors import KafkaError, KafkaTimeoutError
from forebay.model import DeliveryReport
from forebay.producer import KafkaProducer

CLIENT_ID = "perf-producer-client"
INTERVAL_MS = 5000.0
TRANSACTION_MS = 3000.0
LEAST_PAUSE_MS = 2.0
"""A shorter pause costs more than it holds back."""


@dataclass(frozen=True, slots=True)
class PerfJob:
    """The arguments of the command line."""

    config: ProducerConfig
    topic: str
    records: int
    wait_s: float = WAIT_S
    """For the topic."""
    record_size: int | None = None
    payload_file: str | None = None
    payload_delimiter: bytes = b"\n"
    throughput: float = -1
    """Records a second at most; negative is no limit."""
    warmup: int = 0
    interval_ms: float = INTERVAL_MS
    print_metrics: bool = False
    verbosity: int = 0
    transaction_ms: float = TRANSACTION_MS
    """How long a transaction stays open, where the configuration has a ``transactional.id``."""

    def payloads(self, write: Callable[[str], object]) -> Iterator[bytes]:
        """The values, without end."""
        if self.payload_file is not None:
            return payloads.from_file(self.payload_file, self.payload_delimiter, write)
        if self.record_size is not None:
            return payloads.random_letters(self.record_size)
        return payloads.monotonic()

    def check(self) -> None:
        """Raises CommandError for numbers that make no sense."""
        if self.records <= 0:
            raise CommandError(f"--num-records must be at least 1, not {self.records}")
        if self.record_size is not None and self.record_size <= 0:
            raise CommandError(f"--record-size must be at least 1, not {self.record_size}")
        if not 0 <= self.warmup < self.records:
            raise CommandError(f"--warmup-records must be 0 to {self.records - 1}, fewer than --num-records")
        if self.throughput == 0:
            raise CommandError("--throughput 0 would never send; -1 sets no limit")
        if self.interval_ms <= 0:
            raise CommandError(f"--reporting-interval must be above 0 ms, not {self.interval_ms:g}")
        if self.transaction_ms <= 0:
            raise CommandError(f"--transaction-duration-ms must be above 0, not {self.transaction_ms:g}")


def run(
    job: PerfJob,
    write: Callable[[str], object],
    *,
    make: Callable[[ProducerConfig], KafkaProducer],
    clock: Clock,
) -> int:
    """Sends the records through the producer that ``make`` gives and writes the lines; returns the exit code.

    Raises:
        CommandError, KafkaError: nothing was sent, for this reason.
    """
    job.check()
    values = job.payloads(write)
    shown = Display()
    with sending.sigterm_as_interrupt(), sending.rare_collections(), LogLines(shown, job.verbosity) as logs:
        producer = make(job.config)
        try:
            sending.partitions_of(producer, job.topic, logs, job.wait_s)
            if job.config["transactional.id"] is not None:
                sending.init_transactions(producer, logs)
        except BaseException:
            sending.abandon(producer)
            raise
        return _Measured(job, producer, write, clock).whole(values, shown)


class _Transactions:
    """Begins and commits as time passes."""

    def __init__(self, job: PerfJob, producer: KafkaProducer, clock: Clock) -> None:
        self._duration_ms = job.transaction_ms
        self._producer = producer
        self._clock = clock
        self._begun: float | None = None

    def before_send(self) -> None:
        if self._begun is None:
            self._producer.begin_transaction()
            self._begun = self._clock.now()

    def after_send(self) -> None:
        if self._begun is not None and self._clock.now() - self._begun >= self._duration_ms:
            self.end()

    def end(self) -> None:
        """Commits what is open.

        Raises:
            KafkaTimeoutError: no answer in time; it may be committed all the same.
            KafkaError: it cannot be committed; closing the producer aborts it.
        """
        if self._begun is not None:
            self._begun = None
            self._producer.commit_transaction()


class _Measured:
    """One measurement; ``_settled`` runs on the sender's thread, all else on the main one."""

    def __init__(self, job: PerfJob, producer: KafkaProducer, write: Callable[[str], object], clock: Clock) -> None:
        self._job = job
        self._producer = producer
        self._write = write
        self._clock = clock
        self._all = self._stats(job.records)
        self._steady: Stats | None = None
        self._uncommitted = False
        self._tally: Tally

    def _stats(self, records: int, steady: bool = False) -> Stats:
        interval = self._job.interval_ms
        return Stats(records, self._clock.now(), interval_ms=interval, write=self._write, steady=steady)

    def whole(self, values: Iterator[bytes], shown: Display) -> int:
        """Feeds, finishes, writes the totals; the exit code."""
        self._tally = Tally(shown.error)
        if self._job.warmup:
            self._write(
                f"Warmup first {self._job.warmup} records. "
                "Steady state results will print after the complete test summary."
            )
        interrupted: BaseException | None = None
        stuck = False
        try:
            stuck = not self._fed(values, shown)
            if self._job.print_metrics:
                self._producer.flush()  # the metrics' lines come before the end of what they tell about
        except KeyboardInterrupt as error:
            interrupted = error
        metrics = self._producer.metrics() if self._job.print_metrics else None
        interrupted = sending.finish(self._producer, interrupted)
        self._write(self._all.total(self._clock.now()))
        if self._steady is not None:
            self._write(self._steady.total(self._clock.now()))
        if metrics is not None:
            write_metrics(metrics, self._write)
        return self._outcome(shown, interrupted, stuck)

    def _outcome(self, shown: Display, interrupted: BaseException | None, stuck: bool) -> int:
        for line in self._tally.unsaid():
            shown.error(line)
        if interrupted is not None:
            shown.error("interrupted: not all records were sent")
            return exit_code_of(interrupted)
        if stuck:
            shown.error("stopped: the records that follow were not sent")
        return FAILED if self._tally.failed or stuck or self._uncommitted else OK

    def _fed(self, values: Iterator[bytes], shown: Display) -> bool:
        if self._job.config["transactional.id"] is None:
            return self._feed(values, None)
        transactions = _Transactions(self._job, self._producer, self._clock)
        complete = False
        try:
            complete = self._feed(values, transactions)
            transactions.end()
        except KafkaTimeoutError as error:
            self._uncommitted = True
            shown.error(f"the end of the last transaction is not known: {reason(error)}")
        except KafkaError as error:
            self._uncommitted = True
            shown.error(f"the last transaction is lost: {reason(error)}")
        return complete

    def _feed(self, values: Iterator[bytes], transactions: _Transactions | None) -> bool:
        """False if it stopped early because further records would fail in the same way."""
        job, clock, tally = self._job, self._clock, self._tally
        topic, send, settled = job.topic, self._producer.send, self._settled
        pause = threading.Event()
        begun = clock.now()
        for number in range(job.records):
            value = next(values)
            sent_at = clock.now()
            if number == job.warmup and job.warmup:
                self._steady = self._stats(job.records - job.warmup, steady=True)
                self._all.quiet = True
            if transactions is not None:
                transactions.before_send()
            send(topic, value, on_delivery=partial(settled, number, self._steady, sent_at, len(value)))
            if transactions is not None:
                transactions.after_send()
            if tally.stuck is not None:
                return False
            if job.throughput > 0:
                ahead_ms = (number + 1) * 1000 / job.throughput - (clock.now() - begun)
                if ahead_ms >= LEAST_PAUSE_MS:
                    pause.wait(ahead_ms / 1000)
        return True

    def _settled(self, number: int, steady: Stats | None, sent_at: float, size: int, report: DeliveryReport) -> None:
        if report.error is not None:
            self._tally.settled("record", number + 1, report)
            return
        now = self._clock.now()
        latency_ms = int(now - sent_at)
        self._all.record(size, latency_ms, now)
        if steady is not None:
            steady.record(size, latency_ms, now)


def write_metrics(metrics: Any, write: Callable[[str], object]) -> None:
    """Every metric in a line, as the Java tool aligns them."""
    rows = sorted(
        (f"{key.group}:{key.name}:{{{', '.join(f'{tag}={value}' for tag, value in key.tags)}}}", value)
        for key, value in metrics.items()
    )
    width = max((len(name) for name, _ in rows), default=0)
    write("")
    write(f"{'Metric Name':<{width}}   Value")
    for name, value in rows:
        write(f"{name:<{width}} : {_shown(value)}")


def _shown(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "NaN" if math.isnan(value) else f"{value:.3f}"
