"""Failures that nobody has heard of: counted for each cause, and said in the log.

A record's error lies in its future.  A program that gives no callback and drops the future would never learn of it.  So
each result that fails gets a ``Mark``, which notes whose records somebody has heard of: there was a callback, or the
future was asked.  Only the futures keep the result, and with it the mark.  Once it is gone nobody can ask any more, and
what is not noted is counted and said.  The road not taken: a finaliser of each future, which every record would pay
for.

A future that is kept may still be asked.  Its record is said after ``PATIENCE_MS``, or when the process ends.  Any
thread notes.  The sender's thread says, and after its end the exit of the process.
"""

from __future__ import annotations

import logging
import math
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from forebay._delivery.hearing import put_mark
from forebay._runtime.log import REPEAT_INTERVAL_MS
from forebay._runtime.threads import Lock
from forebay.errors import TransactionAbortedError

logger = logging.getLogger("forebay.sender")

LOOK_MS = 1_000.0
"""How often it is looked whether futures are gone, while some are kept."""
PATIENCE_MS = 60_000.0
"""How long a future that is kept may be asked before its failure is said."""
FOLD_AT = 1_000
"""So many failures in a row, such as a loop of records that are too large, are folded by the thread that makes them."""
MAX_CAUSES = 1_000

REFUSED, OF_BATCH, OF_RECORD, HELD = "refused by send", "of the batch", "of one record", "of messages that were held"
"""Whose error it is; one class may be the error of all of them for different reasons."""

_left: set[Unheard] = set()
"""Those that have failures to say, but no thread any more.  Process-wide by nature."""


class Mark:
    """Which records of a failed batch somebody has heard of: a byte for each, or one for all."""

    __slots__ = ("__weakref__", "heard")

    def __init__(self, heard: bytearray) -> None:
        self.heard = heard


class _Cause(NamedTuple):
    topic: str
    kind: type[BaseException]
    whose: str


class _Failure:
    """One result that failed."""

    __slots__ = ("error", "heard", "is_kept", "own", "partition", "records", "since")

    def __init__(self, mark: Mark, partition: int, records: int, error: Any, own: Any) -> None:
        self.is_kept = weakref.ref(mark)
        self.heard = mark.heard
        self.partition = partition
        self.records = records
        self.error: tuple[_Cause, str] = error
        self.own: dict[int, tuple[_Cause, str]] = own
        self.since: float | None = None

    def unheard(self) -> int:
        """How many records nobody has heard of so far."""
        count = self.heard.count(0)
        return count if len(self.heard) == self.records else count and self.records


class _Count:
    """What is not said yet of a cause; ``said`` is when it was last said, in ms."""

    __slots__ = ("partition", "records", "said", "text")

    def __init__(self, said: float) -> None:
        self.records = 0
        self.partition = -1
        self.text = ""
        self.said = said


