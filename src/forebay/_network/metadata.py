"""Which topics are wanted, what is known of them, when to ask again, and which threads wait for the answer.

Callers of ``send()`` add topics and take tickets; the sender's thread asks the brokers.  Nothing here blocks.  Any
thread reads the newest ``Cluster``, which is immutable, without a lock, and the lock is held for short times only.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from forebay._delivery.sender_lock import SenderLock
from forebay._network.metadata_snapshot import (
    INVALID_TOPIC,
    TOPIC_AUTHORIZATION_FAILED,
    Applied,
    MetadataSnapshot,
    SeenEpochs,
    apply_response,
    merge_leaders,
)
from forebay._network.metadata_timing import UpdateTiming
from forebay._protocol.metadata import MetadataResponse
from forebay._runtime.log import RateLimitedLogger
from forebay._runtime.ticket import Ticket
from forebay.errors import KafkaError
from forebay.model import Node, TopicPartition
from forebay.model._cluster import Cluster
from forebay.model._wire import check_topic

_NEVER = float("-inf")


class MetadataQuery(NamedTuple):
    """What to ask for next; returned with the answer."""

    topics: tuple[str, ...]
    partial: bool
    """Only new topics: the others are not asked for, and stay known."""
    asked: int
    """The number of requests for an update so far; this query does not answer later ones."""


class Metadata:
    """The producer's metadata.

    Args:
        refresh_backoff_ms: ``retry.backoff.ms``, the least time between an answer or a failed attempt and the next
            request; only a topic that was never asked for does not wait.
        refresh_backoff_max_ms: ``retry.backoff.max.ms``; the time grows up to it while attempts fail, and while
            answers bring nothing new.
        max_age_ms: ``metadata.max.age.ms``.
        max_idle_ms: ``metadata.max.idle.ms``; topics that are unused for this time are dropped.
        random: in [0, 1), for jitter.
        on_update: called on the sender's thread with each new Cluster that came from a broker.
        logger: limited, under ``forebay.network``.
    """

    def __init__(
        self,
        *,
        refresh_backoff_ms: float,
        refresh_backoff_max_ms: float,
        max_age_ms: float,
        max_idle_ms: float,
        random: Callable[[], float],
        on_update: Iterable[Callable[[Cluster], None]] = (),
        logger: RateLimitedLogger | None = None,
    ) -> None:
        self._max_idle = max_idle_ms
        self._listeners = tuple(on_update)
        self._log = logger or RateLimitedLogger("forebay.network")
        # Called by the sender's thread: whether an idle topic was used since a time.
        self.in_use: Callable[[str, float], bool] = lambda topic, since: False
        # Sender's thread only:
        self._snapshot = MetadataSnapshot()
        self._shown = self._snapshot  # what ``newest`` was made of
        self._seen = SeenEpochs()
        self._bootstrap: tuple[Node, ...] = ()
        # Replaced by the sender's thread, read by any thread:
        self.newest = Cluster()
        self.is_bootstrap = True
        # Written under the lock, read by the sender's thread: monotonic ms from which on an update is due.
        self.due_at = _NEVER
        # Re-entrant, because a signal handler or a finaliser may send a record while the lock is held.
        # Guards all below.  No other lock is taken under it.
        self._lock = SenderLock()
        self._topics: dict[str, float] = {}  # wanted topic -> when it counts as idle
        self._new_topics: set[str] = set()  # wanted and never answered
        self._timing = UpdateTiming(refresh_backoff_ms, refresh_backoff_max_ms, max_age_ms, random)
        self._errors: dict[str, tuple[int, KafkaError]] = {}  # topic -> version it came with, error
        # Temporary errors, for the message when a wait ends without a result; the sender's thread replaces the dict.
        self._passing: dict[str, KafkaError] = {}
        self._last_failure: KafkaError | None = None
        self._uncaught: tuple[float, KafkaError | None] = (_NEVER, None)
        self._fatal: KafkaError | None = None
        self._closed = False
        self._waiters: list[tuple[int, Ticket]] = []

    # Any thread ------------------------------------------------------------------------------------------------

    def cluster(self) -> Cluster:
        """The newest cluster."""
        return self.newest

    @property
    def version(self) -> int:
        return self.newest.version

    def add_topic(self, topic: str, now: float) -> bool:
        """Wants ``topic`` for another ``metadata.max.idle.ms``; True if it is new, which makes an update due.

        Raises:
            InvalidTopicError: Kafka forbids the name.  Each topic comes through here before a broker is asked for it:
                in a request, a name that cannot be encoded would stop all others.
        """
        topics = self._topics
        if topic in topics:
            # Without the lock, because every send comes here.  If the sender's thread drops the topic between these two
            # lines, it is wanted again and not "new"; the caller does not find it in the cluster and asks for it.
            topics[topic] = now + self._max_idle
            return False
        check_topic(topic)
        with self._lock:
            if topic in topics:
                return False
            topics[topic] = now + self._max_idle
            self._new_topics.add(topic)
            self._timing.ask_for_new_topics(at_once=True)
            self._settle_due()
        return True

    def request_update(self, reset_equivalent: bool = True) -> int:
        """Asks for a full update; the version to be exceeded.

        Args:
            reset_equivalent: False after a broker's error: if earlier answers had nothing new, the next request
                waits its back-off.
        """
        with self._lock:
            if reset_equivalent:
                self._timing.forget_equivalent()
            self._timing.ask_for_all()
            self._settle_due()
            return self.newest.version

    def ask_again(self) -> int:
        """Asks for a full update after a broker's error; the number of this request, for ``is_answered``."""
        with self._lock:
            self.request_update(reset_equivalent=False)
            return self._timing.asked

    def is_answered(self, number: int) -> bool:
        """Whether a full update has come that was asked for after the request with this number."""
        with self._lock:
            return self._timing.full_answered(number)

    def request_update_for_topic(self, topic: str) -> int:
        """Asks for an update with ``topic``: a partial one while it is new; the version to exceed.

        Only ``add_topic`` makes an update due at once.  Here a request under way is enough.  After a request that
        failed, or that did not name the topic, the next one waits its back-off for all callers together.
        """
        with self._lock:
            if topic in self._new_topics:
                if not self._timing.wants_new_topics:
                    self._timing.ask_for_new_topics()
                    self._settle_due()
                return self.newest.version
        return self.request_update(reset_equivalent=False)

    def await_version(self, above: int, ticket: Ticket) -> bool:
        """True if there is nothing to wait for: there is a newer cluster, or ``raise_if_failed`` will raise.

        Otherwise the ticket is kept and woken once, when this becomes true; ``forget`` it to give up.
        """
        with self._lock:
            if self.newest.version > above or self._fatal is not None or self._closed:
                return True
            self._waiters.append((above, ticket))
            return False

    def forget(self, ticket: Ticket) -> None:
        """Drops a ticket: no thread waits on it any more."""
        with self._lock:
            self._waiters = [waiter for waiter in self._waiters if waiter[1] is not ticket]

    def raise_if_failed(self) -> None:
        """Raises the error that prevents all updates, such as a failed authentication, until an update succeeds.

        Raises:
            KafkaError: a copy of that error; or the producer was closed.
        """
        fatal = self._fatal
        if fatal is not None:
            raise _copied(fatal)
        if self._closed:
            raise KafkaError("Requested metadata update after close")

    def topic_error(self, topic: str, above: int = -1) -> KafkaError | None:
        """Why the last answer about ``topic`` brought no partitions: an invalid name, or no permission.

        It is kept until the next answer about the topic, so that every waiting caller gets a copy to raise.  Temporary
        errors are not kept.

        Args:
            above: None unless that answer is newer than this version.
        """
        version, error = self._errors.get(topic, (-1, None))
        return _copied(error) if error is not None and version > above else None

    def last_error(self, topic: str, since: float = math.inf) -> KafkaError | None:
        """Why a topic is not known so far: its error in the last answer, else the last failed update.

        Args:
            since: what is uncaught after this time (monotonic ms) comes first.
        """
        return self.uncaught_since(since) or self._passing.get(topic) or self._last_failure

    def uncaught_since(self, begun: float) -> KafkaError | None:
        """What stopped a turn of the sender's thread after ``begun`` (monotonic ms), so that others wait in vain."""
        at, error = self._uncaught
        return error if at >= begun else None

    def retains(self, topic: str) -> bool:
        """Whether ``topic`` is wanted."""
        return topic in self._topics

    @property
    def topics(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._topics)

    # Sender's thread ---------------------------------------------------------------------------------------------

    def bootstrap(self, nodes: Iterable[Node]) -> None:
        """Begins with these servers, which have negative ids, until a broker names the real ones."""
        self._bootstrap = tuple(nodes)
        self._snapshot = self._snapshot.rebootstrapped(self._bootstrap)
        self.is_bootstrap = True
        cluster = self._picture(0)
        with self._lock:
            self.newest = cluster
            self._timing.ask_for_all()
            self._settle_due()

    @property
    def servers(self) -> tuple[Node, ...]:
        """The bootstrap servers; sender's thread."""
        return self._bootstrap

    def expand_bootstrap(self, server: Node, names: Sequence[str], now: float) -> None:
        """Replaces a bootstrap server by its canonical names, for good; the first name keeps its id.

        The version stays and no thread is woken: no thread waits for this.
        """
        if server not in self._bootstrap:
            return
        others = {(node.host, node.port) for node in self._bootstrap if node != server}
        lowest = min(node.id for node in self._bootstrap)
        further = [name for name in names[1:] if (name, server.port) not in others]
        self._bootstrap = (
            *(node._replace(host=names[0]) if node == server else node for node in self._bootstrap),
            *(Node(lowest - number, name, server.port) for number, name in enumerate(further, 1)),
        )
        self._log.info(("canonical", server), now, "Bootstrap server %s is taken as %s", server.host, ", ".join(names))
        if self.is_bootstrap:
            self._snapshot = self._snapshot.rebootstrapped(self._bootstrap)
            self.newest = self._picture(self.newest.version)

    def rebootstrap(self) -> None:
        """Forgets the brokers and starts over with the bootstrap servers (KIP-899, KIP-1102)."""
        self._snapshot = self._snapshot.rebootstrapped(self._bootstrap)
        self.is_bootstrap = True
        self._publish()
        self.request_update(reset_equivalent=True)

    def time_to_next_update(self, now: float) -> float:
        """Ms until an update is due; 0 if it is."""
        return max(0.0, self.due_at - now)

    @property
    def update_requested(self) -> bool:
        """Whether an update was asked for, apart from the metadata's age."""
        with self._lock:
            return self._timing.wants_any

    @property
    def last_success(self) -> float:
        """Monotonic ms of the last full update."""
        return self._timing.last_success

    def next_query(self, now: float) -> MetadataQuery:
        """What to ask now: new topics alone, unless everything is due anyway."""
        with self._lock:
            if self._timing.begin(now):
                return MetadataQuery(tuple(self._topics), False, self._timing.asked)
            return MetadataQuery(tuple(self._new_topics), True, self._timing.asked)

    def update(self, query: MetadataQuery, response: MetadataResponse, version: int, now: float) -> None:
        """Applies the answer to ``query``, in ``version`` of the API."""
        previous = self.newest.cluster_id
        applied = apply_response(
            self._snapshot,
            self._seen,
            response,
            version,
            partial=query.partial,
            retained=lambda topic: self._retain(topic, now),
        )
        self._snapshot = applied.snapshot
        self.is_bootstrap = False
        self._keep_errors(query, response, applied, now)
        with self._lock:
            self._new_topics.difference_update(topic.name for topic in response.topics if topic.name)
            self._timing.answered(query.asked, now, partial=query.partial, news=applied.news)
            self._fatal = None
        self._publish()
        if applied.stale:
            self.request_update(reset_equivalent=False)
        if previous != self.newest.cluster_id:
            self._log.info("cluster", now, "Cluster ID: %s", self.newest.cluster_id)
        self._tell_listeners()

    def failed_update(self, now: float, error: KafkaError | None = None) -> None:
        """An attempt failed, so the next one waits.  If ``error`` is given, every waiting thread raises it."""
        with self._lock:
            self._timing.failed(now)
            self._settle_due()
        if error is not None:
            self.fatal(error)

    def note_failure(self, error: KafkaError) -> None:
        """A connection for an update was lost or not made; for ``last_error``."""
        self._last_failure = error

    def note_uncaught(self, error: BaseException, now: float) -> None:
        """The sender's thread tripped over ``error``, and has logged it; for ``uncaught_since``."""
        what = KafkaError(f"Uncaught error in the producer's I/O thread: {type(error).__name__}: {error}")
        what.__cause__ = error.with_traceback(None)  # whose frames hold whole batches
        self._uncaught = (now, what)

    def fatal(self, error: KafkaError) -> None:
        """No update can come until one succeeds: every waiting thread gets this error."""
        with self._lock:
            self._fatal = error
        self._wake()

    def pardon(self) -> None:
        """Another attempt may succeed, with other credentials: threads wait again; any thread."""
        with self._lock:
            self._fatal = None

    def update_leadership(
        self, hints: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
    ) -> frozenset[TopicPartition]:
        """Takes leaders (id and epoch) that a produce response named (KIP-951); the partitions that changed."""
        self._snapshot, changed = merge_leaders(self._snapshot, self._seen, hints, nodes)
        if changed:
            self._publish()
        return changed

    def seen_epoch(self, where: TopicPartition) -> int | None:
        """The newest known leader epoch, also of partitions that are gone."""
        return self._seen.get(where)

    def close(self) -> None:
        """Wakes every waiting thread; ``raise_if_failed`` raises from now on."""
        with self._lock:
            self._closed = True
        self._wake()

    # -----------------------------------------------------------------------------------------------------------

    def _settle_due(self) -> None:
        # Under the lock, after every change of the timing.
        self.due_at = self._timing.due_at()

    def _retain(self, topic: str, now: float) -> bool:
        with self._lock:
            idle_at = self._topics.get(topic)
            if idle_at is None:
                return False
            if idle_at > now or topic in self._new_topics or self.in_use(topic, now - self._max_idle):
                return True
            del self._topics[topic]
            self._errors.pop(topic, None)
        self._log.debug("Topic %s was not used for metadata.max.idle.ms and is dropped from metadata", topic)
        return False

    def _keep_errors(self, query: MetadataQuery, response: MetadataResponse, applied: Applied, now: float) -> None:
        version = self.newest.version + 1
        answered = {topic.name for topic in response.topics}
        kept = {topic: found for topic, found in self._errors.items() if query.partial and topic not in answered}
        for topic, error in applied.errors.items():
            if error.code in (INVALID_TOPIC, TOPIC_AUTHORIZATION_FAILED):
                kept[topic] = (version, error)
            key = ("topic", topic, error.code)
            self._log.warning(key, now, "Error while fetching metadata: %s=%s", topic, error.name)
        passing = {topic: found for topic, found in self._passing.items() if query.partial and topic not in answered}
        self._passing = {**passing, **{topic: error for topic, error in applied.errors.items() if topic not in kept}}
        self._last_failure = None
        self._errors = kept

    def _publish(self) -> None:
        # Built outside the lock, because callers of send() take it.
        cluster = self._picture(self.newest.version + 1)
        with self._lock:
            self.newest = cluster
            self._settle_due()
        self._wake()

    def _picture(self, version: int) -> Cluster:
        cluster = self._snapshot.cluster(version, self._shown, self.newest)
        self._shown = self._snapshot
        return cluster

    def _wake(self) -> None:
        with self._lock:
            version = self.newest.version
            everybody = self._closed or self._fatal is not None
            woken = [ticket for above, ticket in self._waiters if everybody or version > above]
            self._waiters = [waiter for waiter in self._waiters if not everybody and version <= waiter[0]]
        for ticket in woken:
            ticket.wake()

    def _tell_listeners(self) -> None:
        for listener in self._listeners:
            try:
                listener(self.newest)
            except Exception as error:  # noqa: BLE001 - the caller's code must not stop the sender
                self._log.exception("Listener %r failed on a metadata update", listener, error=error)


def _copied(error: KafkaError) -> KafkaError:
    """A copy of a kept error to raise: each ``raise`` adds its frames, with all that they refer to, to the error."""
    copied = copy.copy(error)
    # copy() keeps only causes that are KafkaErrors; setting one also sets whether the context is shown.
    copied.__cause__ = error.__cause__
    copied.__suppress_context__ = error.__suppress_context__
    return copied
