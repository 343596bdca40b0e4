"""``df.write.format("forebay")`` on a real Spark, read back by a consumer that is not ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from demo.check import partition_of
from forebay.spark import ForebayDataSource
from forebay.testing import EmbeddedBroker
from tests.spark.conftest import ReadAll
from tests.support.pace import within_ms


def write(frame: Any, options: dict[str, str], mode: str = "append") -> None:
    frame.write.format("forebay").mode(mode).options(**options).save()


def failure(frame: Any, options: dict[str, str], mode: str = "append") -> str:
    with pytest.raises(Exception) as caught:
        write(frame, options, mode)
    return str(caught.value)


def test_every_column_arrives_and_the_format_needs_no_registration(
    spark: Any, sink: dict[str, str], topic: str, read_all: ReadAll, metrics: Path
) -> None:
    frame = spark.range(5000, numPartitions=3).selectExpr(
        "CASE WHEN id % 7 = 0 THEN NULL ELSE concat('key-', id) END AS key",
        "CASE WHEN id % 11 = 0 THEN NULL ELSE CAST(concat('value-', id) AS BINARY) END AS value",
        """CASE WHEN id % 5 = 0 THEN NULL ELSE array(
             named_struct('key', 'n', 'value', CAST(CAST(id AS STRING) AS BINARY)),
             named_struct('key', 'none', 'value', CAST(NULL AS BINARY))) END AS headers""",
        "timestamp_micros(id * 1001) AS timestamp",
        "id AS ignored",
    )
    write(frame, sink | {"metrics.path": str(metrics), "includeHeaders": "true"})
    messages = read_all(topic)
    rows = {(m.timestamp()[1], m.key(), m.value(), tuple(m.headers() or ())) for m in messages}
    expected = set()
    for i in range(5000):
        headers = () if i % 5 == 0 else (("n", str(i).encode()), ("none", None))
        key = None if i % 7 == 0 else b"key-%d" % i
        expected.add((i * 1001 // 1000, key, None if i % 11 == 0 else b"value-%d" % i, headers))
    assert len(messages) == 5000
    assert rows == expected
    for message in messages:
        if message.key() is not None:
            assert message.partition() == partition_of(message.key(), 3)
    counters = json.loads(metrics.read_text())
    assert (counters["rows"], counters["acknowledged"], counters["tasks"]) == (5000, 5000, 3)
    assert sum(counters["partitions"].values()) == 5000
    assert counters["bytes_sent"] > 0


def test_an_explicit_partition_wins_over_the_key(
    spark: Any, sink: dict[str, str], topic: str, read_all: ReadAll
) -> None:
    write(spark.range(300).selectExpr("'k' AS key", "'v' AS value", "CAST(id % 3 AS INT) AS partition"), sink)
    counts = [0, 0, 0]
    for message in read_all(topic):
        counts[message.partition()] += 1
    assert counts == [100, 100, 100]


def test_a_topic_column_spreads_rows_over_topics_and_the_option_overrides_it(
    spark: Any, broker: EmbeddedBroker, sink: dict[str, str], topic: str, read_all: ReadAll
) -> None:
    names = [f"{topic}-{i}" for i in range(3)]
    for name in names:
        broker.create_topic(name, 2)
    frame = spark.range(900).selectExpr(f"concat('{topic}-', id % 3) AS topic", "CAST(id AS STRING) AS value")
    write(frame, {key: value for key, value in sink.items() if key != "topic"})
    for at, name in enumerate(names):
        assert sorted(int(m.value()) for m in read_all(name)) == list(range(at, 900, 3))
    write(frame, sink)
    assert len(read_all(topic)) == 900


def test_empty_frames_and_empty_partitions_write_nothing(
    spark: Any, sink: dict[str, str], topic: str, read_all: ReadAll, metrics: Path
) -> None:
    write(spark.range(0).selectExpr("'v' AS value"), sink | {"metrics.path": str(metrics)})
    assert json.loads(metrics.read_text())["rows"] == 0
    write(spark.range(1, numPartitions=4).selectExpr("'v' AS value"), sink)
    assert len(read_all(topic)) == 1


def test_bad_frames_are_refused_before_a_task_starts(spark: Any, sink: dict[str, str]) -> None:
    assert "value attribute unsupported type bigint; it must be STRING or BINARY. Remedy:" in failure(
        spark.range(1).selectExpr("id AS value"), sink
    )
    assert "Required attribute 'value' not found. Columns: id" in failure(spark.range(1), sink)
    values = spark.range(1).selectExpr("'v' AS value")
    no_topic = {key: value for key, value in sink.items() if key != "topic"}
    assert "topic option required when no 'topic' attribute is present" in failure(values, no_topic)
    assert "did you mean 'topic'" in failure(values, sink | {"topics": "x"})
    assert "Save mode Overwrite not allowed for Kafka" in failure(values, sink, "overwrite")


def test_long_partitions_days_times_without_a_zone_and_maps_of_headers_are_taken(
    spark: Any, sink: dict[str, str], topic: str, read_all: ReadAll
) -> None:
    frame = spark.range(2).selectExpr(
        "CAST(id AS STRING) AS value",
        "id AS partition",
        "DATE'2020-01-02' AS timestamp",
        "map('h', CAST('x' AS BINARY)) AS headers",
    )
    write(frame, sink)
    write(frame.selectExpr("value", "partition", "TIMESTAMP_NTZ'2020-01-02 00:00:00.001' AS timestamp"), sink)
    found = sorted((m.timestamp()[1], m.partition(), m.value(), m.headers()) for m in read_all(topic))
    day = 1577923200000
    assert found == [
        (day, 0, b"0", [("h", b"x")]),
        (day, 1, b"1", [("h", b"x")]),
        (day + 1, 0, b"0", None),
        (day + 1, 1, b"1", None),
    ]
    assert "Invalid partition: 4294967296" in failure(frame.selectExpr("value", "4294967296 AS partition"), sink)


def test_an_error_is_a_sentence_and_no_page(spark: Any, sink: dict[str, str]) -> None:
    values = spark.range(1).selectExpr("'v' AS value")
    refused = failure(values, sink | {"topics": "x"})
    block_ms = within_ms(500)
    failed = failure(values, sink | {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.max.block.ms": str(block_ms)})
    assert "ConfigError: Unknown option 'topics'; did you mean 'topic'?" in refused.splitlines()[0]
    assert f"not present in metadata after {block_ms} ms" in failed.splitlines()[-1]
    for text in (refused, failed):
        assert "Traceback" not in text and len(text.splitlines()) <= 3


def test_a_null_topic_fails_the_job_with_a_hint(spark: Any, sink: dict[str, str]) -> None:
    frame = spark.range(2).selectExpr("CAST(NULL AS STRING) AS topic", "'v' AS value")
    text = failure(frame, {key: value for key, value in sink.items() if key != "topic"})
    assert "null topic present in the data" in text
    assert "Use the option 'topic'" in text


def test_a_record_over_max_request_size_fails_the_job_and_names_the_row(spark: Any, sink: dict[str, str]) -> None:
    frame = spark.range(10, numPartitions=1).selectExpr("repeat('x', IF(id = 7, 5000, 5)) AS value")
    text = failure(frame, sink | {"kafka.max.request.size": "2000"})
    assert "row=7" in text
    assert "max.request.size" in text


def test_a_partition_that_is_not_there_fails_the_job(spark: Any, sink: dict[str, str]) -> None:
    frame = spark.range(1).selectExpr("'v' AS value", "9 AS partition")
    text = failure(frame, sink | {"kafka.max.block.ms": str(within_ms(1000))})
    assert "9" in text
    assert "partition" in text.lower()


def test_a_broker_that_is_not_there_fails_the_job_in_time(spark: Any, sink: dict[str, str], topic: str) -> None:
    options = sink | {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.max.block.ms": "1500"}
    text = failure(spark.range(1).selectExpr("'v' AS value"), options)
    assert topic in text
    assert "1500 ms" in text


def test_the_first_failed_delivery_fails_the_task_with_the_reason(
    spark: Any, broker: EmbeddedBroker, sink: dict[str, str], topic: str
) -> None:
    from forebay.errors import TopicAuthorizationError

    broker.push_partition_errors(topic, 0, 0, *[TopicAuthorizationError] * 20)
    frame = spark.range(100).selectExpr("'v' AS value", "0 AS partition")
    text = failure(frame, sink)
    assert "rows were not acknowledged" in text
    assert "TopicAuthorizationError" in text


def test_the_sink_is_no_source(spark: Any) -> None:
    spark.dataSource.register(ForebayDataSource)
    with pytest.raises(Exception, match="writes only"):
        spark.read.format("forebay").load().count()


@pytest.fixture
def table(spark: Any, sink: dict[str, str], topic: str) -> Iterator[str]:
    """A table of SQL's with the sink's options."""
    name = topic.replace("-", "_")
    given = ", ".join(f"'{key}' '{value}'" for key, value in sink.items())
    spark.sql(f"CREATE TABLE {name} (value STRING) USING forebay OPTIONS ({given})")
    yield name
    spark.sql(f"DROP TABLE {name}")


def test_sql_cannot_insert_because_spark_keeps_the_options_and_the_error_says_so(spark: Any, table: str) -> None:
    with pytest.raises(AnalysisException, match=r"SQL's INSERT INTO cannot work: use df\.write\.format"):
        spark.sql(f"INSERT INTO {table} VALUES ('x')")
    with pytest.raises(AnalysisException, match=r"SQL's INSERT INTO cannot work: use df\.write\.format"):
        spark.sql("SELECT 'x' AS value").write.insertInto(table)


def test_a_table_is_written_by_its_name_with_the_options_beside_it(
    spark: Any, sink: dict[str, str], topic: str, table: str, read_all: ReadAll
) -> None:
    spark.sql("SELECT 'x' AS value").writeTo(table).options(**sink).append()
    assert [message.value() for message in read_all(topic)] == [b"x"]
