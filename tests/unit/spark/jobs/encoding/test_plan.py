"""What the driver decides: schemas, subjects, ids; each schema once, and none in a dry run."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forebay.pipeline import Job, JobError, load
from forebay.spark.jobs.encoding.plan import Planner, cut_by_spark
from forebay.spark.jobs.encoding.registry import SchemaRegistry
from tests.support.ddl import struct
from tests.support.flight_proto import descriptor
from tests.support.registry import FakeRegistry, serving

ROWS = struct("key STRING, value STRUCT<carrier: STRING, number: BIGINT>")
JOB = """
[source]
format = "rate"
[map]
topic = "'a'"
{formats}
[sink]
topics = ["a", "b"]
[producer]
bootstrap.servers = "h:1"
[registry]
url = "{url}"
"""


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with serving() as running:
        yield running


def planner(folder: Path, registry: FakeRegistry, formats: str, **options: Any) -> Planner:
    (folder / "flight.desc").write_bytes(descriptor())
    path = folder / "my-job.toml"
    path.write_text(JOB.format(formats=formats, url=registry.url))
    job: Job = load(path, options.pop("overrides", None))
    assert job.registry is not None
    return Planner(job, SchemaRegistry(job.registry), **options)


AVRO = '[value]\nformat = "avro"'
PROTOBUF = '[value]\nformat = "protobuf"\ndescriptor = "flight.desc"\nmessage = "demo.flights.Flight"'


def test_avro_of_the_columns_is_registered_for_each_topic_on_the_driver(tmp_path: Path, registry: FakeRegistry) -> None:
    notes: list[str] = []
    (part,) = planner(tmp_path, registry, AVRO, note=notes.append).parts(ROWS)
    assert part.prefixes == {"a": b"\0\0\0\0\1", "b": b"\0\0\0\0\1"}
    assert registry.subjects == {"a-value": [1], "b-value": [1]}
    schema = json.loads(registry.schemas[0]["schema"])
    assert (schema["name"], [field["name"] for field in schema["fields"]]) == ("my_job_value", ["carrier", "number"])
    assert notes == ["schema 1 is registered as a-value", "schema 1 is registered as b-value"]


def test_a_record_names_its_subject_if_the_strategy_says_so(tmp_path: Path, registry: FakeRegistry) -> None:
    key = '{"type": "record", "name": "K", "fields": []}'
    formats = f"{AVRO}\nname = 'n.Flight'\n[key]\nformat = 'avro'\nschema = '{key}'"
    overrides = {"registry.subject.name.strategy": "RecordNameStrategy"}
    with pytest.raises(JobError, match=r"\[key\] key is string, which does not fit Avro's record"):
        planner(tmp_path, registry, formats, overrides=overrides).parts(ROWS)
    (part,) = planner(tmp_path, registry, f'{AVRO}\nname = "n.Flight"', overrides=overrides).parts(ROWS)
    assert part.prefixes == {None: b"\0\0\0\0\1"}
    assert list(registry.subjects) == ["n.Flight"]


def test_protobuf_has_the_index_and_its_imports_as_references(tmp_path: Path, registry: FakeRegistry) -> None:
    (part,) = planner(tmp_path, registry, PROTOBUF).parts(ROWS)
    assert part.prefixes is not None and part.prefixes["a"] == b"\0\0\0\0\2\2\2"
    assert registry.subjects == {"common.proto": [1], "a-value": [2], "b-value": [2]}
    assert registry.schemas[1]["references"] == [{"name": "common.proto", "subject": "common.proto", "version": 1}]
    assert registry.schemas[1]["schemaType"] == "PROTOBUF"


def test_a_dry_run_registers_nothing(tmp_path: Path, registry: FakeRegistry) -> None:
    notes: list[str] = []
    for formats in (AVRO, PROTOBUF):
        (part,) = planner(tmp_path, registry, formats, writes=False, note=notes.append).parts(ROWS)
        assert part.prefixes is not None and part.prefixes["a"].startswith(b"\0\0\0\0\0")
    assert registry.subjects == {}
    assert notes[0] == "subject a-value has not this schema yet: a run registers it; the id is shown as 0"


def test_without_registering_the_schema_has_to_be_there(tmp_path: Path, registry: FakeRegistry) -> None:
    overrides = {"registry.auto.register.schemas": "false"}
    with pytest.raises(JobError, match="subject 'a-value' has not this schema, and auto.register.schemas is false"):
        planner(tmp_path, registry, AVRO, overrides=overrides).parts(ROWS)
    planner(tmp_path, registry, AVRO).parts(ROWS)
    (part,) = planner(tmp_path, registry, AVRO, overrides=overrides).parts(ROWS)
    assert part.prefixes == {"a": b"\0\0\0\0\1", "b": b"\0\0\0\0\1"}


def test_the_latest_version_is_the_schema_and_columns_are_held_against_it(
    tmp_path: Path, registry: FakeRegistry
) -> None:
    fields = [{"name": "carrier", "type": "string"}, {"name": "number", "type": "long"}]
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    for topic in "ab":
        registry.add(f"{topic}-value", {"schema": schema})
    overrides = {"registry.use.latest.version": "true"}
    (part,) = planner(tmp_path, registry, AVRO, overrides=overrides).parts(ROWS)
    assert part.encoded({"carrier": "x", "number": 1}, "b") == b"\0\0\0\0\1\2x\2"
    with pytest.raises(JobError, match=r"\[value\] value.extra is a column, but no field of record R"):
        planner(tmp_path, registry, AVRO, overrides=overrides).parts(struct("value STRUCT<extra: INT>"))
    registry.add("b-value", {"schema": '"string"'})
    with pytest.raises(JobError, match="the latest schemas of the topics differ"):
        planner(tmp_path, registry, AVRO, overrides=overrides).parts(ROWS)


def test_json_is_framed_with_the_id_of_its_schema(tmp_path: Path, registry: FakeRegistry) -> None:
    formats = '[value]\nformat = "json"\nschema = \'{"title": "Flight", "type": "object"}\''
    overrides = {"registry.subject.name.strategy": "TopicRecordNameStrategy"}
    (part,) = planner(tmp_path, registry, formats, overrides=overrides).parts(struct("value STRING"))
    assert part.encoded("{}", "a") == b"\0\0\0\0\1{}"
    assert list(registry.subjects) == ["a-Flight", "b-Flight"]
    assert registry.schemas[0]["schemaType"] == "JSON"


def test_without_a_registry_nothing_precedes_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    text = JOB.format(formats=AVRO, url="").partition("[registry]")[0]
    path.write_text(text)
    (part,) = Planner(load(path), None).parts(ROWS)
    assert part.encoded({"carrier": "x", "number": 1}, "a") == b"\2\2x\2\2"


TIMES = struct("value STRUCT<at: TIMESTAMP, local: TIMESTAMP_NTZ>")
MILLIS_JOB = """[value]
format = "avro"
schema = '''{"type": "record", "name": "R", "fields": [
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}}
]}'''
"""


def test_the_plan_says_which_times_are_cut(tmp_path: Path, registry: FakeRegistry) -> None:
    notes: list[str] = []
    planner(tmp_path, registry, MILLIS_JOB, note=notes.append).parts(TIMES)
    assert notes[0] == (
        "[value] value.at (timestamp-millis): microseconds are cut to milliseconds; timestamp-micros keeps them"
    )


def test_with_exact_times_a_row_is_refused(tmp_path: Path, registry: FakeRegistry) -> None:
    notes: list[str] = []
    job = f"{MILLIS_JOB}exact_times = true\n"
    (part,) = planner(tmp_path, registry, job, note=notes.append).parts(TIMES)
    assert notes[0] == "[value] value.at (timestamp-millis): a row with microseconds is refused (exact_times)"
    part = pickle.loads(pickle.dumps(part))
    assert part.encoded({"at": 1_000, "local": 7}, "a") == b"\0\0\0\0\1\2\x0e"
    with pytest.raises(ValueError, match="at: 1001 microseconds are no whole milliseconds"):
        part.encoded({"at": 1_001, "local": 7}, "a")


def test_spark_s_own_formats_cut_times_as_their_options_say() -> None:
    kind = TIMES["value"].dataType
    exact = {"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS", "timestampntzformat": "HH:mm:ss.SSSSSSSSS"}
    assert list(cut_by_spark(kind, "value", {})) == ["value.at (timestampFormat)", "value.local (timestampNTZFormat)"]
    assert list(cut_by_spark(kind, "value", exact)) == []
    deep = struct("value ARRAY<STRUCT<m: MAP<STRING, TIMESTAMP>>>")["value"].dataType
    assert list(cut_by_spark(deep, "value", {})) == ["value[].m[] (timestampFormat)"]
