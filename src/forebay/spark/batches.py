"""A function for ``foreachBatch``: the sink with what Spark refuses to a Python sink, output mode update above all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from forebay.errors import ConfigError
from forebay.spark.exactly_once.settings import APP, EXACTLY_ONCE, GUARANTEE, VERSION
from forebay.spark.options import parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY_ID = "sql.streaming.queryId"
"""Spark's local property of the thread that runs a stream's micro-batches."""


class WriteBatches:
    """Writes each micro-batch; made by ``write_batches``.  It holds options alone, so it can be pickled."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options: dict[str, str] = dict(options)
        given = {name.lower(): name for name in self.options}
        if VERSION.lower() in given:
            raise ConfigError(f"Option '{VERSION}' is the micro-batch's number here; leave it out")
        self._exactly = self.options.get(given.get(GUARANTEE.lower(), ""), "").strip() == EXACTLY_ONCE
        self._named = APP.lower() in given
        needed = {} if self._named else {APP: "of the query"}
        parse({**self.options, **needed, VERSION: "0"} if self._exactly else self.options)

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Writes one micro-batch, as ``frame.write.format("forebay").save()`` does."""
        options = self.options
        if self._exactly:
            options = {**options, VERSION: str(batch_id)}
            if not self._named:
                options[APP] = _query_of(frame)
        frame.write.format("forebay").mode("append").options(**options).save()

    def __repr__(self) -> str:
        # Passwords are among the values.
        return f"write_batches({', '.join(sorted(self.options))})"


def write_batches(options: Mapping[str, str]) -> WriteBatches:
    """What ``DataStreamWriter.foreachBatch`` calls with each micro-batch: ``(df, batch_id)``.

    With ``deliveryGuarantee=exactly-once`` a micro-batch that Spark repeats adds nothing: its number is the version of
    the write (``txnVersion``), and the query's id the application.  On Spark Connect a function of ``foreachBatch`` is
    not told the query's id.  Give the option ``txnAppId`` there, and another one whenever the checkpoint is a new one.

    Args:
        options: those of the sink.

    Raises:
        ConfigError: as the sink, at once.
    """
    return WriteBatches(options)


def _query_of(frame: DataFrame) -> str:
    context = getattr(frame.sparkSession, "_sc", None)
    found = None if context is None else context.getLocalProperty(QUERY_ID)
    if not found:
        raise ConfigError(
            f"The query's id cannot be had here (Spark Connect, or no micro-batch): give the option '{APP}', a name "
            "that belongs to this query and its checkpoint alone"
        )
    return str(found)
