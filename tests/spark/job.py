"""A program of a user: one batch write and one stream on the cluster that its argument names.

Run as ``python -m tests.spark.job JSON``.  The cluster needs nothing of this module.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf


def place() -> Any:
    """A column that says in which folder a task ran, and from which file it had the package."""

    # Within this function, so that it is pickled by its code and not by the name of this module.
    @udf("string")
    def told() -> str:
        import os

        import forebay

        return f"{os.getcwd()}|{forebay.__file__}"

    return told.asNondeterministic()()


def main(work: dict[str, Any]) -> None:
    """Writes ``rows`` numbers to the topic ``batch`` and the lines of a folder to the topic ``stream``."""
    builder = SparkSession.builder
    builder = builder.remote(work["remote"]) if "remote" in work else builder.master(work["master"])
    for key, value in work["conf"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    servers = {"kafka.bootstrap.servers": work["servers"]}
    rows = spark.range(0, work["rows"], 1, 4).withColumn("place", place())
    rows.selectExpr(
        "concat('key-', id) AS key",
        "CAST(id AS STRING) AS value",
        "map('place', CAST(place AS BINARY)) AS headers",
    ).write.format("forebay").mode("append").options(**servers, topic=work["batch"]).save()
    lines = spark.readStream.schema("value STRING").text(work["folder"])
    query = (
        lines.writeStream.format("forebay")
        .options(**servers, topic=work["stream"], checkpointLocation=work["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(work["limit_s"])
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