class Unheard:
    """The failures of one producer.

    Args:
        prefix: before each line, such as ``[Producer clientId=a] ``.
        wake: has the sender's thread take a turn; any thread calls it.
    """

    def __init__(self, prefix: str, wake: Callable[[], object]) -> None:
        self._prefix = prefix
        self._wake = wake
        self._failures: deque[_Failure] = deque()
        self._counts: dict[_Cause, _Count] = {}
        self._fold_at = FOLD_AT
        # Only tried, never waited for: a signal handler or a finaliser may come in between.
        self._folding = Lock()
        self._next = -math.inf
        self._has_ended = False
        self.waiting = False
        """Whether there is something to look at."""

    def note(self, result: Any, error: Any, record_errors: Any, records: int, whose: str = OF_BATCH) -> None:
        """Notes that a result is about to fail.  Any thread.

        Args:
            result: a BatchResult; nothing is noted if it has an outcome.
            record_errors: errors of single records by index, or None.
            records: how many there are.
        """
        try:
            mark = Mark(bytearray(1 if result.is_whole else records))
            if put_mark(result, mark) and 0 in mark.heard:
                topic = result.topic
                own = {at: _cause(topic, OF_RECORD, one) for at, one in (record_errors or {}).items()}
                self._add(_Failure(mark, result.partition, records, _cause(topic, whose, error), own))
        except MemoryError:
            pass  # the records' own errors are what matters

    def _add(self, failure: _Failure) -> None:
        self._failures.append(failure)
        is_first, self.waiting = not self.waiting, True
        if self._has_ended:
            _left.add(self)
        elif is_first:
            self._wake()
        elif len(self._failures) >= self._fold_at:
            self._take(None, over=False, at_once=False)
            self._fold_at = FOLD_AT + 2 * len(self._failures)

    def add(self, error: BaseException, records: int, now: float) -> None:
        """Counts messages that were held, and have neither a future nor a callback.  Any thread."""
        # Nobody keeps the mark.
        self._add(_Failure(Mark(bytearray(1)), -1, records, _cause("", HELD, error), {}))
        self._say(self._take(now, over=False, at_once=False))

    def look(self, now: float) -> float:
        """Says what is due; ms until the next look.  Sender's thread; ``now`` is in monotonic ms."""
        if now < self._next:
            return self._next - now
        self._next = now + LOOK_MS
        self.waiting = False  # first, as others note meanwhile
        self._say(self._take(now, over=False, at_once=False))
        if self.waiting or self._has_more():
            self.waiting = True
            return LOOK_MS
        self._next = -math.inf
        return math.inf

    def end(self) -> None:
        """Nobody looks any more: says all but what may still be asked, which is said when the process ends."""
        self._has_ended = True
        self._say(self._take(None, over=False, at_once=True))
        self.leave()
        say_left(over=False)

    def leave(self) -> None:
        """What is not said is said when the process ends."""
        if self._has_more():
            _left.add(self)

    def say_left(self, *, over: bool) -> None:
        """Says what can be said after the end: all of it if the process is over."""
        self._say(self._take(None, over=over, at_once=True))
        if not self._has_more():
            _left.discard(self)

    def _has_more(self) -> bool:
        return bool(self._failures) or any(count.records for count in tuple(self._counts.values()))

    def _say(self, due: list[tuple[_Cause, _Count]]) -> None:
        for cause, count in due:
            where = cause.topic if count.partition < 0 else f"{cause.topic}-{count.partition}"
            if cause.whose == HELD:
                logger.error("%s%d message(s) were not sent: %s", self._prefix, count.records, count.text)
            # An abort is what the user asked for.
            elif issubclass(cause.kind, TransactionAbortedError):
                logger.warning("%s%d record(s) for %s failed: %s", self._prefix, count.records, where, count.text)
            else:
                logger.error("%s%d record(s) for %s failed: %s", self._prefix, count.records, where, count.text)

    def _take(self, now: float | None, *, over: bool, at_once: bool) -> list[tuple[_Cause, _Count]]:
        """Counts whom nobody can hear of any more, and gives the lines that are due.

        Args:
            now: None where no time is known; then nothing is due but ``at_once``.
            over: nobody asks any more, also where futures are kept.
        """
        due: list[tuple[_Cause, _Count]] = []
        if not self._folding.acquire(False):
            return due  # another thread does it, or this call interrupts one that does
        try:
            for _ in range(len(self._failures)):
                self._fold(self._failures.popleft(), now, over)
            for cause, count in list(self._counts.items()):
                if count.records and (at_once or (now is not None and now - count.said >= REPEAT_INTERVAL_MS)):
                    due.append((cause, count))
                    self._counts[cause] = _Count(count.said if now is None else now)
        finally:
            self._folding.release()
        return due

    def _fold(self, failure: _Failure, now: float | None, over: bool) -> None:
        unheard = failure.unheard()
        if not unheard:
            return
        if failure.since is None:
            failure.since = now
        is_late = now is not None and failure.since is not None and now - failure.since >= PATIENCE_MS
        if failure.is_kept() is not None and not over and not is_late:
            self._failures.append(failure)
            return
        for at, error in failure.own.items():
            if 0 <= at < len(failure.heard) and not failure.heard[at] and unheard:
                self._count(error, 1, failure.partition)
                unheard -= 1
        if unheard:
            self._count(failure.error, unheard, failure.partition)

    def _count(self, error: tuple[_Cause, str], records: int, partition: int) -> None:
        cause, text = error
        count = self._counts.get(cause)
        if count is None:
            if len(self._counts) >= MAX_CAUSES:
                for known in [known for known, each in self._counts.items() if not each.records][: MAX_CAUSES // 2]:
                    del self._counts[known]
            count = self._counts[cause] = _Count(-math.inf)
        if not count.records:
            count.text, count.partition = text, partition
        elif count.partition != partition:
            count.partition = -1
        count.records += records


def say_left(*, over: bool) -> None:
    """Says what producers that have ended left to say; all of it if the process is over."""
    for each in list(_left):
        each.say_left(over=over)


def forget_left() -> None:
    """To be called in a forked child: it is the parent's to say."""
    _left.clear()


def _cause(topic: str, whose: str, error: BaseException) -> tuple[_Cause, str]:
    text = str(error) if whose == HELD else f"{type(error).__name__}: {error}"
    return _Cause(topic, type(error), whose), text
