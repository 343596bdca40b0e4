"""The data source as Spark drives it, without Spark: planner, pickled writer, commit process."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from forebay._runtime.clock import SystemClock
from forebay.errors import ConfigError, IllegalStateError, KafkaTimeoutError
from forebay.spark import ForebayDataSource
from forebay.spark.exactly_once.protocol import Write
from forebay.spark.source import BatchWriter, StreamWriter
from tests.fakes.transactions import World
from tests.unit.spark.test_commit import report

VALUE = StructType([StructField("value", StringType())])


def source(**options: str) -> ForebayDataSource:
    given = {"kafka.bootstrap.servers": "localhost:9092", "topic": "t"} | options
    return ForebayDataSource(CaseInsensitiveDict(given))


def test_the_format_is_called_forebay() -> None:
    assert ForebayDataSource.name() == "forebay"


def test_spark_finds_it_by_the_name_of_a_module() -> None:
    import pyspark_forebay

    assert pyspark_forebay.DefaultSource is ForebayDataSource


@pytest.mark.parametrize("streaming", [False, True])
def test_options_of_a_reader_are_named_once(streaming: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "forebay.spark")
    shared = source(subscribe="t", startingOffsets="earliest", **{"kafka.group.id": "g"})
    (shared.streamWriter if streaming else shared.writer)(VALUE, False)
    ((_, level, words),) = caplog.record_tuples
    assert level == (logging.INFO if streaming else logging.WARNING)
    assert words == "Options of a source are ignored: kafka.group.id, startingoffsets, subscribe"


def test_a_batch_writer_goes_to_the_tasks_and_to_the_commit_as_a_pickle(tmp_path: Path) -> None:
    path = str(tmp_path / "counters.json")
    writer = source(**{"metrics.path": path}).writer(VALUE, False)
    assert isinstance(writer, BatchWriter)
    copy = pickle.loads(pickle.dumps(writer))
    assert copy.sink == writer.sink
    copy.commit([report(rows=3)])
    copy.commit([report(rows=4)])
    assert json.loads(Path(path).read_text())["rows"] == 4


def test_a_stream_writer_is_made_by_keyword_and_adds_up(tmp_path: Path) -> None:
    path = str(tmp_path / "counters.json")
    again = pickle.loads(pickle.dumps(source(**{"metrics.path": path, "checkpointLocation": "c", "queryName": "q"})))
    writer = again.streamWriter(schema=VALUE, overwrite=True)
    assert isinstance(writer, StreamWriter)
    writer.commit([report(rows=3)], 0)
    writer.commit([report(rows=4)], 1)
    assert json.loads(Path(path).read_text())["rows"] == 7


def test_without_a_path_a_commit_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source().writer(VALUE, False).commit([report()])
    assert list(tmp_path.iterdir()) == []


def test_the_continuous_trigger_is_refused_at_its_first_commit() -> None:
    with pytest.raises(IllegalStateError, match=r"trigger\(continuous=...\) is not supported"):
        source().streamWriter(schema=VALUE, overwrite=False).commit([None], 0)


def test_overwrite_is_refused_for_a_batch() -> None:
    with pytest.raises(ConfigError, match="Save mode Overwrite not allowed for Kafka"):
        source().writer(VALUE, True)


def test_columns_are_judged_on_the_driver() -> None:
    numbers = StructType([StructField("value", IntegerType())])
    with pytest.raises(ConfigError, match="value attribute unsupported type int"):
        source().writer(numbers, False)
    with pytest.raises(ConfigError, match="value attribute unsupported type int"):
        source().streamWriter(schema=numbers, overwrite=False)


def test_an_abort_tells_what_stays(caplog: pytest.LogCaptureFixture) -> None:
    source().writer(VALUE, False).abort([report(rows=4), None])
    source().streamWriter(schema=VALUE, overwrite=False).abort([None], 9)
    assert "their 4 records stay in Kafka" in caplog.messages[0]
    assert caplog.messages[1].startswith("micro-batch 9: write aborted: 0 of 1 tasks")


EXACTLY = {"deliveryGuarantee": "exactly-once", "transactionalIdPrefix": "p"}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr("forebay.spark.source.connect", lambda producer, settings: made)
    return made


def test_an_exactly_once_batch_begins_with_its_writer_and_ends_with_its_commit(world: World) -> None:
    writer = pickle.loads(pickle.dumps(source(**EXACTLY, txnAppId="a", txnVersion="4").writer(VALUE, False)))
    assert world.steps == ["claim", "read", "list"]
    outcome = world.task(writer.claim, Write("a", 4), 0, ["row"])
    world.now_ms = SystemClock().wall()
    world.entries[outcome.task.identity.transactional_id].started_ms = world.now_ms
    writer.commit([report(outcome=outcome)])
    assert world.visible == ["row"]
    with pytest.raises(IllegalStateError, match="at least once in a write that is exactly-once"):
        writer.commit([report()])


def test_a_streams_commit_begins_nothing_and_takes_the_claim_of_its_messages(world: World) -> None:
    made = source(**EXACTLY)
    writer = made.streamWriter(VALUE, False)
    claim = writer.claim
    assert claim is not None
    outcome = world.task(claim, Write("query", 0), 0, ["row"])
    world.entries[outcome.task.identity.transactional_id].started_ms = SystemClock().wall()
    committing = pickle.loads(pickle.dumps(made)).streamWriter(schema=VALUE, overwrite=False)
    assert committing.claim is None and world.steps.count("claim") == 1
    committing.commit([report(outcome=outcome)], 0)
    assert world.visible == ["row"]
    with pytest.raises(IllegalStateError, match="in a process where none can begin"):
        committing.write(iter(()))


def test_a_write_that_is_skipped_is_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    for version in (4, 4, 3):
        writer = source(**EXACTLY, txnAppId="a", txnVersion=str(version)).writer(VALUE, False)
        assert writer.claim is not None
        outcome = world.task(writer.claim, Write("a", version), 0, [])
        writer.commit([report(outcome=outcome)])
    assert caplog.messages[0].startswith("Write a/4 was committed before: it is skipped")
    assert caplog.messages[1].startswith("Write a/3 is skipped, because write a/4 was committed before. A txnVersion")


def test_an_abort_of_an_exactly_once_write_takes_its_rows_back(world: World, caplog: pytest.LogCaptureFixture) -> None:
    writer = source(**EXACTLY).writer(VALUE, False)
    assert writer.claim is not None
    outcome = world.task(writer.claim, Write("a", 1), 0, ["row"])
    writer.abort([report(outcome=outcome), None])
    assert caplog.messages == ["write aborted: 1 transactions were aborted, no row of it will be read"]
    assert world.visible == [] and world.ongoing("p-") == []


def test_an_abort_that_fails_says_so_and_hides_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    writer = source(**EXACTLY).writer(VALUE, False)

    def away(name: str) -> None:
        raise KafkaTimeoutError("no broker")

    world.before_step = away
    writer.abort([None])
    assert "stay open until the next write or their timeout, because of no broker" in caplog.messages[0]


def test_reading_is_refused() -> None:
    with pytest.raises(ConfigError, match="writes only"):
        source().reader(VALUE)
    with pytest.raises(ConfigError, match="writes only"):
        source().schema()
