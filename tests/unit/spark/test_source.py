"""The data source as Spark drives it, without Spark: planner, pickled writer, commit process."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from forebay.errors import ConfigError, IllegalStateError
from forebay.spark import ForebayDataSource
from forebay.spark.source import BatchWriter, StreamWriter
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


def test_reading_is_refused() -> None:
    with pytest.raises(ConfigError, match="writes only"):
        source().reader(VALUE)
    with pytest.raises(ConfigError, match="writes only"):
        source().schema()
