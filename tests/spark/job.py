"""A program of a user: one batch write and one stream on the cluster that its argument names.

Run as ``python -m tests.spark.job JSON``.  The cluster needs nothing of this module.
"""

from __future__ import annotations

import json
import sys
import time
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


def guarantee(work: dict[str, Any], kind: str) -> dict[str, str]:
    """The topic of one of the two writes, and the options of an exactly-once one."""
    options: dict[str, str] = {"topic": work[kind]}
    if work.get("exactly_once"):
        options |= {"deliveryGuarantee": "exactly-once", "transactionalIdPrefix": work[kind]}
    return options


def wait_until_no_executor_is_left(spark: Any, limit_s: float) -> None:
    """Of dynamic allocation: idle ones end, and the next write gets others."""
    limit = time.monotonic() + limit_s
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() > 1:  # the driver is one of them
        assert time.monotonic() < limit, "executors that are idle stay"
        time.sleep(0.05)


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
    ).write.format("forebay").mode("append").options(**servers, **guarantee(work, "batch")).save()
    if work.get("drain"):
        wait_until_no_executor_is_left(spark, work["limit_s"])
    lines = spark.readStream.schema("value STRING").option("maxFilesPerTrigger", 1).text(work["folder"])
    query = (
        lines.writeStream.format("forebay")
        .options(**servers, **guarantee(work, "stream"), checkpointLocation=work["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(work["limit_s"])
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
