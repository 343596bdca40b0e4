"""``forebay.spark.repartition``: each Kafka partition in one task, and the same rows as before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from demo.check import partition_of
from forebay.spark import repartition
from forebay.testing import EmbeddedBroker
from tests.spark.conftest import ReadAll

ROWS = 20_000
PARTITIONS = 40


def test_a_partition_is_one_tasks_and_the_producer_agrees(
    spark: Any, broker: EmbeddedBroker, sink: dict[str, str], read_all: ReadAll, metrics: Path
) -> None:
    broker.create_topic("grouped", PARTITIONS)
    options = sink | {"topic": "grouped", "metrics.path": str(metrics)}
    # A null key now and then, and an explicit partition that is not the key's.
    frame = spark.range(ROWS, numPartitions=4).selectExpr(
        "CASE WHEN id % 100 = 0 THEN NULL ELSE concat('key-', id) END AS key",
        "CAST(id AS STRING) AS value",
        "CASE WHEN id % 7 = 0 THEN CAST(id % 5 AS INT) END AS partition",
    )
    assert repartition(frame, options).rdd.getNumPartitions() == spark.sparkContext.defaultParallelism
    grouped = repartition(frame, options, tasks=8)
    assert grouped.rdd.getNumPartitions() == 8
    tasks: dict[int, set[int]] = {}
    for row in grouped.selectExpr("*", "spark_partition_id() AS task").collect():
        if row.key is not None or row.partition is not None:
            where = row.partition if row.partition is not None else partition_of(row.key.encode(), PARTITIONS)
            tasks.setdefault(where, set()).add(row.task)
    assert {where: {where % 8} for where in range(PARTITIONS)} == tasks
    grouped.write.format("forebay").mode("append").options(**options).save()
    assert sorted(int(message.value()) for message in read_all("grouped")) == list(range(ROWS))
    assert json.loads(metrics.read_text())["tasks"] == 8
