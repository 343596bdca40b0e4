"""The data source as Spark sees it: batch and stream writers, both fed with Arrow batches.

Each method runs elsewhere: in the driver's planner, an executor's worker, or the driver's commit process.  Only the
pickled writer and the commit messages travel.  So the writer holds its options, and in exactly-once mode the driver's
claim.  A stream's commit does not even get the writer: its claim comes with the messages.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from forebay._runtime.clock import SystemClock
from forebay.errors import ConfigError, IllegalStateError, KafkaError
from forebay.spark import columns, commit, options, secrets
from forebay.spark.exactly_once import driver
from forebay.spark.exactly_once.control_topic import connect
from forebay.spark.exactly_once.protocol import Claim, Write
from forebay.spark.exactly_once.settings import TIMEOUT, Settings
from forebay.spark.failure import shown_alone
from forebay.spark.kept_topic import remedies
from forebay.spark.options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from forebay.spark.exactly_once.task import TaskTransaction
    from forebay.spark.writer import TaskId

logger: logging.Logger = logging.getLogger("forebay.spark")

Messages = Sequence[WriterCommitMessage | None]


class ForebayDataSource(DataSource):
    """Writes DataFrames to Kafka.

    Columns: ``value`` (required), ``key``, ``topic``, ``headers``, ``partition``, ``timestamp``.  Options:
    ``topic``, ``kafka.<any producer option>``, ``metrics.path`` (a JSON file on the driver's host for the
    counters); ``includeHeaders`` is accepted, as by Spark's own sink, and changes nothing.
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "forebay"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        # A plain dict: Spark's own mapping keeps its keys in a form that need not pickle the same everywhere.
        self.options: dict[str, str] = dict(options.items())
        self._unpickled = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        # In the commit process, which ends what another process has begun.  To begin there again would fence it.
        self.__dict__.update(state)
        self._unpickled = True

    @shown_alone()
    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Checks schema and options on the driver; nothing is written yet."""
        if overwrite:
            raise ConfigError(
                "Save mode Overwrite not allowed for Kafka: records in a topic cannot be replaced. "
                'Allowed: .mode("append")'
            )
        sink = self._sink(schema, streaming=False)
        return BatchWriter(sink, _begin(sink))

    @shown_alone()
    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """As ``writer``; ``overwrite`` (output mode complete) appends, as Spark's own sink does.

        Spark calls it before each micro-batch, and once more, on an unpickled source, for the commit.
        """
        sink = self._sink(schema, streaming=True)
        return StreamWriter(sink, None if self._unpickled else _begin(sink))

    def reader(self, schema: StructType) -> Any:
        """Refused: this is a sink."""
        raise ConfigError('format "forebay" writes only; read with Spark\'s own "kafka" format')

    def schema(self) -> StructType:
        """Refused: this is a sink."""
        raise ConfigError('format "forebay" writes only; read with Spark\'s own "kafka" format')

    def _sink(self, schema: StructType, *, streaming: bool) -> SinkOptions:
        parsed = options.parse(self.options, streaming=streaming)
        if unused := options.ignored(self.options):
            # A stream comes here for each micro-batch.
            level = logging.INFO if streaming else logging.WARNING
            logger.log(level, "Options of a source are ignored: %s", ", ".join(unused))
        inline = self.options.get(secrets.ALLOW_INLINE_KEY, "").strip().lower() == "true"
        secrets.check(dict(parsed.producer), inline, secrets.session_conf())
        columns.check(schema, parsed.topic)
        return parsed


def _begin(sink: SinkOptions) -> Claim | None:
    settings = sink.exactly_once
    if settings is None:
        return None
    with remedies(settings):
        topic = connect(sink.producer, settings)
        return driver.begin(topic, settings.prefix, abandon=settings.abandon, rewrite=settings.rewrite)


class _TaskWriter:
    """What both writers share: the part that runs in a task, and the ends of an exactly-once write.

    Args:
        claim: what the driver took over, of an exactly-once write.
    """

    def __init__(self, sink: SinkOptions, claim: Claim | None = None) -> None:
        self.sink = sink
        self.claim = claim

    @shown_alone()
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Runs in an executor's Python worker, once a task attempt."""
        from forebay.spark import writer

        task = writer.current_task()
        return writer.write(iterator, self.sink, task=task, transaction=self._transaction(task))

    def _transaction(self, task: TaskId) -> TaskTransaction | None:
        settings = self.sink.exactly_once
        if settings is None:
            return None
        if self.claim is None:
            raise IllegalStateError("Spark made the writer of an exactly-once write in a process where none can begin")
        from forebay.spark.exactly_once.task import TaskTransaction

        write = self._which(settings, self.claim, task)
        timeout_ms = int(dict(self.sink.producer)[TIMEOUT])
        return TaskTransaction(self.claim, write, settings.prefix, task.partition, timeout_ms=timeout_ms)

    def _which(self, settings: Settings, claim: Claim, task: TaskId) -> Write:
        raise NotImplementedError

    def _commit(self, messages: Messages, reports: Sequence[commit.TaskReport]) -> None:
        settings = self.sink.exactly_once
        if settings is None:
            return
        found = commit.outcomes(messages)
        if len(found) != len(reports):
            raise IllegalStateError("A task wrote at least once in a write that is exactly-once")
        with remedies(settings):
            driver.commit(connect(self.sink.producer, settings), settings.prefix, found, SystemClock().wall())
        told = commit.notice(found, streaming=isinstance(self, StreamWriter))
        if told is not None:
            logger.log(*told)

    def _abort(self, messages: Messages) -> str:
        settings = self.sink.exactly_once
        if settings is None:
            return commit.describe_abort(messages)
        found = commit.outcomes(messages)
        claim = found[0].claim if found else self.claim
        try:
            done = driver.abort(connect(self.sink.producer, settings), settings.prefix, found, claim)
        except KafkaError as error:
            # What failed before is what the user has to see.
            done = f"its transactions stay open until the next write or their timeout, because of {error}"
        return f"write aborted: {done}"


class BatchWriter(_TaskWriter, DataSourceArrowWriter):
    """``df.write.format("forebay").mode("append")``."""

    def _which(self, settings: Settings, claim: Claim, task: TaskId) -> Write:
        from forebay.spark.exactly_once.task import batch_write

        return batch_write(settings, claim)

    @shown_alone()
    def commit(self, messages: Messages) -> None:
        """Ends the tasks' transactions, if it is exactly-once, and keeps the counters."""
        reports = commit.complete(messages)
        self._commit(messages, reports)
        if self.sink.metrics_path:
            commit.save(self.sink.metrics_path, reports, add=False)

    def abort(self, messages: Messages) -> None:
        """Says what stays in Kafka; without transactions nothing can be taken back."""
        logger.warning("%s", self._abort(messages))


class StreamWriter(_TaskWriter, DataSourceStreamArrowWriter):
    """``df.writeStream.format("forebay")``."""

    def _which(self, settings: Settings, claim: Claim, task: TaskId) -> Write:
        from forebay.spark.exactly_once.task import stream_write

        return stream_write(task.query, task.batch)

    @shown_alone()
    def commit(self, messages: Messages, batchId: int) -> None:
        """As a batch's; called again for the same micro-batch after a crash."""
        reports = commit.complete(messages)
        self._commit(messages, reports)
        if self.sink.metrics_path:
            commit.save(self.sink.metrics_path, reports, add=True, batch_id=batchId)

    def abort(self, messages: Messages, batchId: int) -> None:
        """Says what stays in Kafka; without transactions nothing can be taken back."""
        logger.warning("micro-batch %d: %s", batchId, self._abort(messages))
