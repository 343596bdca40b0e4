"""``Producer`` of confluent-kafka: its events, its ends, and its calls of the cluster and of transactions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

from forebay.admin import AdminClient
from forebay.admin._topics import describe_topics
from forebay.compat._librdkafka_config import LibrdkafkaOptions, read_options
from forebay.compat._librdkafka_errors import BrokerErrors, KafkaError, KafkaException, raise_first, raised, refusal
from forebay.compat._librdkafka_log import Forwarded
from forebay.compat._librdkafka_messages import Events
from forebay.compat._librdkafka_path import CLOSED, ProducePath
from forebay.compat._librdkafka_values import ClusterMetadata, as_cluster, check_message, plain_topic
from forebay.compat._topic_backlog import TopicBacklog
from forebay.config._door import door
from forebay.errors import ApiError, KafkaTimeoutError, PurgedError, TransactionAbortedError
from forebay.errors import KafkaError as NativeError
from forebay.producer import KafkaProducer
from forebay.producer._frontend import Inside, ThreadTicket, lifecycle
from forebay.producer._path import FORKED

logger = logging.getLogger("forebay.compat")
PURGED = "Purged before the topic was known"


class Producer(ProducePath):
    """confluent-kafka's Producer; safe to use from many threads.

    Args:
        config: options by librdkafka's names, a dict; ``default.topic.config`` among them.
        options: the same as keywords.

    Raises:
        KafkaException: an option is unknown, refused, or has a value that cannot be.
        TypeError: there is no configuration.
    """

    @door(KafkaException, TypeError)
    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Any) -> None:
        read = read_options(config, options)
        try:
            native = KafkaProducer(read.native)
        except NativeError as error:
            raise raised(error) from error
        self._use(native, read)

    @classmethod
    def _around(cls, native: KafkaProducer, **options: Any) -> Self:
        """A Producer on this native one, for tests."""
        made = cls.__new__(cls)
        made._use(native, read_options({"bootstrap.servers": "unused:1"}, options))
        return made

    def _use(self, native: KafkaProducer, read: LibrdkafkaOptions) -> None:
        self._error_cb = read.error_cb
        self._init_failed = False
        self._inside = Inside(native)
        self._forwarded = None if read.logger is None else Forwarded(read.logger, native.client_id)
        events = Events(self._inside.clock, read.default_callback, read.only_errors)
        if read.error_cb is not None:
            self._broker_errors = BrokerErrors(self._inside.connections, events)
            self._inside.connections.on_loss = self._broker_errors.lost
        self._bind(native, events, TopicBacklog(native, self._go_held, self._fail_held), read)

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int = -1,
        callback: Any = None,
        on_delivery: Any = None,
    ) -> int:
        """Takes many messages: dicts with value, key, partition, callback, timestamp and headers, all optional.

        Returns:
            How many were taken.  The others have their error under ``_error``.

        Raises:
            TypeError: ``messages`` is no list of dicts, or a field is of another type.
        """
        self._check_open()
        topic = plain_topic(topic)
        if not isinstance(messages, list):
            raise TypeError(f"messages must be a list, got {type(messages).__name__}")
        common = on_delivery if callback is None else callback
        for index, message in enumerate(messages):
            check_message(index, message)
        return sum([self._take(topic, message, partition, common) for message in messages])

    def _take(self, topic: str, message: dict[str, Any], partition: int, common: Any) -> bool:
        own = message.get("callback", message.get("on_delivery"))
        try:
            self.produce(
                topic,
                message.get("value"),
                message.get("key"),
                message.get("partition", partition),
                common if own is None else own,
                timestamp=message.get("timestamp", 0),
                headers=message.get("headers"),
            )
            return True
        except (BufferError, KafkaException) as error:
            full = KafkaError(KafkaError._QUEUE_FULL)
            message["_error"] = error.args[0] if isinstance(error, KafkaException) else full
            return False

    @property
    def native(self) -> KafkaProducer:
        """The producer of this package that does the work; its ``metrics()`` and ``config`` may be read."""
        self._check_open()
        producer: KafkaProducer = self._native
        return producer

    def _fail_held(self, arguments: Any, error: BaseException) -> bool:
        if not isinstance(error, TransactionAbortedError):
            self._note_failed(error)
        message = arguments[-1]
        if message is not None:
            message.fail(error.args[0] if isinstance(error, KafkaException) else error)
        self._events.wake()
        return message is not None

    def _note_failed(self, error: BaseException) -> None:
        # As for a record that the native producer refused: a transaction is not committed without it.
        found = error.args[0] if isinstance(error, KafkaException) else error
        native = found.native if isinstance(found, KafkaError) else found
        self._native._note_failed_send(native if isinstance(native, ApiError) else ApiError(str(found)))

    def _check_open(self) -> None:
        if not self._open:
            raise RuntimeError(CLOSED)

    # Events

    def poll(self, timeout: float = -1) -> int:
        """Calls the callbacks of messages that have their outcome, on this thread.

        Args:
            timeout: seconds to wait for the first; negative: as long as it takes; 0: not at all.

        Returns:
            How many callbacks it called.

        Raises:
            Exception: what a callback raised; the events behind it are served by the next call.
        """
        self._check_open()
        if not self._events.served and timeout != 0:
            self._wait_for_event(timeout)
        return self._serve()

    def _wait_for_event(self, timeout: float | None) -> None:
        clock = self._inside.clock
        begun = clock.now()
        ticket = ThreadTicket()
        self._events.waiting.append(ticket)
        try:
            while self._open and not self._events.served and self._native._state != FORKED:
                left = 3_600_000.0
                if timeout is not None and timeout >= 0:
                    left = begun + timeout * 1000 - clock.now()
                    if left <= 0:
                        return
                ticket.wait(left)
        finally:
            self._events.waiting.remove(ticket)

    def _tell_error(self, error: KafkaError | None) -> None:
        if error is not None and self._error_cb is not None and self._broker_errors.is_first_fatal(error):
            self._error_cb(error)

    def _tell_broker_error(self, error: KafkaError) -> None:
        self._broker_errors.taken(error)
        if self._error_cb is not None:
            self._error_cb(error)

    def flush(self, timeout: float = -1) -> int:
        """Sends everything, and calls the callbacks until no message is left.

        Args:
            timeout: seconds; negative: as long as it takes.

        Returns:
            How many messages are left.

        Raises:
            KafkaException: called in a forked child, or from a callback of the native producer.
            Exception: the first that a callback raised, once all is done; each message has its report.
        """
        self._check_open()
        heard: list[BaseException] = []
        left = self._flush(timeout, heard)
        raise_first(heard)
        return left

    def _flush(self, timeout: float | None, heard: list[BaseException]) -> int:
        clock = self._inside.clock
        deadline = None if timeout is None or timeout < 0 else clock.now() + timeout * 1000
        while True:
            is_late = self._flush_native(deadline, heard)
            self._serve_into(heard)
            left = len(self)
            if left == 0 or is_late or (deadline is not None and clock.now() >= deadline):
                return left
            if self._held.count():
                # They go to the native producer, or fail; neither takes longer than a topic's metadata.
                self._wait_for_event(0.005 if deadline is None else min(0.005, max(0.0, deadline - clock.now()) / 1000))

    def _flush_native(self, deadline: float | None, heard: list[BaseException]) -> bool:
        """True if there was not enough time.  Callbacks run between the waits."""
        clock = self._inside.clock
        steps = self._native._flush_steps(None if deadline is None else max(0.0, deadline - clock.now()) / 1000)
        is_there = None
        try:
            while True:
                try:
                    result, left = steps.send(is_there)
                except StopIteration:
                    return False
                except KafkaTimeoutError:
                    return True
                except NativeError as error:
                    raise raised(error) from error
                is_there = _wait_for(result, left)
                self._serve_into(heard)
        finally:
            steps.close()

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Drops messages; each has its event, with ``_PURGE_QUEUE`` or ``_PURGE_INFLIGHT``.

        Args:
            in_queue: those that were not sent.
            in_flight: those that were sent and not acknowledged; they may be written all the same.
            blocking: waits until they are dropped.
        """
        self._check_open()
        if in_queue:
            self._held.drop(PurgedError(PURGED, phase="queued"))
        self._transact(partial(self._native.purge, in_queue=in_queue, in_flight=in_flight, blocking=blocking))

    def close(self, timeout: float = -1) -> bool:
        """Flushes, calls the callbacks, and ends the producer; True.  Repeating it does no harm.

        Raises:
            KafkaException: the native producer's end failed.
            Exception: the first that a callback raised, once all is done; each message has its report.
        """
        if self._open:
            heard: list[BaseException] = []
            if self._native._state != FORKED:  # what is in a forked child's copy is the parent's to send
                self._flush(timeout, heard)
            self._shut()
            self._events.wake()
            try:
                self._end()
            finally:
                self._serve_all(heard)
                raise_first(heard)
        return True

    def _end(self) -> None:
        try:
            self._native.close(0 if self._inside.has_unfinished() else None)
        except KafkaTimeoutError:
            pass  # their events say so
        except NativeError as error:
            raise raised(error) from error
        finally:
            self._held.give_up(PurgedError("The producer was closed before the topic was known", phase="queued"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        left = lifecycle.time_left()  # after a signal of end_on_sigterm
        self.close(-1 if left is None else left)

    # The cluster

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """The brokers, and all topics or one.

        Raises:
            KafkaException: no broker answered in time.
        """
        self._check_open()
        admin = AdminClient(self._native.config)
        try:
            if topic is not None:
                self._inside.ask_for(topic)
            with admin._call("list_topics", None if timeout is None or timeout < 0 else timeout) as (session, limit):
                return as_cluster(describe_topics(session, topic, limit))
        except NativeError as error:
            raise raised(error) from error
        finally:
            admin.close()

    def cluster_id(self, timeout: float = -1) -> str:
        """The cluster's id.

        Raises:
            KafkaException: ``_TIMED_OUT``: no broker told it in time.
        """
        self._checked()
        known = self._inside.cluster().cluster_id
        found = known if known is not None else self.list_topics(timeout=timeout).cluster_id
        if found is None:
            raise refusal(KafkaError._TIMED_OUT, "Local: Timed out: the brokers do not tell the cluster's id")
        return found

    # Transactions

    def init_transactions(self, timeout: float = -1) -> None:
        """As ``forebay.KafkaProducer.init_transactions``; every error is a KafkaException."""
        native = self._checked()
        self._init_failed = True  # until it has not: the other calls are then in conflict with it
        self._transact(native.init_transactions, _seconds(timeout))
        self._init_failed = False

    def begin_transaction(self) -> None:
        """As ``forebay.KafkaProducer.begin_transaction``; no message that is held becomes part of it."""
        native = self._checked_for_transactions()
        if self._inside.is_sealed():
            # ``produce`` holds none outside a transaction, but another thread may have held one at the end of the last.
            self._held.give_up(TransactionAbortedError("The transaction ended before the topic was known"))
        self._transact(native.begin_transaction)

    def send_offsets_to_transaction(self, positions: list[Any], group_metadata: Any, timeout: float = -1) -> None:
        """As ``forebay.KafkaProducer.send_offsets_to_transaction``."""
        native = self._checked_for_transactions()
        self._transact(native.send_offsets_to_transaction, positions, group_metadata, _seconds(timeout))

    def commit_transaction(self, timeout: float = -1) -> None:
        """As ``forebay.KafkaProducer.commit_transaction``; the callbacks of its messages have run then."""
        native = self._checked_for_transactions()
        self._flush_for_transaction(timeout)
        self._transact(native.commit_transaction, _seconds(timeout))

    def abort_transaction(self, timeout: float = -1) -> None:
        """As ``forebay.KafkaProducer.abort_transaction``."""
        native = self._checked_for_transactions()
        self._held.drop(TransactionAbortedError("The transaction was aborted before the topic was known"))
        self._transact(native.abort_transaction, _seconds(timeout))

    def _checked(self) -> KafkaProducer:
        self._check_open()
        producer: KafkaProducer = self._native
        return producer

    def _checked_for_transactions(self) -> KafkaProducer:
        native = self._checked()
        if self._init_failed:
            text = "Local: Conflicting use: init_transactions has not succeeded yet: call it again"
            raise KafkaException(KafkaError(KafkaError._CONFLICT, text, retriable=True))
        return native

    def _flush_for_transaction(self, timeout: float) -> None:
        heard: list[BaseException] = []
        left = self._flush(timeout, heard)
        raise_first(heard)
        if left and self._held.count():
            error = KafkaError(KafkaError._TIMED_OUT, "Local: Timed out: messages wait for metadata", retriable=True)
            raise KafkaException(error)

    def _transact(self, call: Callable[..., object], *arguments: Any) -> None:
        heard: list[BaseException] = []
        failed: KafkaException | None = None
        try:
            call(*arguments)
        except NativeError as error:
            failed = raised(error)
            failed.__cause__ = error
        self._serve_into(heard)
        try:
            if failed is not None:
                for other in heard:
                    failed.add_note(f"A callback raised {other!r}")
                raise failed
            raise_first(heard)
        finally:
            heard.clear()
            failed = None  # interpreted, its traceback has this frame

    @door(KafkaException, TypeError, wrap=False)
    def set_sasl_credentials(self, username: str, password: str) -> None:
        """As ``forebay.KafkaProducer.set_sasl_credentials``; without effect where the producer does not log in.

        Raises:
            TypeError: one of them is no string.
            KafkaException: text that cannot be sent.
        """
        native = self._checked()
        for name, given in (("username", username), ("password", password)):
            if not isinstance(given, str):
                raise TypeError(f"{name} must be a str, got {type(given).__name__}")
        if not self._inside.has_password():
            logger.info("set_sasl_credentials has no effect: this producer does not log in with a password")
            return
        self._transact(native.set_sasl_credentials, username, password)


def _seconds(timeout: float | None) -> float | None:
    """A timeout of librdkafka's as one of this package; -1 is the longest, ``max.block.ms``."""
    return None if timeout is None or timeout < 0 else timeout


def _wait_for(result: Any, left: float | None) -> bool:
    ticket = ThreadTicket()
    if result.subscribe(ticket):
        return True
    try:
        while left is None:
            if ticket.wait(3_600_000):
                return True
        return ticket.wait(left)
    finally:
        result.unsubscribe(ticket)
