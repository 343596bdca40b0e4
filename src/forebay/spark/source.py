"""The data source as Spark sees it: batch and stream writers, both fed with Arrow batches.

Where each method runs differs (driver's planner, executor's worker, driver's commit process) and nothing but the
pickled writer and the commit messages goes between them, so a writer holds its options and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from forebay.errors import ConfigError
from forebay.spark import columns, commit, options
from forebay.spark.failure import shown_alone
from forebay.spark.options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

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

    @shown_alone()
    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Checks schema and options on the driver; nothing is written yet."""
        if overwrite:
            raise ConfigError(
                "Save mode Overwrite not allowed for Kafka: records in a topic cannot be replaced. "
                'Allowed: .mode("append")'
            )
        return BatchWriter(self._sink(schema))

    @shown_alone()
    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """As ``writer``; ``overwrite`` (output mode complete) appends, as Spark's own sink does."""
        return StreamWriter(self._sink(schema))

    def reader(self, schema: StructType) -> Any:
        """Refused: this is a sink."""
        raise ConfigError('format "forebay" writes only; read with Spark\'s own "kafka" format')

    def schema(self) -> StructType:
        """Refused: this is a sink."""
        raise ConfigError('format "forebay" writes only; read with Spark\'s own "kafka" format')

    def _sink(self, schema: StructType) -> SinkOptions:
        parsed = options.parse(self.options)
        columns.check(schema, parsed.topic)
        return parsed


class _TaskWriter:
    """What both writers share: the part that runs in a task."""

    def __init__(self, sink: SinkOptions) -> None:
        self.sink = sink

    @shown_alone()
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Runs in an executor's Python worker, once a task attempt."""
        from forebay.spark import writer

        return writer.write(iterator, self.sink, task=writer.current_task())


class BatchWriter(_TaskWriter, DataSourceArrowWriter):
    """``df.write.format("forebay").mode("append")``."""

    @shown_alone()
    def commit(self, messages: Messages) -> None:
        """Keeps the counters; the records are in Kafka already."""
        reports = commit.complete(messages)
        if self.sink.metrics_path:
            commit.save(self.sink.metrics_path, reports, add=False)

    def abort(self, messages: Messages) -> None:
        """Says what stays in Kafka; nothing can be taken back."""
        logger.warning("%s", commit.describe_abort(messages))


class StreamWriter(_TaskWriter, DataSourceStreamArrowWriter):
    """``df.writeStream.format("forebay")``."""

    @shown_alone()
    def commit(self, messages: Messages, batchId: int) -> None:
        """Keeps the counters; called again for the same batch after a crash, whose rows were written again."""
        reports = commit.complete(messages)
        if self.sink.metrics_path:
            commit.save(self.sink.metrics_path, reports, add=True, batch_id=batchId)

    def abort(self, messages: Messages, batchId: int) -> None:
        """Says what stays in Kafka; nothing can be taken back."""
        logger.warning("micro-batch %d: %s", batchId, commit.describe_abort(messages))
