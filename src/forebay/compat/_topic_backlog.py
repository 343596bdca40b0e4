"""Messages for topics that are not known yet: held until their metadata comes, so that ``produce`` need not wait.

A thread is there while messages are held.  It waits for the metadata of all their topics at once.  The exit of the
interpreter waits for it (``_sender.lifecycle``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from forebay.errors import KafkaError, KafkaTimeoutError
from forebay.model._inputs import ProducerRecord
from forebay.producer._frontend import Clock, Inside, SenderLock, ThreadTicket, lifecycle, start_thread
from forebay.producer._path import FORKED
from forebay.producer._pending import PendingSend

LONGEST_TURN_MS = 1_000.0
FULL_TURN_MS = 5.0
EXIT_TURN_MS = 10.0


class Held(NamedTuple):
    """One message that waits, and when it began to, in ms."""

    since: float
    arguments: tuple[Any, ...]


class TopicBacklog:
    """Any thread adds; ``_lock`` guards the fields that say nothing else.

    Args:
        native: the native producer.
        send: called as ``send(topic, arguments)`` once the topic is known, in the order in which they were added.  It
            raises BufferError if there is no room.
        fail: called as ``fail(arguments, error)`` for a message that cannot be sent; False if nobody hears of it.
        start: starts a thread of a name.
    """

    def __init__(
        self,
        native: Any,
        send: Callable[[str, Any], object],
        fail: Callable[[Any, Any], object],
        start: Callable[[Callable[[], object], str], object] = start_thread,
    ) -> None:
        self._native = native
        self._send = send
        self._fail = fail
        self._start = start
        # A flush waits for this object's thread, so in a handler that interrupted code under a lock it is refused.
        self._lock = SenderLock()
        self._releasing = SenderLock()  # comes before the other
        self._on_its_way = 0  # guarded by it
        self.topics: dict[str, deque[Held]] = {}
        """The messages of each topic for which some are held; later ones go behind them."""
        self._has_thread = False
        self._ticket = ThreadTicket()
        self._waits: dict[str, PendingSend] = {}  # of topics, for the thread alone
        self._inside = Inside(native)
        self.patience_ms = self._inside.patience_ms
        """The time in which each message is sent or fails."""
        lifecycle.watch_holder(self)

    def count(self) -> int:
        """Messages that are held."""
        return self._on_its_way + sum([len(messages) for messages in tuple(self.topics.values())])

    def add(self, topic: str, arguments: tuple[Any, ...]) -> None:
        """Holds a message.

        Raises:
            RuntimeError: no thread can be started; the message is not held.
        """
        held = Held(self._inside.clock.now(), arguments)
        with self._lock:
            self.topics.setdefault(topic, deque()).append(held)
            starts, self._has_thread = not self._has_thread, True
        if not starts:
            self._ticket.wake()
            return
        try:
            self._start(self._run, "forebay-compat-held")
        except BaseException:
            with self._lock:
                self._has_thread = False
                self.topics[topic].remove(held)
            raise

    def drop(self, error: KafkaError) -> int:
        """All that are held fail; of how many nobody hears.  None in a forked child: they are the parent's to send."""
        if self._native._state == FORKED:
            return 0  # before the locks, which another thread may have held at the fork
        with self._releasing, self._lock:
            taken = [held.arguments for messages in self.topics.values() for held in messages]
            self.topics.clear()
        self._ticket.wake()
        return sum([not self._fail(arguments, error) for arguments in taken])

    def finish(self, end: float, clock: Clock) -> None:
        """Waits until none is held, until ``end`` (monotonic ms) by ``clock`` at most.  The others fail then.

        For the interpreter's exit, at which no thread can be started; the one that sends them lives until after it.
        """
        pause = ThreadTicket()
        while self._has_thread and self.count() and (left := end - clock.now()) > 0:
            pause.wait(min(left, EXIT_TURN_MS))
        self.give_up(KafkaTimeoutError("The process ends before the topic is known", phase="waiting for metadata"))

    def give_up(self, error: KafkaError) -> None:
        """All that are held fail, and the log has the number of those that nobody hears of."""
        self._note(self.drop(error), error)

    def _note(self, count: int, error: BaseException) -> None:
        if count:
            self._inside.note_unheard(error, count)

    def _run(self) -> None:
        try:
            while (pause := self.turn()) is not None:
                if pause > 0:
                    self._ticket.wait(pause)
        except BaseException:
            self._has_thread = False  # the next message starts another
            raise
        finally:
            for pending in self._waits.values():
                pending.end(self._ticket)

    def turn(self) -> float | None:
        """Sends and fails what can be now; how long the next turn has time, in ms, None if nothing is held.

        By the thread alone.
        """
        with self._lock:
            topics = list(self.topics)
            if not topics:
                self._has_thread = False
                for pending in self._waits.values():
                    pending.end(self._ticket)
                self._waits.clear()
                return None
        return min([LONGEST_TURN_MS, *[self._look(topic) for topic in topics]])

    def _look(self, topic: str) -> float:
        """Sends or fails what can be; how long the next look has time, in ms."""
        try:
            self._native._check_open()
            if topic not in self._waits:
                self._waits[topic] = PendingSend(self._native, ProducerRecord(topic), None)
            if not self._waits[topic].find_topic(self._ticket):
                return self._until_old(topic)
        except KafkaTimeoutError as error:
            self._waits.pop(topic).end(self._ticket)
            return self._fail_old(topic, error)
        except KafkaError as error:
            self._fail_some(topic, error, None)
            return 0.0
        return 0.0 if self.release(topic) else FULL_TURN_MS

    def _until_old(self, topic: str) -> float:
        with self._lock:
            messages = self.topics.get(topic)
            since = messages[0].since if messages else 0.0
        left: float = since + self.patience_ms - self._inside.clock.now()
        if left > 0:
            return left
        return self._fail_old(
            topic, KafkaTimeoutError(f"Topic {topic} not present in metadata", phase="waiting for metadata")
        )

    def _fail_old(self, topic: str, error: KafkaError) -> float:
        self._fail_some(topic, error, self._inside.clock.now() - self.patience_ms)
        return 0.0

    def _fail_some(self, topic: str, error: BaseException, before: float | None) -> None:
        """Fails the topic's messages; those only that came before a time, if one is given."""
        count = 0
        while True:
            with self._lock:
                messages = self.topics.get(topic)
                if not messages:
                    self.topics.pop(topic, None)
                    break
                if before is not None and messages[0].since > before:
                    break
                held = messages.popleft()
            count += not self._fail(held.arguments, error)
        self._note(count, error)

    def release(self, topic: str) -> bool:
        """Sends the messages of a topic that is known, in their order; False if there is no room for all of them.

        Any thread: one that produces goes on behind them, and so cannot add to them faster than they are sent.
        """
        with self._releasing:
            while True:
                with self._lock:
                    messages = self.topics.get(topic)
                    if not messages:
                        # Under the lock: a message that comes now goes its own way, behind all of these.
                        self.topics.pop(topic, None)
                        return True
                    held = messages.popleft()
                    self._on_its_way += 1
                try:
                    self._send(topic, held.arguments)
                except BufferError:
                    with self._lock:
                        self.topics.setdefault(topic, messages).appendleft(held)
                    return False
                except Exception as error:  # noqa: BLE001 - whatever it is, it is the message's outcome
                    self._note(not self._fail(held.arguments, error), error)
                finally:
                    self._on_its_way -= 1
