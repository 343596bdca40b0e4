"""The topic of a record that is sent: what metadata knows of it, how it is asked for, and the wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython

from forebay._accumulator.topic import TopicState
from forebay._runtime.ticket import ThreadTicket
from forebay.producer._refusals import not_in_metadata

if TYPE_CHECKING:
    from forebay._assembly import Components


@cython.final
@cython.cclass
class TopicFinder:
    """Finds the topics of one producer's records; any thread."""

    def __init__(self, parts: Components) -> None:
        self.accumulator = parts.accumulator
        self.metadata = parts.metadata
        self.wake = parts.client.wakeup
        self.max_block_ms = parts.config["max.block.ms"]
        self.clock = parts.clock

    @cython.cfunc
    def known_since(self, topic: str) -> Any:
        """The version of the metadata from which on its errors count for a record that is sent now."""
        # An invalid name stays invalid; what else was said of the topic before now may have been mended: ask again.
        return -1 if topic in self.metadata.cluster().invalid_topics else self.metadata.version

    @cython.cfunc
    def look_up(self, topic: str, partition: cython.int, since: Any, now: cython.double) -> TopicState | None:
        """The topic, if metadata knows it and the partition; else None.

        Raises:
            KafkaError: metadata cannot be had, or Kafka forbids the topic's name, or a broker refuses it.
        """
        self.metadata.add_topic(topic, now)
        cluster = self.metadata.cluster()
        count: cython.int = cluster.partition_count(topic)
        if count > 0 and partition < count:
            state: TopicState = self.accumulator.refresh(topic, cluster)
            # Another thread may have brought it to newer metadata, which may know less.
            if partition < state.partition_count:
                return state
        self.metadata.raise_if_failed()
        error = self.metadata.topic_error(topic, since)
        if error is not None:
            try:
                raise error
            finally:
                error = None  # interpreted, its traceback has this frame: a cycle, which would keep the record
        return None

    @cython.cfunc
    def ask_for(self, topic: str) -> Any:
        """Asks for newer metadata: its version is above the number that this gives."""
        above = self.metadata.request_update_for_topic(topic)
        self.wake()
        return above

    def wait_for(self, above: int, timeout_ms: float) -> None:
        """Has the calling thread wait for newer metadata than ``above``."""
        ticket = ThreadTicket()
        try:
            if not self.metadata.await_version(above, ticket):
                ticket.wait(timeout_ms)
        finally:
            self.metadata.forget(ticket)

    @cython.cfunc
    def not_found(
        self,
        topic: str,
        partition: cython.int,
        waits: cython.bint,
        waited: cython.double,
        on_sender_thread: cython.bint,
    ) -> Any:
        """The error of a topic that did not come in time."""
        return not_in_metadata(
            topic,
            partition,
            self.metadata.cluster().partition_count(topic),
            waits=waits,
            waited=waited,
            max_block_ms=self.max_block_ms,
            on_sender_thread=on_sender_thread,
            cause=self.metadata.last_error(topic, self.clock.now() - waited),
        )
