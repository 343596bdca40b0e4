"""``forebay produce``: rows from files or standard input into a topic, every one acknowledged or reported.

Memory is bounded: rows are read as they are sent, the producer's buffer has a size, and the number of records without
an outcome has a limit.  Every named file and the topic are checked before anything is sent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from forebay._runtime.clock import Clock
from forebay.cli import inputs, sending
from forebay.cli.failure import FAILED, OK, CommandError, exit_code_of, told
from forebay.cli.inputs import Layout
from forebay.cli.progress import Display, LogLines, display
from forebay.cli.rows import BadRow, HeaderPairs, Input, Row
from forebay.cli.tally import Tally
from forebay.config import ProducerConfig
from forebay.errors import KafkaError, TimeoutError
from forebay.producer import KafkaProducer

_NONE, _OPEN, _ENDING, _COMMITTED = range(4)
"""How far the command's transaction has come."""
CHECK_EVERY = 256
"""Rows between two updates of the bar and checks of the records on their way; a power of two."""


@dataclass(frozen=True, slots=True)
class ProduceJob:
    """The arguments of the command line."""

    config: ProducerConfig
    topic: str
    paths: Sequence[str] = (inputs.STDIN,)
    layout: Layout = field(default_factory=Layout)
    key: bytes | None = None
    """Of rows that have none."""
    headers: HeaderPairs = ()
    """Added to each row's own."""
    partition: int | None = None
    """Of rows that name none."""
    empty_is_null: bool = False
    skip_bad: bool = False
    """Bad rows are reported and passed over; else the first one ends the command."""
    count: int | None = None
    """The most rows that are read."""
    quiet: bool = False
    verbosity: int = 0


def run(job: ProduceJob, *, make: Callable[[ProducerConfig], KafkaProducer], clock: Clock) -> int:
    """Sends everything through the producer that ``make`` gives; returns the exit code.

    Raises:
        CommandError, KafkaError: nothing was sent, for this reason.
    """
    inputs.check(job.paths, job.layout)
    begun = clock.now()
    shown: Display
    # Typing into a terminal and a bar on it do not go together.
    bar = not job.quiet and not (inputs.STDIN in job.paths and sys.stdin.isatty())
    tally = Tally(lambda line: shown.error(line))
    shown = display(lambda: f"{tally.acknowledged:,} acknowledged, {tally.failed:,} failed", wanted=bar)
    with sending.sigterm_as_interrupt(), sending.rare_collections(), shown, LogLines(shown, job.verbosity):
        code = _Run(job, make(job.config), tally, shown).whole()
    for line in tally.unsaid():
        shown.error(line)
    if not job.quiet and (tally.settled_count or code == OK):
        shown.line(summary(tally, clock.now() - begun))
    return code


def summary(tally: Tally, spent_ms: float) -> str:
    """The last line: what became of the records."""
    rate = f", {tally.acknowledged / spent_ms * 1000:,.0f} records/s" if spent_ms > 0 else ""
    return (
        f"forebay: {tally.acknowledged} records acknowledged, {tally.failed} failed, "
        f"{tally.bytes} bytes, {spent_ms / 1000:.2f} s{rate}"
    )


