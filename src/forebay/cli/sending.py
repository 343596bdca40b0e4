"""What ``produce`` and ``perf`` share: a producer whose topic is there before the first record, and its bounded end."""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
from collections.abc import Callable, Iterator

from forebay.cli.failure import FAILED, CommandError, Terminated, reason
from forebay.cli.report.progress import LogLines
from forebay.errors import KafkaError, KafkaTimeoutError
from forebay.producer import KafkaProducer

INTERRUPTED_CLOSE_S = 10.0
"""How long Ctrl-C still waits for what was accepted; a second Ctrl-C ends that."""
WINDOW = 100_000
"""Records without an outcome: so the memory for their callbacks is bounded, as ``buffer.memory`` bounds the rest."""
POLL_S = 0.002
COLLECT_AFTER = 2 * WINDOW
"""Objects made since the last garbage collection: by default it looks at every record on its way every 700 of them,
which costs more than sending them."""
NO_ANSWER = "nothing that answers as Kafka does was reached"


def partitions_of(producer: KafkaProducer, topic: str, logs: LogLines, wait_s: float) -> int:
    """How many partitions the topic has; after a second the terminal says what keeps it waiting.

    Raises:
        CommandError: it cannot be had within ``wait_s``, with the connection's error where that is the reason.
    """
    servers = ",".join(map(str, producer.config.bootstrap))
    try:
        with logs.waiting_for(f"topic {topic!r} on {servers}"):
            return len(producer.partitions_for(topic, timeout=wait_s))
    except KafkaError as error:
        why = reason(error)
        if isinstance(error, KafkaTimeoutError) and error.__cause__ is None and "last_error" not in error.context:
            why = f"{why.rstrip('.')}: {NO_ANSWER}"
        raise CommandError(f"topic {topic!r} on {servers}: {why}", FAILED) from error


def init_transactions(producer: KafkaProducer, logs: LogLines) -> None:
    """Waits for the coordinator at most ``max.block.ms``; after a second the terminal says so.

    Raises:
        KafkaError: it cannot be had, or refuses.
    """
    with logs.waiting_for(f"the coordinator of transactional.id {producer.config['transactional.id']!r}"):
        producer.init_transactions()


def finish(producer: KafkaProducer, interrupted: BaseException | None) -> BaseException | None:
    """Closes the producer with everything delivered or failed; returns what interrupted the command, if anything did.

    Without an interruption it takes what it takes (``delivery.timeout.ms`` at most), with one 10 s, with two none.
    """
    while True:
        try:
            producer.close(None if interrupted is None else INTERRUPTED_CLOSE_S)
            return interrupted
        except KafkaTimeoutError:
            return interrupted  # each lost record's callback has reported it
        except KeyboardInterrupt as again:
            if interrupted is not None:
                abandon(producer)
                return interrupted
            interrupted = again


def abandon(producer: KafkaProducer) -> None:
    """Closes a producer that accepted nothing, without waiting for answers."""
    try:
        producer.close(0)
    except KafkaTimeoutError:
        pass  # each lost record's callback has reported it


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Lets garbage pile up a little while records are sent by the million."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def wait_until(ready: Callable[[], bool]) -> None:
    """Waits for what another thread brings about; Ctrl-C gets through."""
    pause = threading.Event()
    while not ready():
        pause.wait(POLL_S)


@contextlib.contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Lets SIGTERM end a command as Ctrl-C does; only the main thread can, elsewhere it changes nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise Terminated()

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
