"""``forebay produce``: rows from files or standard input into a topic, every one acknowledged or reported.

Rows go as blocks of columns (``send_batch``).  Memory is bounded: blocks are read as they are sent, the producer's
buffer has a size, and records and bytes without an outcome have a limit.  Every named file and the topic are checked
before anything is sent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from forebay._runtime.clock import Clock
from forebay.cli import sending
from forebay.cli.failure import FAILED, OK, CommandError, exit_code_of, told
from forebay.cli.input import files as inputs
from forebay.cli.input.blocks import Block, Input, cells_of
from forebay.cli.input.files import Layout
from forebay.cli.input.rows import BadRow, HeaderPairs
from forebay.cli.report.progress import WAIT_S, Display, LogLines, display
from forebay.cli.report.tally import Tally
from forebay.config import ProducerConfig
from forebay.errors import KafkaError, KafkaTimeoutError
from forebay.producer import KafkaProducer
from forebay.producer._columns import BatchDelivery

_NONE, _OPEN, _ENDING, _COMMITTED = range(4)
"""How far the command's transaction has come."""
PART = sending.WINDOW // 4
"""The most rows that are sent at once."""


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
    skip_flag: str = "--skip-bad"
    """What to give for that, as the message about a bad row names it."""
    count: int | None = None
    """The most rows that are read."""
    sync: bool = False
    """Each record is acknowledged before the next one is sent."""
    partitioner: Callable[[bytes | None, int], int | None] | None = None
    """The partition for a key and a number of partitions; None: any.  Without one the producer chooses."""
    tee: Callable[[Block], object] | None = None
    """Sees the blocks as they were read, before they are sent."""
    quiet: bool = False
    verbosity: int = 0
    wait_s: float = WAIT_S
    """For the topic, before the first record."""


