"""Formats of a job, read back by confluent-kafka's deserializers and others that share nothing with the writer."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import avro.io
import avro.schema
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from forebay.pipeline import PipelineResult, load, run
from forebay.spark.jobs.preview import preview
from forebay.testing import EmbeddedBroker
from tests.spark.conftest import ReadAll
from tests.support.flight_proto import descriptor
from tests.support.registry import FakeRegistry, serving

JOB = """
[source]
sql = '''
SELECT * FROM VALUES ("AA", 1L, true), ("UA", 2L, false), (CAST(NULL AS STRING), 3L, NULL) AS t (carrier, number, late)
'''
[map]
key = "carrier"
{rest}
[sink]
{sink}
[producer]
bootstrap.servers = "{servers}"
linger.ms = 5
"""
AVRO = '[value]\nformat = "avro"\n'
# A field that may not be null, for rows that cannot be encoded.
STRICT = """
[value]
format = "avro"
schema = '''{"type": "record", "name": "F", "fields": [
  {"name": "carrier", "type": "string"}, {"name": "number", "type": "long"},
  {"name": "late", "type": ["null", "boolean"]}
]}'''
"""


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with serving() as running:
        running.user_info = "u:secret"
        yield running


@pytest.fixture
def job_of(tmp_path: Path, broker: EmbeddedBroker, topic: str) -> Any:
    def make(rest: str, sink: str = "") -> Path:
        path = tmp_path / "job.toml"
        path.write_text(JOB.format(rest=rest, sink=sink or f'topic = "{topic}"', servers=broker.bootstrap_servers))
        return path

    return make


def registry_table(registry: FakeRegistry) -> str:
    return f'[registry]\nurl = "{registry.url}"\nbasic.auth.user.info = "u:secret"\n'


def client(registry: FakeRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url, "basic.auth.user.info": "u:secret"})


def ran(result: PipelineResult) -> Any:
    assert result.error is None, result.error
    return result.counters


def test_avro_with_a_registry_is_read_by_confluents_deserializer(
    spark: Any, job_of: Any, topic: str, read_all: ReadAll, registry: FakeRegistry
) -> None:
    counters = ran(run(job_of(AVRO + '[key]\nformat = "avro"\n' + registry_table(registry)), spark))
    assert counters["acknowledged"] == 3
    registered = [path for method, path in registry.requests if method == "POST"]
    assert sorted(registered) == [f"/subjects/{topic}-key/versions", f"/subjects/{topic}-value/versions"]
    read = AvroDeserializer(client(registry))
    context = SerializationContext(topic, MessageField.VALUE)
    rows = {message.key(): read(message.value(), context) for message in read_all(topic)}
    keys = {
        None if key is None else read(key, SerializationContext(topic, MessageField.KEY)): rows[key] for key in rows
    }
    assert keys == {
        "AA": {"carrier": "AA", "number": 1, "late": True},
        "UA": {"carrier": "UA", "number": 2, "late": False},
        None: {"carrier": None, "number": 3, "late": None},
    }


def test_protobuf_with_a_registry_is_read_by_confluents_deserializer(
    spark: Any, job_of: Any, topic: str, read_all: ReadAll, registry: FakeRegistry, tmp_path: Path
) -> None:
    (tmp_path / "flight.desc").write_bytes(descriptor())
    rest = '[value]\nformat = "protobuf"\ndescriptor = "flight.desc"\nmessage = "demo.flights.Flight"\n'
    ran(run(job_of(rest + registry_table(registry)), spark))
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor()).file:
        pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("demo.flights.Flight"))
    read = ProtobufDeserializer(kind, {"use.deprecated.format": False}, client(registry))
    context = SerializationContext(topic, MessageField.VALUE)
    rows = [read(message.value(), context) for message in read_all(topic)]
    assert sorted((row.number, row.carrier, row.late) for row in rows) == [
        (1, "AA", True),
        (2, "UA", False),
        (3, "", False),
    ]


def test_json_csv_and_raw(spark: Any, job_of: Any, topic: str, read_all: ReadAll) -> None:
    ran(run(job_of('[value]\nformat = "json"\noptions = { ignoreNullFields = false }\n'), spark))
    ran(run(job_of('value = "struct(number, late)"\n[value]\nformat = "csv"\noptions = { sep = ";" }\n'), spark))
    ran(run(job_of('value = "CAST(number AS STRING)"\n[value]\nformat = "raw"\n'), spark))
    values = sorted(message.value().decode() for message in read_all(topic) if message.key() is None)
    assert values == ["3", "3;", '{"carrier":null,"number":3,"late":null}']


def test_a_row_that_cannot_be_encoded_fails_the_job_and_says_which(spark: Any, job_of: Any) -> None:
    result = run(job_of(STRICT), spark)
    assert (result.exit_code, result.counters) == (1, {})
    assert result.error is not None and "\n" not in result.error
    assert result.error.startswith("write: row ") and "of Spark partition" in result.error
    assert "its value cannot be encoded as avro: Field(F.carrier) is None expected string. The row: {" in result.error
    assert '"number": 3' in result.error


def test_with_a_topic_for_dead_letters_the_other_rows_are_written(
    spark: Any, job_of: Any, topic: str, broker: EmbeddedBroker, read_all: ReadAll
) -> None:
    broker.create_topic(f"{topic}-dead", 1)
    sink = f'topic = "{topic}"\ndead_letters = "{topic}-dead"'
    counters = ran(run(job_of("headers = \"map('h', X'31')\"\n" + STRICT, sink), spark))
    assert (counters["acknowledged"], counters["dead_letters"]) == (3, 1)
    assert sorted(message.key() for message in read_all(topic)) == [b"AA", b"UA"]
    (letter,) = read_all(f"{topic}-dead")
    headers = dict(letter.headers())
    assert json.loads(letter.value()) == {"carrier": None, "number": 3, "late": None}
    assert headers["h"] == b"1" and headers["dead-letter.topic"] == topic.encode()
    assert headers["dead-letter.job"] == b"job" and b"is None expected string" in headers["dead-letter.error"]


def test_several_topics_by_column_and_one_that_is_not_listed(
    spark: Any, job_of: Any, topic: str, broker: EmbeddedBroker, read_all: ReadAll
) -> None:
    for end in ("AA", "UA", "dead"):
        broker.create_topic(f"{topic}-{end}", 1)
    sink = f'topics = ["{topic}-AA", "{topic}-UA"]\ndead_letters = "{topic}-dead"'
    rest = f"topic = \"concat('{topic}-', coalesce(carrier, 'none'))\"\n[value]\nformat = \"json\"\n"
    assert ran(run(job_of(rest, sink), spark))["dead_letters"] == 1
    assert [json.loads(message.value())["number"] for message in read_all(f"{topic}-UA")] == [2]
    (letter,) = read_all(f"{topic}-dead")
    assert letter.value() == b'{"number":3}'
    error = dict(letter.headers())["dead-letter.error"].decode()
    assert error == f"its topic is '{topic}-none', and [sink] topics are {topic}-AA, {topic}-UA"


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ('value = "number"\n[value]\nformat = "json"\n', r"\[value\] format 'json' needs a struct, not bigint"),
        ('value = "number"\n[value]\nformat = "raw"\n', r"\[value\] format 'raw' needs STRING or BINARY, not bigint"),
        (AVRO + "schema = '\"string\"'\n", r"\[value\] value is struct<.*>, which does not fit Avro's string"),
        (AVRO + '[registry]\nurl = "http://127.0.0.1:9"\n', r"\[registry\] no answer: http://127.0.0.1:9: .*refuses"),
        (
            '[value]\nformat = "json"\n[transform]\nfunction = "nothing_like_it:f"\n',
            "cannot be imported: ModuleNotFound",
        ),
    ],
)
def test_what_does_not_fit_is_one_line_before_anything_is_written(
    spark: Any, job_of: Any, rest: str, message: str, read_all: ReadAll, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    result = run(job_of(rest), spark)
    assert result.exit_code == 1
    with pytest.raises(AssertionError, match=message):
        ran(result)
    assert read_all(topic) == []


def test_a_function_with_a_user_defined_function_in_its_module(
    spark: Any, job_of: Any, topic: str, read_all: ReadAll, tmp_path: Path
) -> None:
    (tmp_path / "doubling.py").write_text(
        "from pyspark.sql.functions import udf\n\n\n"
        "def twice(number):\n    return number * 2\n\n\n"
        'def rows(source):\n    return source.select("carrier", udf(twice, "long")("number").alias("twice"))\n'
    )
    ran(run(job_of('[value]\nformat = "json"\n[transform]\nfunction = "doubling:rows"\n'), spark))
    assert sorted(json.loads(message.value())["twice"] for message in read_all(topic)) == [2, 4, 6]


def test_a_dry_run_shows_records_and_writes_and_registers_nothing(
    spark: Any, job_of: Any, topic: str, read_all: ReadAll, registry: FakeRegistry
) -> None:
    text = preview(load(job_of(AVRO + registry_table(registry))), spark)
    lines = text.splitlines()
    assert lines[0] == "job job" and "  value format                 avro, schema of the columns" in lines
    assert f"  subject {topic}-value has not this schema yet: a run registers it; the id is shown as 0" in lines
    assert sum(line.startswith("record ") for line in lines) == 3
    assert f"  topic        {topic}" in lines and "  key          AA" in lines and "  key          null" in lines
    schema = json.dumps({"type": "record", "name": "n", "fields": [
        {"name": "carrier", "type": ["null", "string"]}, {"name": "number", "type": ["null", "long"]},
        {"name": "late", "type": ["null", "boolean"]},
    ]})  # fmt: skip
    shown = next(line for line in lines if line.startswith("  value        00 00 00 00 00"))
    data = bytes.fromhex(shown.partition("value")[2].partition("(")[0])[5:]
    found: Any = avro.io.DatumReader(avro.schema.parse(schema)).read(avro.io.BinaryDecoder(io.BytesIO(data)))
    assert found["number"] in (1, 2, 3)
    assert "secret" not in text
    assert read_all(topic) == [] and registry.subjects == {}


def test_the_report_of_a_run(spark: Any, job_of: Any, topic: str, tmp_path: Path) -> None:
    ran(run(job_of(AVRO, f'topic = "{topic}"\nreport = "run.html"\nrepartition = "kafka"'), spark))
    text = (tmp_path / "run.html").read_text()
    assert "<b>3</b>acknowledged" in text and "Rows over time" in text and f"<h3>{topic}</h3>" in text
    assert len(text) < 60_000 and "<script" not in text


MOMENTS = """value = "named_struct('at', {at}, 't', {text})"
[value]
format = "avro"
exact_times = {exact}
schema = '''{{"type": "record", "name": "R", "fields": [
  {{"name": "at", "type": {{"type": "long", "logicalType": "timestamp-millis"}}}}, {{"name": "t", "type": "string"}}
]}}'''
"""


def test_rows_that_only_their_values_make_unfit_are_dead_letters(
    spark: Any, job_of: Any, topic: str, read_all: ReadAll
) -> None:
    """A row with microseconds, one whose text is none, and one in the year 10000, which is fit."""
    at = "timestamp_micros(CASE number WHEN 1 THEN 1001 ELSE 253402318799000000 END)"
    text = "CASE number WHEN 2 THEN CAST(X'ff' AS STRING) ELSE 'x' END"
    sink = f'topic = "{topic}"\ndead_letters = "{topic}-dead"'
    counters = ran(run(job_of(MOMENTS.format(at=at, text=text, exact="true"), sink), spark))
    assert (counters["acknowledged"], counters["dead_letters"]) == (3, 2)
    (good,) = read_all(topic)
    plain = avro.schema.parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "at", "type": "long"}]}))
    found = avro.io.DatumReader(plain).read(avro.io.BinaryDecoder(io.BytesIO(good.value())))
    assert found == {"at": 253_402_318_799_000}
    letters = {message.key(): message for message in read_all(f"{topic}-dead")}
    why = {key: dict(message.headers())["dead-letter.error"].decode() for key, message in letters.items()}
    assert "at: 1001 microseconds are no whole milliseconds" in why[b"AA"]
    assert r"t: b'\xff' is no text in UTF-8" in why[b"UA"]
    assert json.loads(letters[b"AA"].value()) == {"at": "1970-01-01T00:00:00.001001Z", "t": "x"}
    assert json.loads(letters[b"UA"].value()) == {"at": "+10000-01-01T04:59:59.000000Z", "t": "\ufffd"}


def test_the_plan_says_what_is_cut_and_an_option_refuses_it(spark: Any, job_of: Any, topic: str) -> None:
    said: list[str] = []
    moments = MOMENTS.format(at="timestamp_micros(number * 1001)", text="'x'", exact="false")
    ran(run(job_of(moments), spark, report=said.append))
    line = "[value] value.at (timestamp-millis): microseconds are cut to milliseconds; timestamp-micros keeps them"
    assert line in said and line in preview(load(job_of(moments)), spark)
    moments = 'value = "named_struct(\'at\', timestamp_micros(number))"\n[value]\nformat = "json"\n'
    plan = preview(load(job_of(moments)), spark)
    assert "[value] value.at (timestampFormat): microseconds are cut to milliseconds" in plan
    assert '"at":"1970-01-01T00:00:00.000Z"' in plan
    refused = run(job_of(f"{moments}exact_times = true\n"), spark)
    assert refused.error is not None and "exact_times is on" in refused.error
    pattern = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
    plan = preview(load(job_of(f'{moments}exact_times = true\noptions = {{ timestampFormat = "{pattern}" }}\n')), spark)
    assert "are cut" not in plan and '"at":"1970-01-01T00:00:00.000001Z"' in plan


def test_two_of_one_name_are_refused_before_a_row_is_written(spark: Any, job_of: Any, topic: str) -> None:
    for form in ("json", "avro"):
        rest = f"value = \"named_struct('a', 1, 'a', 2)\"\n[value]\nformat = \"{form}\"\n"
        error = run(job_of(rest), spark).error
        assert error is not None and "[value] field 'value.a' is there more than once" in error
