"""The jobs in ``demo/`` on their real data, every record read back and compared with the CSV files."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from demo import data
from demo.check import partition_of
from forebay.pipeline import run
from forebay.testing import EmbeddedBroker
from tests.spark.conftest import ReadAll
from tests.support.registry import FakeRegistry, serving

pytestmark = pytest.mark.rest("jobs that users read: the sink's own tests go the same ways")

DEMO = Path(data.__file__).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The demo's jobs, without data."""
    for file in DEMO.iterdir():
        if file.suffix in (".toml", ".avsc", ".py"):
            shutil.copy(file, tmp_path)
    return tmp_path


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with serving() as running:
        yield running


def rows_of(path: Path) -> list[dict[str, str | None]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: None if value == "NA" else value for name, value in row.items()} for row in csv.DictReader(file)]


def number(text: str | None) -> int | None:
    return None if text is None else int(text)


def ran(folder: Path, name: str, spark: Any, broker: EmbeddedBroker, **more: str) -> Any:
    overrides = {"producer.bootstrap.servers": broker.bootstrap_servers, **more}
    result = run(folder / f"{name}.toml", spark, overrides=overrides)
    assert result.error is None, result.error
    return result.counters


def test_origins_json_to_a_topic_for_each_airport(
    spark: Any, folder: Path, broker: EmbeddedBroker, read_all: ReadAll
) -> None:
    data.unpack(folder)
    expected: dict[str, Counter[Any]] = defaultdict(Counter)
    for row in rows_of(folder / "flights.csv"):
        if row["month"] == "1":
            values = tuple(number(row[name]) for name in ("flight", "dep_delay", "arr_delay", "distance"))
            expected[f"flights-{row['origin']}"][(row["carrier"], row["tailnum"], row["dest"], *values)] += 1
    for topic in expected:
        broker.create_topic(topic, 3)
    assert ran(folder, "origins", spark, broker)["acknowledged"] == 27_004
    for topic, rows in expected.items():
        read: Counter[Any] = Counter()
        for message in read_all(topic):
            value = json.loads(message.value())
            assert message.key().decode() == f"{value['carrier']}{value['flight']}"
            assert message.partition() == partition_of(message.key(), 3)
            tailnum = value["tailnum"]
            assert message.headers() == [("tailnum", None if tailnum is None else tailnum.encode())]
            names = ("carrier", "tailnum", "dest", "flight", "dep_delay", "arr_delay", "distance")
            read[tuple(value[name] for name in names)] += 1
        assert read == rows


def test_planes_in_avro_with_a_registry_and_dead_letters(
    spark: Any, folder: Path, broker: EmbeddedBroker, read_all: ReadAll, registry: FakeRegistry
) -> None:
    shutil.copy(data.packaged_folder() / "planes.csv", folder)
    broker.create_topic("planes", 8)
    broker.create_topic("planes-dead", 1)
    rows = {row["tailnum"]: row for row in rows_of(folder / "planes.csv")}
    undated = {tailnum for tailnum, row in rows.items() if row["year"] is None}
    counters = ran(folder, "planes", spark, broker, **{"registry.url": registry.url})
    assert (counters["acknowledged"], counters["dead_letters"]) == (len(rows), len(undated)) == (3322, 70)
    read = AvroDeserializer(SchemaRegistryClient({"url": registry.url}))
    planes = {}
    for message in read_all("planes"):
        value = read(message.value(), SerializationContext("planes", MessageField.VALUE))
        planes[message.key().decode()] = {name: None if one is None else str(one) for name, one in value.items()}
    assert planes == {tailnum: row for tailnum, row in rows.items() if tailnum not in undated}
    letters = {letter.key().decode(): letter for letter in read_all("planes-dead")}
    assert set(letters) == undated
    for tailnum, letter in letters.items():
        assert json.loads(letter.value())["model"] == rows[tailnum]["model"]
        headers = dict(letter.headers())
        assert b"Field(demo.flights.Plane.year) is None expected int" in headers["dead-letter.error"]
        assert (headers["dead-letter.topic"], headers["dead-letter.job"]) == (b"planes", b"planes")


def test_weather_a_stream_of_months_into_days(
    spark: Any, folder: Path, broker: EmbeddedBroker, read_all: ReadAll
) -> None:
    data.split_weather(folder / "weather")
    broker.create_topic("weather", 3)
    hours: dict[tuple[str, str], list[str | None]] = defaultdict(list)
    for file in (folder / "weather").iterdir():
        for row in rows_of(file):
            hours[(str(row["origin"]), str(row["time_hour"])[:10])].append(row["temp"])
    counters = ran(folder, "weather", spark, broker, **{"sink.report": str(folder / "weather.html")})
    assert len([one for one in counters["history"] if one["rows"]]) >= 11
    read = {}
    for message in read_all("weather"):
        value = json.loads(message.value())
        assert message.key().decode() == value["origin"]
        read[(value["origin"], value["day"][:10])] = value
    # The last day or two wait for hours that may still come.
    newest = max(day for _, day in hours)
    missing = set(hours) - set(read)
    assert (
        set(read) <= set(hours)
        and all(day >= "2013-12-29" for _, day in missing)
        and newest not in {day for _, day in read}
    )
    for place, value in read.items():
        known = [float(temp) for temp in hours[place] if temp is not None]
        assert value["hours"] == len(hours[place])
        assert value["temp"] == pytest.approx(sum(known) / len(known), abs=0.006)
    text = (folder / "weather.html").read_text()
    assert "trigger to commit (Spark)" in text
    again = ran(folder, "weather", spark, broker)
    assert again["rows"] == counters["rows"]  # a restart finds nothing new