def run(job: ProduceJob, *, make: Callable[[ProducerConfig], KafkaProducer], clock: Clock) -> int:
    """Sends everything through the producer that ``make`` gives; returns the exit code.

    Raises:
        CommandError, KafkaError: nothing was sent, for this reason.
    """
    inputs.check(job.paths, job.layout)
    begun = clock.now()
    shown: Display
    # Typing into a terminal and a bar on it do not go together.
    bar = not job.quiet and not (inputs.STDIN in job.paths and inputs.is_typed())
    tally = Tally(lambda line: shown.error(line))
    shown = display(lambda: f"{tally.acknowledged:,} acknowledged, {tally.failed:,} failed", wanted=bar)
    with sending.sigterm_as_interrupt(), sending.rare_collections(), shown, LogLines(shown, job.verbosity) as logs:
        code = _Run(job, make(job.config), tally, shown, logs).whole()
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

    def __init__(self, job: ProduceJob, producer: KafkaProducer, tally: Tally, shown: Display, logs: LogLines) -> None:
        self._job = job
        self._producer = producer
        self._tally = tally
        self._shown = shown
        self._logs = logs
        self._partitions = 0
        # Records that were handed to the producer, or refused.
        self._read = 0
        # Where what was not handed to the producer begins: an input and a row's number there.
        self._unsent = ("", 0)
        # The inputs so far, in their order.
        self._names: list[str] = []
        # The rows that a call of the producer has not yet answered for.
        self._sending = ""
        self._by_rows = any(job.config[name] is not None for name in ("key.serializer", "value.serializer"))
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
        if self._transaction == _ENDING and isinstance(ended, (KeyboardInterrupt, KafkaTimeoutError)):
            self._shown.error("it is not known whether the transaction was committed: check before you send it again")
        elif self._transaction in (_OPEN, _ENDING):
            self._shown.error("the transaction was not committed: readers with read_committed see none of its records")
        if isinstance(ended, Exception):
            self._shown.line(told(ended).rstrip())
            return FAILED if self._read else exit_code_of(ended)  # USAGE says that nothing was sent
        if interrupted is not None:
            self._shown.error(f"interrupted: {self._reached(ended is not None)}")
            if self._sending:
                self._shown.error(f"it is not known which records of {self._sending} were sent, and none is counted")
            return exit_code_of(interrupted)
        return FAILED if self._tally.failed else OK

    def _reached(self, amid: bool) -> str:
        """How far it came, when every record that was accepted has its outcome; ``amid`` the input, or at its end."""
        if not self._read:
            return "nothing was sent"
        if self._transactional:
            return "what follows was not sent"
        lost = next(((name, self._tally.lost[name]) for name in self._names if name in self._tally.lost), None)
        first = self._unsent if lost is None else lost
        if lost is None and not amid:
            return "all records are acknowledged"
        behind = "" if not amid or self._sending else ", and those from {}:{} on were not sent".format(*self._unsent)
        return f"all records before {first[0]}:{first[1]} are acknowledged{behind}"

    def _begin(self) -> None:
        job = self._job
        self._shown.show(f"waiting for topic {job.topic}")
        self._partitions = sending.partitions_of(self._producer, job.topic, self._logs, job.wait_s)
        if job.partition is not None and job.partition >= self._partitions:
            raise CommandError(f"partition {job.partition} of topic {job.topic!r}: {self._existing()}")
        if self._transactional:
            sending.init_transactions(self._producer, self._logs)
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
                self._names.append(source.name)
                self._unsent = (source.name, 1)
                self._shown.show(os.path.basename(source.name), 0, source.size)
                if inputs.STDIN in self._job.paths and source.name == inputs.STDIN_NAME and inputs.is_typed():
                    self._shown.line("forebay: records come from this terminal, a line each; Ctrl-D ends them")
                self._feed_one(source)
                if self._job.count is not None and self._read >= self._job.count:
                    return

    def _feed_one(self, source: Input) -> None:
        name, limit = source.name, self._job.count
        for item in source.blocks():
            if isinstance(item, BadRow):
                self._bad(name, item)
            else:
                self._feed_block(name, item if limit is None else item.part(0, limit - self._read))
                self._shown.show(os.path.basename(name), source.position(), source.size)
            if limit is not None and self._read >= limit:
                return

    def _feed_block(self, name: str, block: Block) -> None:
        """Sends a block in parts, so that not too many records are without an outcome.

        Raises:
            CommandError: a bad row, or an error after which further records would fail in the same way.
        """
        job, tally = self._job, self._tally
        if job.tee is not None:
            job.tee(block)
        most = 1 if job.sync else PART
        send = self._send_rows if self._by_rows else self._send
        for filled in self._existing_partitions(
            name, block.filled(job.key, job.headers, empty_is_null=job.empty_is_null)
        ):
            for begin in range(0, len(filled.numbers), most):
                part = filled.part(begin, begin + most)
                self._read += len(part.numbers)
                self._unsent = (name, part.numbers[0])
                send(name, part)
                self._unsent = (name, part.numbers[-1] + 1)
                if tally.stuck is not None:
                    raise self._stopped(f"{name}:{part.numbers[-1]}")
                sending.wait_until(self._has_room)

    def _has_room(self) -> bool:
        tally = self._tally
        few = self._read - tally.settled_count < (1 if self._job.sync else sending.WINDOW)
        return few and tally.open_bytes < self._job.config["buffer.memory"]

    def _existing_partitions(self, name: str, block: Block) -> Iterator[Block]:
        """The parts of the block between rows for a partition that does not exist, which are bad rows."""
        begin, count = 0, self._partitions
        # Checked here, because the producer would wait max.block.ms for a partition that may be made later.
        for row, partition in enumerate(block.partitions or ()):
            if partition is not None and partition >= count:
                if row > begin:
                    yield block.part(begin, row)
                why = f"partition {partition} of topic {self._job.topic!r}: {self._existing()}"
                self._bad(name, BadRow(block.numbers[row], why))
                begin = row + 1
        if begin < len(block.numbers):
            yield block.part(begin, len(block.numbers))

    def _send(self, name: str, block: Block) -> None:
        """Sends the rows; one that is refused fails alone, and those behind it go on."""
        waiting = [block]
        while waiting:
            part = waiting.pop()
            self._unsent = (name, part.numbers[0])
            self._sending = f"{name}:{part.numbers[0]} to {part.numbers[-1]}"
            partitions = self._partition_column(part)
            try:
                delivery = self._producer.send_batch(
                    self._job.topic,
                    part.values,
                    key=part.keys,
                    headers=part.headers,
                    partition=partitions,
                    timestamp=part.timestamps,
                )
            except KafkaError as error:
                delivery = BatchDelivery() if error.delivery is None else error.delivery
                waiting += reversed(self._behind_refused(name, part, delivery, error))
            except BaseException as error:
                # Ctrl-C: what was accepted counts.
                if (known := getattr(error, "delivery", None)) is not None:
                    self._follow(name, part, known)
                    begun = next((run.stop for run in known.taken() if run.start == 0), 0)
                    self._unsent = (name, [*part.numbers, part.numbers[-1] + 1][begun])
                raise
            else:
                self._follow(name, part, delivery)
                if self._job.sync:
                    delivery.exception()

    def _follow(self, name: str, block: Block, delivery: BatchDelivery) -> None:
        self._tally.follow(name, block, delivery)
        self._sending = ""

    def _partition_column(self, block: Block) -> Any:
        own, choose = self._job.partition, self._job.partitioner
        if own is None and block.partitions is None and choose is not None:
            if block.keys is None:
                return choose(None, self._partitions)
            return [choose(key, self._partitions) for key in block.keys]
        if block.partitions is None or own is None:
            return own if block.partitions is None else block.partitions
        return [own if partition is None else partition for partition in block.partitions]

    def _behind_refused(self, name: str, block: Block, delivery: BatchDelivery, error: KafkaError) -> list[Block]:
        """Counts a block of which a row was refused; returns what is left of it to send.

        Raises:
            CommandError: further records would fail in the same way, or none is to be sent without this one.
        """
        self._follow(name, block, delivery)
        taken = delivery.taken()
        begins = [0, *(run.stop for run in taken)]
        ends = [*(run.start for run in taken), len(block.numbers)]
        left = [(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]
        first = left[0][0]
        self._tally.refused(name, [block.numbers[first]], error)
        if self._tally.stuck is None and not self._transactional and "row" in error.context:
            return [block.part(max(begin, first + 1), end) for begin, end in left if end > first + 1]
        # An error without a row is the producer's.  Of a window of rows, some behind the refused one may be taken.
        later = sum(len(run) for run in taken if run.start > first)
        raise self._stopped(f"{name}:{block.numbers[first]}", later)

    def _stopped(self, place: str, later: int = 0) -> CommandError:
        but = f", but for {later} records soon after it" if later else ""
        return CommandError(f"stopped at {place}: what follows was not sent{but}", FAILED)

    def _send_rows(self, name: str, block: Block) -> None:
        """Sends the rows one by one, for serializers of the user's, which columns do not pass."""
        send, settled, topic = self._producer.send, self._tally.settled, self._job.topic
        nothing: list[None] = [None] * len(block.numbers)
        partitions = self._partition_column(block)
        columns = (
            block.numbers,
            *(nothing if each is None else cells_of(each) for each in (block.values, block.keys)),
            block.headers or nothing,
            [partitions] * len(nothing) if isinstance(partitions, int) else partitions or nothing,
            block.timestamps or nothing,
        )
        for number, value, key, headers, partition, timestamp in zip(*columns, strict=True):
            self._unsent = (name, number)
            on_delivery = partial(settled, name, number)
            try:
                send(
                    topic,
                    value,
                    key,
                    headers=headers,
                    partition=partition,
                    timestamp=timestamp,
                    on_delivery=on_delivery,
                )
            except KafkaError as error:
                self._tally.refused(name, [number], error)
                if self._transactional:
                    raise self._stopped(f"{name}:{number}") from None
            if self._tally.stuck is not None:
                raise self._stopped(f"{name}:{number}")

    def _bad(self, name: str, row: BadRow) -> None:
        self._read += 1
        line = f"{name}:{row.number}: {row.reason}"
        if self._job.skip_bad:
            self._tally.fail("bad input", line)
            return
        self._tally.failed_silently()
        raise CommandError(f"{line}; what follows was not sent ({self._job.skip_flag} goes on)", FAILED)
