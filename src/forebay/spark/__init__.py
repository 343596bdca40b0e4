"""``df.write.format("forebay")`` and ``df.writeStream.format("forebay")``: DataFrames into Kafka, no jars needed.

Columns and options are those of Spark's own Kafka sink; the format's name and ``.mode("append")`` change.  This
package is imported in four kinds of Spark processes for each job, so it stays light: the producer is imported
where rows are written, in a task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay._runtime.extras import of_extra

with of_extra(__name__, "spark"):
    from forebay.spark.batches import write_batches
    from forebay.spark.failure import reason
    from forebay.spark.repartition import repartition
    from forebay.spark.source import ForebayDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ForebayDataSource", "reason", "register", "repartition", "write_batches"]


def __dir__() -> list[str]:
    return sorted(__all__)


def register(session: SparkSession) -> None:
    """Registers the format with ``session``; needed only where Spark's own look-up of ``pyspark_*`` fails."""
    session.dataSource.register(ForebayDataSource)
