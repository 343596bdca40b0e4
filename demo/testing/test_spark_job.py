"""A Spark job that writes a DataFrame: its rows are read back from the embedded broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from forebay.testing import ReadRecord


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def write_orders(orders: DataFrame, servers: str, topic: str) -> None:
    """The job under test."""
    rows = orders.select(F.col("customer").alias("key"), F.to_json(F.struct("customer", "amount")).alias("value"))
    options = {"kafka.bootstrap.servers": servers, "topic": topic}
    rows.write.format("forebay").options(**options).mode("append").save()


@pytest.mark.kafka_topic(partitions=2)
def test_orders_are_written(
    spark: SparkSession,
    kafka_config: dict[str, Any],
    kafka_topic: str,
    kafka_records: Callable[..., list[ReadRecord]],
) -> None:
    orders = spark.createDataFrame([("ada", 41), ("bob", 42), ("ada", 43)], "customer string, amount int")
    write_orders(orders, kafka_config["bootstrap.servers"], kafka_topic)
    found = kafka_records()
    assert sorted((record.key or b"", record.value or b"") for record in found) == [
        (b"ada", b'{"customer":"ada","amount":41}'),
        (b"ada", b'{"customer":"ada","amount":43}'),
        (b"bob", b'{"customer":"bob","amount":42}'),
    ]
    # One key is always in one partition.
    assert len({record.partition for record in found if record.key == b"ada"}) == 1
