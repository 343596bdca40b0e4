"""Exactly-once writes from Spark to a real Kafka, judged by a ``read_committed`` consumer that is not ours."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from forebay.admin import AdminClient
from forebay.spark import write_batches
from forebay.spark.exactly_once import protocol
from tests.spark.committed import assert_exactly, committed_rows, digest
from tests.support.pace import HANG_S
from tools.kafka import RealKafka


@pytest.fixture
def place(kafka: RealKafka, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:80]
    kafka.create_topic(name, 3)
    return name


@pytest.fixture
def options(kafka: RealKafka, place: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "topic": place,
        "deliveryGuarantee": "exactly-once",
        "transactionalIdPrefix": place,
    }


def rows(spark: Any, begin: int, end: int, tasks: int = 4) -> Any:
    return spark.range(begin, end, 1, tasks).selectExpr("CAST(id AS STRING) AS key", "concat('value-', id) AS value")


def expected(begin: int, end: int) -> Counter[tuple[bytes, str]]:
    return Counter((b"%d" % row, digest(b"value-%d" % row)) for row in range(begin, end))


def write(frame: Any, options: dict[str, str], **more: str) -> None:
    frame.write.format("forebay").mode("append").options(**options, **more).save()


def test_a_repeated_batch_with_its_id_adds_nothing_and_the_next_version_does(
    spark: Any, kafka: RealKafka, place: str, options: dict[str, str], metrics: Path
) -> None:
    write(rows(spark, 0, 1000), options, txnAppId="daily", txnVersion="1")
    write(rows(spark, 0, 1000), options, txnAppId="daily", txnVersion="1", **{"metrics.path": str(metrics)})
    assert json.loads(metrics.read_text())["rows"] == 0
    write(rows(spark, 1000, 1500), options, txnAppId="daily", txnVersion="2")
    assert_exactly(kafka.bootstrap_servers, place, expected(0, 1500))
    with AdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        last = admin.read_tail(f"__{place}_spark_commits")[0]
        assert admin.list_transactions(states=["Ongoing"], prefix=place) == []
    state = protocol.decode(last.value)
    assert state.decision is not None and state.decision.done
    assert (state.decision.write, sum(task.rows for task in state.decision.tasks)) == (("daily", 2), 500)


def test_without_an_id_each_write_is_a_new_one(
    spark: Any, kafka: RealKafka, place: str, options: dict[str, str]
) -> None:
    for _ in range(2):
        write(rows(spark, 0, 10), options)
    assert set(committed_rows(kafka.bootstrap_servers, place).values()) == {2}


def test_a_job_that_fails_leaves_nothing_to_read_and_nothing_open(
    spark: Any, kafka: RealKafka, place: str, options: dict[str, str]
) -> None:
    failing = rows(spark, 0, 1000).selectExpr("key", "IF(key = '900', raise_error('row 900'), value) AS value")
    with pytest.raises(Exception, match="row 900"):
        write(failing, options)
    write(rows(spark, 0, 100), options)
    assert_exactly(kafka.bootstrap_servers, place, expected(0, 100))


def test_each_micro_batch_is_there_once_also_if_spark_repeats_it(
    spark: Any, kafka: RealKafka, place: str, options: dict[str, str], tmp_path: Path
) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()

    def run(**trigger: Any) -> None:
        lines = spark.readStream.schema("value STRING").text(str(folder))
        lines = lines.selectExpr("substring_index(value, '-', -1) AS key", "value")
        writer = lines.writeStream.format("forebay").options(**options, checkpointLocation=str(state))
        query = writer.trigger(**trigger).start()
        if "processingTime" in trigger:
            query.processAllAvailable()
            query.stop()
        assert query.awaitTermination(HANG_S), "it ends by itself"

    # All triggers that a Python sink can have.
    triggers: list[dict[str, Any]] = [{"availableNow": True}, {"once": True}, {"processingTime": "100 milliseconds"}]
    for number, trigger in enumerate(triggers):
        text = "".join(f"value-{row}\n" for row in range(number * 100, number * 100 + 100))
        (folder / f"{number}.txt").write_text(text)
        run(**trigger)
    assert_exactly(kafka.bootstrap_servers, place, expected(0, 300))
    for trigger in triggers:
        # As if the driver had died before Spark noted the last micro-batch.
        for entry in (state / "commits").iterdir():
            if entry.name.strip(".").startswith("2"):
                entry.unlink()
        run(**trigger)
        assert (state / "commits" / "2").exists(), "it was repeated"
    assert_exactly(kafka.bootstrap_servers, place, expected(0, 300))


def test_what_is_missing_is_refused_at_once_with_the_remedy(spark: Any, options: dict[str, str]) -> None:
    without = {key: value for key, value in options.items() if key != "transactionalIdPrefix"}
    with pytest.raises(Exception, match="needs the option 'transactionalIdPrefix'"):
        write(rows(spark, 0, 1), without)
    with pytest.raises(Exception, match="'txnVersion' needs the option 'txnAppId'"):
        write(rows(spark, 0, 1), options, txnVersion="1")
    with pytest.raises(Exception, match="set deliveryGuarantee=exactly-once"):
        write(rows(spark, 0, 1), options, **{"kafka.transactional.id": "x"})


def test_the_fingerprint_is_sparks_own_hash(spark: Any) -> None:
    import pyarrow as pa

    from forebay.producer._columns import fingerprint, sink_columns

    values = [f"{'x' * size}{size}" for size in range(0, 200, 7)]
    frame = spark.createDataFrame([(value,) for value in values], "value STRING")
    null_key = 0x6E756C6C
    # A key that is null is the seed of the value; Spark's own function has the seed 42.
    theirs = [row[0] & (2**64 - 1) for row in frame.selectExpr("xxhash64(value)").collect()]
    from forebay._runtime.xxhash64 import xxhash64

    assert theirs == [xxhash64(42, value.encode(), len(value)) for value in values]
    seed = xxhash64(null_key, b"", 0)
    batch = pa.RecordBatch.from_pydict({"value": values})
    ours = sum(xxhash64(seed, value.encode(), len(value)) for value in values) & (2**64 - 1)
    assert fingerprint(sink_columns(batch, "t")) == ours


def test_output_mode_update_by_foreach_batch_is_exactly_once(
    spark: Any, kafka: RealKafka, place: str, options: dict[str, str], tmp_path: Path
) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()

    def run() -> None:
        words = spark.readStream.schema("word STRING").text(str(folder))
        counts = words.groupBy("word").count().selectExpr("word AS key", "concat('value-', count) AS value")
        query = counts.writeStream.outputMode("update").option("checkpointLocation", str(state))
        query.foreachBatch(write_batches(options)).trigger(availableNow=True).start().awaitTermination(HANG_S)

    (folder / "1.txt").write_text("a\nb\na\n")
    run()
    (folder / "2.txt").write_text("b\nb\n")
    run()
    wanted = Counter([(b"a", digest(b"value-2")), (b"b", digest(b"value-1")), (b"b", digest(b"value-3"))])
    assert_exactly(kafka.bootstrap_servers, place, wanted)
    for entry in (state / "commits").iterdir():
        if entry.name.strip(".").startswith("1"):
            entry.unlink()
    run()
    assert_exactly(kafka.bootstrap_servers, place, wanted)
