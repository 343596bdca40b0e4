"""Rows to tasks by the Kafka partition that they will go to, so that a task has few partitions and fills their batches.

A data source in Python gets its rows as they are split already, so this is a step of the user's before the write.  It
costs a shuffle, and a look at each key in a Python worker.  That is more than fuller batches save, in each case that
docs/measurements.md has.  It is for brokers that a request costs more than those.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from forebay.errors import ConfigError
from forebay.spark.options import parse

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Counter = Callable[[Mapping[str, str], str], int]

OTHER_PLACES = ("partitioner.class", "partitioner.ignore.keys")
"""Options by which a key does not say the partition."""


def count_partitions(producer: Mapping[str, str], topic: str) -> int:
    """How many partitions the topic has, asked of the cluster.

    Raises:
        KafkaError: no answer within max.block.ms.
    """
    from forebay.producer import KafkaProducer

    # With all options: any of them may be needed to reach the brokers.
    with KafkaProducer(dict(producer)) as asking:
        return len(asking.partitions_for(topic))


def repartition(
    frame: DataFrame,
    options: Mapping[str, str],
    *,
    partitions: int | None = None,
    tasks: int | None = None,
    counter: Counter = count_partitions,
) -> DataFrame:
    """The same rows, those of a Kafka partition in one task.

    A row goes by its ``partition`` if that is not null, else by its ``key`` as the producer's partitioner does; rows
    with neither are spread by their value.

    Args:
        frame: columns as the sink takes them.
        options: those of the write: ``topic`` and ``kafka.bootstrap.servers`` at least.
        partitions: of the topic; None asks the cluster from this process.
        tasks: None takes as many as run at a time, if Spark tells, but no more than the topic has partitions.

    Raises:
        ConfigError: no single topic, or an option by which keys do not say the partition.
        KafkaError: the cluster did not tell the number of partitions.
    """
    sink = parse({name: value for name, value in options.items() if name.lower() != "repartition"})
    producer = dict(sink.producer)
    if sink.topic is None:
        raise ConfigError("repartition needs the option 'topic': topics of a column differ in their partitions")
    for name in OTHER_PLACES:
        if producer.get(name, "false").lower() != "false":
            raise ConfigError(f"repartition cannot tell a key's partition with the option 'kafka.{name}'")
    if partitions is None:
        partitions = counter(producer, sink.topic)
    if tasks is None:
        tasks = min(partitions, _at_a_time(frame.sparkSession))
    if partitions < 1 or tasks < 1:
        raise ConfigError(f"repartition needs at least one partition and one task, not {partitions} and {tasks}")
    return frame.repartitionById(tasks, _task_of(frame, partitions, tasks))


def _at_a_time(session: SparkSession) -> int:
    # A task of one Kafka partition alone would send requests of one batch each, and costs as much to start as others.
    if session.conf.get("spark.dynamicAllocation.enabled", "false") != "true":
        with contextlib.suppress(PySparkException):  # Spark Connect has no context
            return int(session.sparkContext.defaultParallelism)
    # Executors come and go, or nobody tells.
    return int(session.conf.get("spark.sql.shuffle.partitions") or 1)


def _task_of(frame: DataFrame, partitions: int, tasks: int) -> Column:
    from pyspark.sql import functions as F

    places = []
    if "partition" in frame.columns:
        places.append(F.col("partition").cast("int"))
    if "key" in frame.columns:
        places.append(F.nullif(_of_keys(partitions)(F.col("key")), F.lit(-1)))
    spread = F.pmod(F.xxhash64(F.col("value")), F.lit(partitions)).cast("int")
    return F.pmod(F.coalesce(*places, spread), F.lit(tasks)).cast("int")


def _of_keys(partitions: int) -> Any:
    from pyspark.sql.pandas.functions import arrow_udf

    def of_keys(keys: Any) -> Any:
        # Runs in a task.
        import pyarrow as pa

        from forebay.producer._columns import key_partitions

        return pa.array(key_partitions(keys, partitions), pa.int32())

    # By its hints, if they could be read; an annotation is text here.
    of_keys.__annotations__ = {}
    return arrow_udf(of_keys, "int")  # type: ignore[call-overload]