class _Run:
    """One command's way through its inputs; used by the main thread alone."""

    def __init__(self, job: ProduceJob, producer: KafkaProducer, tally: Tally, shown: Display) -> None:
        self._job = job
        self._producer = producer
        self._tally = tally
        self._shown = shown
        self._partitions = 0
        self._read = 0
        self._place = ""
        self._transactional = job.config["transactional.id"] is not None
        self._transaction = _NONE

    def whole(self) -> int:
        """Feeds and finishes; the exit code."""
        ended: BaseException | None = None
        try:
            self._begin()
            self._feed()
            self._commit()
        except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 -- what was accepted is finished and counted
            ended = error
        interrupted: BaseException | None = ended if isinstance(ended, KeyboardInterrupt) else None
        if self._read:
            self._shown.show("waiting for acknowledgements")
            interrupted = sending.finish(self._producer, interrupted)
        else:
            sending.abandon(self._producer)
        return self._outcome(ended, interrupted)

    def _outcome(self, ended: BaseException | None, interrupted: BaseException | None) -> int:
        if self._transaction == _ENDING and isinstance(ended, (KeyboardInterrupt, TimeoutError)):
            self._shown.error("it is not known whether the transaction was committed: check before you send it again")
        elif self._transaction in (_OPEN, _ENDING):
            self._shown.error("the transaction was not committed: readers with read_committed see none of its records")
        if isinstance(ended, Exception):
            self._shown.line(told(ended).rstrip())
            return exit_code_of(ended)
        if interrupted is not None:
            self._shown.error(f"interrupted{f' near {self._place}' if self._place else ''}: what follows was not sent")
            return exit_code_of(interrupted)
        return FAILED if self._tally.failed else OK

    def _begin(self) -> None:
        job = self._job
        self._shown.show(f"waiting for topic {job.topic}")
        self._partitions = sending.partitions_of(self._producer, job.topic)
        if job.partition is not None and job.partition >= self._partitions:
            raise CommandError(f"partition {job.partition} of topic {job.topic!r}: {self._existing()}")
        if self._transactional:
            self._producer.init_transactions()
            self._producer.begin_transaction()
            self._transaction = _OPEN

    def _commit(self) -> None:
        """All or nothing under a ``transactional.id``; what is not committed is aborted when the producer closes.

        Raises:
            KafkaError: a record failed, or the coordinator refused.
        """
        if self._transactional:
            self._transaction = _ENDING
            self._producer.commit_transaction(self._job.config["delivery.timeout.ms"] / 1000)
            self._transaction = _COMMITTED

    def _existing(self) -> str:
        return f"it has {self._partitions} partition(s), 0 to {self._partitions - 1}"

    def _feed(self) -> None:
        with closing(inputs.open_all(self._job.paths, self._job.layout)) as opened:
            for source in opened:
                self._shown.show(os.path.basename(source.name), 0, source.size)
                left = None if self._job.count is None else self._job.count - self._read
                self._feed_one(source, left)
                if self._job.count is not None and self._read >= self._job.count:
                    return

    def _feed_one(self, source: Input, limit: int | None) -> None:
        name, tally = source.name, self._tally
        send = self._sender(name)
        for row in islice(source.rows(), limit):
            self._read += 1
            if isinstance(row, BadRow):
                self._bad(name, row)
            else:
                send(row)
            if tally.stuck is not None:
                raise CommandError(f"stopped at {name}:{row.number}: what follows was not sent", FAILED)
            if not self._read % CHECK_EVERY:
                self._place = f"{name}:{row.number}"
                self._shown.show(os.path.basename(name), source.position(), source.size)
                sending.wait_until(lambda: self._read - tally.settled_count < sending.WINDOW)

    def _sender(self, name: str) -> Callable[[Row], None]:
        """A function that sends a row of the input ``name``.  It is a closure, because it is called for each row."""
        job, topic, send, settled = self._job, self._job.topic, self._producer.send, self._tally.settled
        own_headers, own_partition, own_key, nulls = job.headers, job.partition, job.key, job.empty_is_null

        def send_row(row: Row) -> None:
            number, value, key, headers, partition, timestamp_ms = row
            if nulls:
                value, key = value or None, key or None
            if key is None:
                key = own_key
            if partition is None:
                partition = own_partition
            elif partition >= self._partitions:
                # Checked here, because send() would wait max.block.ms for a partition that may be made later.
                self._bad(name, BadRow(number, f"partition {partition} of topic {topic!r}: {self._existing()}"))
                return
            pairs: Any = [*headers, *own_headers] if headers or own_headers else None
            try:
                send(topic, value, key, pairs, partition, timestamp_ms, on_delivery=partial(settled, name, number))
            except KafkaError as error:
                # Raised and not in the record's future: a serializer of the user's, or the producer has ended.
                self._tally.refused(name, number, error)

        return send_row

    def _bad(self, name: str, row: BadRow) -> None:
        line = f"{name}:{row.number}: {row.reason}"
        if self._job.skip_bad:
            self._tally.fail("bad input", line)
            return
        self._tally.failed_silently()
        raise CommandError(f"{line}; what follows was not sent (--skip-bad goes on)", FAILED)
