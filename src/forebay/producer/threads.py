"""KafkaProducer: the front end for threads.

``send`` is in ``forebay.producer._path`` (compiled); here are the producer's life and everything that is not done per
record.  The sender's thread holds no reference to this object, so a producer that is dropped without ``close``
still delivers what it accepted.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Generator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from forebay._assembly import Surroundings, assemble, not_made, system_surroundings
from forebay._delivery.future import RecordFuture
from forebay._delivery.sender_lock import check_wait, may_wait
from forebay._runtime.hints import PRODUCER, hinted, without_hints
from forebay._runtime.times import limit, seconds
from forebay._sender import lifecycle
from forebay.config import ProducerConfig
from forebay.config._door import door
from forebay.config._security_rules import new_credentials
from forebay.config._sources import FromSources
from forebay.errors import (
    ApiError,
    ConfigError,
    ForkedProducerError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
)
from forebay.errors._base import caused
from forebay.model import PartitionInfo, TopicPartition
from forebay.model._arguments import IfThere
from forebay.producer._columns import BatchDelivery, send_table
from forebay.producer._insight import Insight
from forebay.producer._path import CLOSED, FORKED, OPEN, SendPath
from forebay.producer._refusals import close_timeout
from forebay.producer._sender_calls import SenderCalls, wait_for_result
from forebay.producer._transactional import TransactionalCalls

if TYPE_CHECKING:
    from typing import Unpack

    from forebay._runtime.times import Seconds
    from forebay.config._typed import ProducerOptions

__all__ = ["KafkaProducer"]


def __dir__() -> list[str]:
    return sorted(__all__)


logger: logging.Logger = logging.getLogger("forebay.producer")


FORCED_CLOSE_MS = 300.0
"""How long close() waits for a thread that it has told to end at once; not ended then, a callback holds it."""


@hinted(PRODUCER)
class KafkaProducer(SendPath, TransactionalCalls, SenderCalls, Insight, FromSources):
    """A Kafka producer; safe to use from many threads.

    Args:
        config: options by Kafka's names (``{"bootstrap.servers": "localhost:9092"}``); a ProducerConfig will do.
        options: the same as keywords (``bootstrap_servers=...``).

    Raises:
        ConfigError: an unknown option, or a value that cannot be.
        KafkaError: a serializer, partitioner or interceptor could not be made, or descriptors, threads or memory are
            used up (the error is the cause).  What was made is closed again.
        IllegalStateError: eventlet has replaced the threads of this process.
    """

    @door()
    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Unpack[ProducerOptions]) -> None:
        self._start(ProducerConfig(config, **options), system_surroundings())

    @classmethod
    def _with(cls, surroundings: Surroundings, config: Mapping[str, Any] | None = None, /, **options: Any) -> Self:
        """A producer with another clock or network than the machine's, for tests."""
        producer = cls.__new__(cls)
        producer._start(ProducerConfig(config, **options), surroundings)
        return producer

    def _start(self, config: ProducerConfig, surroundings: Surroundings) -> None:
        self._put_together(config, surroundings)
        try:
            self._thread.start()
        except Exception as error:
            # It has closed all but the wake pipe, which nobody writes to any more.
            self._parts.client.close_after_fork()
            raise not_made("kafka producer", error) from error
        lifecycle.watch(self, self._thread)

    def _put_together(self, config: ProducerConfig, surroundings: Surroundings) -> None:
        try:
            parts = assemble(config, surroundings)
        except ConfigError:
            raise
        except Exception as error:
            raise not_made("kafka producer", error) from error
        self._parts, self._thread = parts, parts.thread
        self._prepare(parts)
        self._inner = {*vars(SendPath), *vars(self)} - {"send", "send_nowait"}
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("Producer %s starts with\n%s", parts.client_id, config.describe())

    # What it knows

    @property
    def config(self) -> ProducerConfig:
        """The configuration, complete and immutable."""
        return self._parts.config

    @property
    def client_id(self) -> str:
        """``client.id``, given or generated."""
        return self._parts.client_id

    def partitions_for(self, topic: str, *, timeout: Seconds | None = None) -> tuple[PartitionInfo, ...]:
        """The partitions of ``topic``; waits for metadata ``timeout`` seconds at most, or ``max.block.ms``.

        Raises:
            KafkaTimeoutError: metadata did not come, or does not know the topic (its last error is the cause).
            KafkaError: the topic's name is invalid or it is forbidden to us; or no broker lets us in.
        """
        self._check_open()
        wait_ms = self._parts.config["max.block.ms"] if timeout is None else seconds(timeout) * 1000
        self._topic_for_sending(topic, -1, True, self._parts.clock.now() + wait_ms)
        return self._parts.metadata.cluster().partitions(topic)

    @door(TypeError, IllegalStateError, IllegalArgumentError, wrap=False)
    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Logs in with another username and password from the next login on; ``config`` stays as it is.

        Connections that are open stay so.  Where the old ones were refused, the new ones are tried at once.

        Raises:
            IllegalStateError: the producer does not log in by PLAIN or SCRAM.
            TypeError: one of them is no string.
            IllegalArgumentError: a NUL character, which PLAIN cannot send, or a lone surrogate.
        """
        self._check_open()
        given = new_credentials(self._parts.config["sasl.mechanism"], username, password)
        if self._parts.login is None:
            raise IllegalStateError("This producer does not log in with a username and a password (sasl.mechanism)")
        self._parts.login.replace(given)
        self._parts.client.states.credentials = object()
        self._parts.metadata.pardon()
        self._parts.client.wakeup()

    # Columns

    def send_batch(
        self,
        topic: str | None,
        table: Any,
        *,
        value: Any = "value",
        key: Any = IfThere("key"),  # noqa: B008 - a constant
        headers: Any = IfThere("headers"),  # noqa: B008
        partition: Any = IfThere("partition"),  # noqa: B008
        timestamp: Any = IfThere("timestamp"),  # noqa: B008
        topic_column: Any = None,
    ) -> BatchDelivery:
        """Takes every row of a table into the buffer, as ``send`` would one by one, at the cost of columns.

        Rows are encoded, hashed and compressed without the GIL.  Memory is that of ``send``, and so is the order: rows
        with the same partition keep theirs.  It waits for room and metadata, at most ``max.block.ms`` for a row.
        Columns are bytes already, so serializers are not asked.  With interceptors or a partitioner of your own rows go
        one by one, which is right and slow.

        Each of the other arguments is the name of a column of ``table``, or None for none, or a column itself: an Arrow
        array, a NumPy array or a list.  Columns called key, headers, partition and timestamp are used where they are
        there, as by Spark's Kafka sink; None leaves one out.

        Args:
            topic: where rows go; with a ``topic_column`` those whose cell is null (None: there must be no such row).
            table: anything with Arrow's C data or stream interface (of pyarrow, polars, pandas ...; a reader's batches
                are read one after the other), a dict of columns, or a structured NumPy array; or the values alone, as
                an Arrow array, a NumPy array or a list of bytes.
            value: bytes or text (as UTF-8), null for a tombstone.  None: all are.  A function of the table may make
                the column, such as ``forebay.rows_as_json`` or ``rows_as_avro(...)``.
            key: as the value; decides the partition (murmur2, as in Java) where none is given.
            headers: a list of structs of key and value, or a map; in Python a list of what ``send`` takes.
            partition: integers; null lets the partitioner choose.  An int stands for all rows.
            timestamp: timestamps of any unit, or int64 in ms; null for now.  An int or an aware datetime stands for all
                rows.
            topic_column: as the value.

        Returns:
            What becomes of the rows, which broker's errors and timeouts arrive in.

        Raises:
            TypeError, IllegalArgumentError: a table, column or cell that cannot be; names it and says what is allowed.
            RecordTooLargeError: a row is larger than ``max.request.size``.
            KafkaTimeoutError: metadata or memory (BufferExhaustedError) did not come in time.
            KafkaError: as ``send``, and what would arrive in its future where no batch takes the row.
            OSError: the table's stream failed.

        An error about a row has ``context["row"]``, the first that was not taken.  Any error has ``delivery``, what
        becomes of the rows that were taken: ``delivery.taken()`` lists them.
        """
        if self._state != OPEN:
            raise self._refusal()
        wanted = {"value": value, "key": key, "headers": headers, "partition": partition}
        wanted |= {"timestamp": timestamp, "topic_column": topic_column}
        try:
            return send_table(self, topic, table, wanted)
        except (ApiError, IllegalArgumentError, TypeError) as error:
            self._parts.metrics.record_errors.record(1)
            if not isinstance(error, ApiError) or (own := self._note_failed_send(error)) is error:
                raise
            own.delivery = error.delivery
            raise own.with_traceback(error.__traceback__) from error.__cause__

    # Flush and close

    def flush(self, timeout: Seconds | None = None) -> None:
        """Sends everything that was accepted so far, and waits until each record has its outcome.

        Args:
            timeout: seconds; None waits as long as it takes (``delivery.timeout.ms`` at most).

        Raises:
            KafkaTimeoutError: records were still without an outcome; the message counts them.
            IllegalStateError: called from a delivery callback, which would wait for itself (KIP-1118).
        """
        steps = self._flush_steps(timeout)
        try:
            result, left = next(steps)
            while True:
                result, left = steps.send(wait_for_result(result, left))
        except StopIteration:
            pass
        finally:
            steps.close()

    def _flush_steps(self, timeout: Seconds | None) -> Generator[tuple[Any, float | None], bool, None]:
        """What ``flush`` is made of, without its waits.

        Yields a batch's result, and how many ms it may be waited for (None: as long as it takes); gets whether it is
        there.
        """
        self._check_not_forked()
        if self._on_sender_thread():
            raise IllegalStateError("flush() cannot be called from a delivery callback: it would wait for itself")
        check_wait("flush()")
        timeout = limit(timeout)
        clock, accumulator = self._parts.clock, self._parts.accumulator
        begun, batches = clock.now(), accumulator.begin_flush()
        try:
            self._parts.client.wakeup()
            for batch in batches:
                left = None if timeout is None else begun + timeout * 1000 - clock.now()
                if (yield batch.result, left):
                    continue
                from forebay._delivery.split import open_records  # rare

                records = sum(open_records(other.result, other.record_count) for other in batches)
                if records > 0:  # some of them may have come since the wait
                    late = KafkaTimeoutError(
                        f"flush: {records} record(s) have no outcome after {timeout} s", phase="flush"
                    )
                    raise caused(late, self._parts.metadata.uncaught_since(begun))
        finally:
            accumulator.end_flush()
            self._parts.metrics.flush_ns.record((clock.now() - begun) * 1e6)

    def close(self, timeout: Seconds | None = None) -> None:
        """Sends what was accepted, waits for the outcomes, and ends the producer; repeating it does no harm.

        Args:
            timeout: seconds after which it ends by force: what has no outcome then fails.  It takes at most half a
                second more.  None waits as long as it takes (``delivery.timeout.ms`` at most, and as long as callbacks
                take).

        Every record has its outcome when it returns.  A callback that still runs then cannot be ended: the callbacks
        behind it run when it returns, and the sender's thread ends after them.

        Raises:
            KafkaTimeoutError: it ended by force; the message counts the records that failed, and those that were
                acknowledged while a callback that does not return keeps their callbacks from running.
            KafkaError: a serializer, interceptor or partitioner failed in its own close.
        """
        steps = self._close_steps(timeout)
        with suppress(StopIteration):
            left = next(steps)
            while True:
                left = steps.send(self._thread.join(left))

    def _close_steps(self, timeout: Seconds | None) -> Generator[float, bool, None]:
        """What ``close`` is made of, without its waits: yields for how many ms the thread's end may be waited for."""
        timeout = limit(timeout)
        if self._state == FORKED:
            return
        self._set_state(CLOSED)
        self._parts.accumulator.close()
        self._thread.sender.request_close()
        if self._on_sender_thread() or not may_wait():
            logger.warning(
                "close() was called from a delivery callback, or by a signal handler that interrupted another call: it "
                "returns at once, the rest is sent meanwhile"
            )
            return
        begun, acknowledged, lost = self._parts.clock.now(), 0, 0
        is_over = yield math.inf if timeout is None else timeout * 1000
        if not is_over:
            self._thread.sender.request_force_close()
            is_over = yield FORCED_CLOSE_MS
            acknowledged, lost = (0, self._thread.lost) if is_over else self._thread.leave()
        if is_over:  # else the interpreter's exit gives the callback some more time
            lifecycle.forget(self._thread)
        try:
            self._parts.users.close()
        except Exception as error:
            raise KafkaError(f"Failed to close kafka producer: {error}") from error
        if acknowledged or lost:
            raise caused(close_timeout(acknowledged, lost, timeout), self._parts.metadata.uncaught_since(begun))

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Closes; what was accepted is delivered, also when the block raised.

        After a ``close(timeout)`` that ended by force it takes half a second at most; after a signal of
        ``forebay.end_on_sigterm`` the rest of that time.
        """
        # A forced close has raised its error already.  A callback may hold the sender's thread for ever.
        was_forced = self._thread.sender.forced
        try:
            self.close(0 if was_forced else lifecycle.time_left())
        except KafkaError as failure:
            if was_forced and isinstance(failure, KafkaTimeoutError):
                return
            if error is None:
                raise
            logger.exception("While closing a producer after the error that ended its with block")

    def __del__(self) -> None:
        # May run on any thread, at any moment, the sender's own included: no lock, no wait, no log.
        thread = getattr(self, "_thread", None)
        if thread is not None and self._state == OPEN:
            thread.sender.request_close()

    def __dir__(self) -> list[str]:
        # In the interpreted form Python sees what ``send`` is made of.
        inner = getattr(self, "_inner", ())
        names = [name for name in super().__dir__() if name.startswith("_") or name not in inner]
        return without_hints(type(self), names)

    # Guards

    def _refused(self, where: TopicPartition, error: ApiError, callback: Any, blocking: bool) -> RecordFuture:
        session = self._parts.session
        try:
            if session is not None and session.is_refusal(error):
                raise error  # no fault of this record, whatever its class: the transaction cannot go on
            if blocking or not isinstance(error, KafkaTimeoutError):
                # Nobody may look at the future, and the transaction must not be committed without the record: known
                # before the callback runs, which may do just that.
                error = self._note_failed_send(error)
            return super()._refused(where, error, callback, blocking)
        finally:
            del error  # see SendPath._refused

    def _note_failed_send(self, error: ApiError) -> ApiError:
        """``error`` for the record's owner; a transaction has failed with it."""
        session = self._parts.session
        if session is None:
            return error
        own = session.note_failed_send(error)
        self._parts.client.wakeup()
        return own

    def _check_not_forked(self) -> None:
        if self._state == FORKED:
            raise ForkedProducerError()

    def _check_open(self) -> None:
        if self._state != OPEN:
            raise self._refusal()

    def _after_fork_in_child(self) -> None:
        """The child's copy of a producer: refuses everything and closes its descriptors; takes no lock."""
        self._set_state(FORKED)
        self._parts.client.close_after_fork()
        if self._parts.shown is not None:
            self._parts.shown.close_after_fork()

    def __reduce__(self) -> Any:
        raise TypeError(
            "a KafkaProducer cannot be pickled: it has sockets and a thread; pickle its config and make one there"
        )

    def __repr__(self) -> str:
        state = {OPEN: "open", CLOSED: "closed", FORKED: "a copy in a forked child, unusable"}[self._state]
        servers = ",".join(self.config["bootstrap.servers"])
        return f"<KafkaProducer {self.client_id} of {servers}: {state}, {self._parts.accumulator!r}>"
