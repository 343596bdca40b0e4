"""KafkaProducer of kafka-python, on this package's producer."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from forebay.compat.kafka._options import KafkaPythonOptions, read_options
from forebay.compat.kafka._path import FutureRecordMetadata, SendingPath
from forebay.compat.kafka.errors import KafkaConfigurationError, NoBrokersAvailable, translated
from forebay.compat.kafka.structs import RecordMetadata
from forebay.config._door import door
from forebay.errors import ApiError, RecordTooLargeError
from forebay.errors import KafkaError as NativeError
from forebay.errors import KafkaTimeoutError as NativeTimeoutError
from forebay.model import TopicPartition
from forebay.producer import KafkaProducer as NativeProducer
from forebay.producer._frontend import Inside, RecordFuture, ThreadTicket, partition_random, system_surroundings

__all__ = ["FutureRecordMetadata", "KafkaProducer", "RecordMetadata"]

Result = TypeVar("Result")


class _Native(NativeProducer):
    """The producer of this package; it raises in ``send`` what kafka-python raises there."""

    def _refused(self, where: TopicPartition, error: ApiError, callback: Any, blocking: bool) -> RecordFuture:
        failed = super()._refused(where, error, callback, blocking)
        if isinstance(error, (NativeTimeoutError, RecordTooLargeError)):
            own = failed.exception(0)
            assert own is not None, "it has just failed"
            raise own
        return failed


class KafkaProducer(SendingPath):
    """kafka-python's KafkaProducer; safe to use from many threads.

    Args:
        configs: options by kafka-python's names.

    Raises:
        KafkaConfigurationError: an option is unknown, refused, or has a value that cannot be; a ValueError, too.
        NoBrokersAvailable: no broker answered within ``bootstrap_timeout_ms``; a KafkaTimeoutError, too.  Not if
            ``api_version`` is given, which asks for no start-up wait.
        KafkaError: a broker refused the login.
    """

    @door(KafkaConfigurationError)
    def __init__(self, **configs: Any) -> None:
        options = read_options(configs)
        native = _called(_Native, options.native)
        self._use(native, options)
        if options.shown["api_version"] is None:
            try:
                self._await_cluster(configs.get("api_version_auto_timeout_ms", options.shown["bootstrap_timeout_ms"]))
            except BaseException:
                native.close(0)
                raise

    @classmethod
    def _around(cls, native: NativeProducer, **configs: Any) -> Self:
        """A KafkaProducer on this native one, for tests."""
        made = cls.__new__(cls)
        made._use(native, read_options({"bootstrap_servers": "unused:1", **configs}))
        return made

    def _use(self, native: NativeProducer, options: KafkaPythonOptions) -> None:
        self._inside = Inside(native)
        self._serializers = (options.key, options.value)
        self.config: dict[str, Any] = {**options.shown, "client_id": native.client_id}
        draw = None if options.is_sticky else partition_random(system_surroundings().random)
        self._bind(native, options.key, options.value, options.choose, draw)

    def _await_cluster(self, timeout_ms: float) -> None:
        """Waits until a broker has told of the cluster."""
        clock, metadata = self._inside.clock, self._inside.metadata
        deadline = clock.now() + timeout_ms
        while metadata.cluster().version == 0:
            _called(metadata.raise_if_failed)
            left = deadline - clock.now()
            if left <= 0:
                cause = metadata.last_error("")
                raise NoBrokersAvailable(
                    f"No broker of {self.config['bootstrap_servers']} has answered within {timeout_ms:g} ms"
                ) from cause
            ticket = ThreadTicket()
            above = metadata.request_update()
            self._inside.wake()
            try:
                if not metadata.await_version(above, ticket):
                    ticket.wait(left)
            finally:
                metadata.forget(ticket)

    def _await_topic(self, topic: Any) -> RecordFuture | None:
        native = self.native
        limit = self._inside.clock.now() + self._inside.patience_ms
        try:
            native._topic_for_sending(topic, -1, True, limit)
        except ApiError as error:
            return native._refused(TopicPartition(topic, -1), error, None, True)
        return None

    @property
    def native(self) -> NativeProducer:
        """The producer of this package that does the work; its ``metrics()`` and ``config`` may be read."""
        producer: NativeProducer = self._native
        return producer

    # What it knows

    def bootstrap_connected(self) -> bool:
        """As the original's, whether the first brokers are still asked: False once one has told of the cluster."""
        return bool(self._inside.cluster().version == 0)

    def partitions_for(self, topic: str) -> set[int]:
        """The numbers of the topic's partitions; waits for metadata at most ``max_block_ms``.

        A closed producer tells what it knew.

        Raises:
            IllegalStateError: the producer is closed, and did not know the topic.
            KafkaTimeoutError: metadata did not come, or does not know the topic.
            KafkaError: a broker refuses the topic.
        """
        count: int = 0 if self._open else self._inside.cluster().partition_count(topic)
        return set(range(count)) or {info.partition for info in _called(self.native.partitions_for, topic)}

    def metrics(self, raw: bool = False) -> dict[str, dict[str, Any]] | None:
        """Values by group and name, those of a topic or node in a group of its own; None with metrics_enabled=False.

        Raises:
            KafkaConfigurationError: ``raw``, for there are no objects of kafka-python here.
        """
        if not self.config["metrics_enabled"]:
            return None
        if raw:
            raise KafkaConfigurationError("metrics(raw=True) is not served here: use producer.native.metrics()")
        groups: dict[str, dict[str, Any]] = {}
        for name, value in _called(self.native.metrics).items():
            own = [tag for key, tag in name.tags if key in ("topic", "node-id")]
            groups.setdefault(".".join([name.group, *own]), {})[name.name] = value
        return groups

    @classmethod
    def max_usable_produce_magic(cls, api_version: Any) -> int:
        """The version of the message format: 2."""
        return 2

    # Flush and close

    def flush(self, timeout: float | None = None) -> None:
        """Sends everything that was accepted so far, and waits until each record has its outcome.

        Args:
            timeout: seconds; None waits as long as it takes.

        Raises:
            KafkaTimeoutError: records were still without an outcome.
        """
        _called(self.native.flush, timeout)

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        """Sends what was accepted, waits for the outcomes, and ends the producer; repeating it does no harm.

        Args:
            timeout: seconds after which what has no outcome fails; None waits as long as it takes.
            null_logger: has no effect.

        Raises:
            KafkaTimeoutError: it ended by force.
            ValueError: the timeout is negative.
        """
        if not self._open:
            return
        try:
            _called(self.native.close, timeout)
        finally:
            if timeout is None or timeout >= 0:
                self._shut()
        for serializer in self._serializers:
            serializer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # Transactions

    def init_transactions(self) -> None:
        """As ``forebay.KafkaProducer.init_transactions``; every error is one of ``forebay.compat.kafka.errors``."""
        _called(self.native.init_transactions)

    def begin_transaction(self) -> None:
        """As ``forebay.KafkaProducer.begin_transaction``."""
        _called(self.native.begin_transaction)

    def send_offsets_to_transaction(self, offsets: Any, group_metadata: Any) -> None:
        """As ``forebay.KafkaProducer.send_offsets_to_transaction``."""
        _called(self.native.send_offsets_to_transaction, offsets, group_metadata)

    def commit_transaction(self) -> None:
        """As ``forebay.KafkaProducer.commit_transaction``."""
        _called(self.native.commit_transaction)

    def abort_transaction(self) -> None:
        """As ``forebay.KafkaProducer.abort_transaction``."""
        _called(self.native.abort_transaction)

    def __str__(self) -> str:
        config = self.config
        return f"<KafkaProducer client_id={config['client_id']} transactional_id={config['transactional_id']}>"

    __repr__ = __str__


def _called(call: Callable[..., Result], *arguments: Any) -> Result:
    """What ``call`` returns.

    Raises:
        KafkaError: kafka-python's, for the one of this package that it raised.
    """
    try:
        return call(*arguments)
    except NativeError as error:
        raise translated(error) from error
