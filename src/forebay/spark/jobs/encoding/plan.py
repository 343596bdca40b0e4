"""The driver's side: from a job's formats and the columns to what tasks do, with every schema registered once.

JSON and CSV are made by Spark's own functions.  Avro, Protobuf and the framing are made in the tasks, and the ids of
all schemas travel with the function.  Dead letters are rows of the same write with another topic: one pass, and the
same guarantee.  The roads not taken: a second write for them, which computes the rows twice; and files, which a
repeated or killed task would leave behind.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forebay.serializers.rows.avro import AvroEncoder
from forebay.spark.jobs.encoding import avro, protobuf
from forebay.spark.jobs.encoding.protobuf import ProtobufEncoder
from forebay.spark.jobs.encoding.registry import SchemaRegistry, prefix_of, subject_of
from forebay.spark.jobs.encoding.rows import Part, RowStep
from forebay.spark.jobs.job import Encoding, Job
from forebay.spark.jobs.table import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

SPARK_KEEPS = "the option in brackets keeps them, as yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
HEADERS = "ARRAY<STRUCT<key: STRING, value: BINARY>>"
Note = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """One schema as a registry has to have it."""

    kind: str
    """AVRO, PROTOBUF or JSON."""
    schema: str
    record: Callable[[], str]
    encoder: ProtobufEncoder | None = None


class Planner:
    """Plans the step of one job.

    Args:
        registry: None if the job has none.
        writes: False only looks schemas up; what is not there is told to ``note`` and gets the id 0.
        note: takes a line for people.
    """

    def __init__(
        self, job: Job, registry: SchemaRegistry | None, *, writes: bool = True, note: Note = lambda line: None
    ) -> None:
        self._job = job
        self._registry = registry
        self._writes = writes
        self._note = note

    def apply(self, frame: DataFrame) -> DataFrame:
        """The mapped rows with bytes for keys and values, and with dead letters among them.

        Raises:
            JobError: a format does not fit its column, or a schema cannot be registered.
        """
        frame = self._by_functions(frame)
        kept = self.parts(frame.schema)
        sink = self._job.sink
        if not kept and sink.dead_letters is None and not sink.topics:
            return frame
        if sink.dead_letters is not None:
            frame = self._with_places(frame)
        step = RowStep(
            parts=kept,
            job=self._job.name,
            topic=None if "topic" in frame.columns and (sink.topic is None or sink.dead_letters) else sink.topic,
            topics=sink.topics,
            dead_letters=sink.dead_letters,
        )
        return frame.mapInArrow(step, _with_bytes(frame.schema, {part.name for part in kept}))

    def parts(self, schema: StructType) -> tuple[Part, ...]:
        """What the tasks have to do to keys and values; schemas are registered here.

        Args:
            schema: of the mapped rows.

        Raises:
            JobError: as ``apply``.
        """
        parts = [self._part(one, schema) for one in self._job.encodings]
        return tuple(part for part in parts if part.encoder is not None or part.prefixes is not None)

    def _by_functions(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F
        from pyspark.sql import types as T

        made = {"json": F.to_json, "csv": F.to_csv}
        for one in self._job.encodings:
            if one.part not in frame.columns:
                raise JobError(f"[{one.part}] has a format, but there is no {one.part}: add {one.part} to [map]")
            kind = frame.schema[one.part].dataType
            if one.format != "csv":
                avro.check_names(kind, one.part)
            if one.format == "raw" and not isinstance(kind, (T.StringType, T.BinaryType)):
                raise JobError(
                    f"[{one.part}] format 'raw' needs STRING or BINARY, not {kind.simpleString()}; "
                    f"cast it in [map], or take another format"
                )
            if one.format in made:
                wanted = (
                    (T.StructType,) if one.format == "csv" else (T.StructType, T.MapType, T.ArrayType, T.VariantType)
                )
                if not isinstance(kind, wanted):
                    raise JobError(
                        f"[{one.part}] format {one.format!r} needs a struct, not {kind.simpleString()}: "
                        f'[map] {one.part} = "struct(a, b)"'
                    )
                self._tell_cut(one, list(cut_by_spark(kind, one.part, one.options)), SPARK_KEEPS)
                text = made[one.format](F.col(one.part), dict(one.options))
                frame = frame.withColumn(one.part, text)
        return frame

    def _with_places(self, frame: DataFrame) -> DataFrame:
        """Dead letters go to a topic of their own and have headers, so these must be columns."""
        from pyspark.sql import functions as F
        from pyspark.sql import types as T

        if self._job.sink.topic is not None:
            frame = frame.withColumn("topic", F.lit(self._job.sink.topic))
        if "headers" not in frame.columns:
            return frame.withColumn("headers", F.lit(None).cast(HEADERS))
        if isinstance(frame.schema["headers"].dataType, T.MapType):
            return frame.withColumn("headers", F.map_entries(F.col("headers")).cast(HEADERS))
        return frame

    def _part(self, one: Encoding, schema: StructType) -> Part:
        kind = schema[one.part].dataType
        if one.format == "avro":
            return self._avro(one, kind)
        if one.format == "protobuf":
            assert one.descriptor is not None and one.message is not None
            message = ProtobufEncoder(_content(one.descriptor, one.part), one.message)
            protobuf.check(message, kind, one.part)
            own = message.file()
            subject = Subject("PROTOBUF", _base64(own.content), message.record_name, message)
            return Part(one.part, message, self._prefixes(one, subject, message.index()))
        if one.schema is None and not (one.format == "json" and self._latest()):
            return Part(one.part)
        return Part(one.part, None, self._prefixes(one, Subject("JSON", one.schema or "", lambda: _title(one))))

    def _latest(self) -> bool:
        return self._job.registry is not None and self._job.registry.latest

    def _avro(self, one: Encoding, kind: Any) -> Part:
        if one.schema is not None:
            schema = avro.from_text(one.schema, one.part)
        elif self._latest():
            schema = self._newest_avro(one)
        else:
            schema = avro.derived(kind, one.name or _avro_name(f"{self._job.name}_{one.part}"), path=one.part)
        avro.check(schema, kind, one.part)
        cut = avro.cut_times(schema, kind, one.part)
        if not one.exact_times:
            self._tell_cut(one, cut, "timestamp-micros keeps them")
        elif cut:
            self._note(f"[{one.part}] {', '.join(cut)}: a row with microseconds is refused (exact_times)")
        encoder = AvroEncoder(schema, avro.kind_of(kind), exact_times=one.exact_times)
        text = json.dumps(schema, separators=(",", ":"))
        return Part(one.part, encoder, self._prefixes(one, Subject("AVRO", text, partial(avro.record_name, schema))))

    def _tell_cut(self, one: Encoding, cut: list[str], remedy: str) -> None:
        """Says which times lose their microseconds, or refuses the job for it."""
        if not cut:
            return
        said = f"[{one.part}] {', '.join(cut)}: microseconds are cut to milliseconds; {remedy}"
        if one.exact_times:
            raise JobError(f"{said}; exact_times is on")
        self._note(said)

    def _newest_avro(self, one: Encoding) -> Any:
        assert self._registry is not None and self._job.registry is not None
        strategy = self._job.registry.strategy
        if strategy != "TopicNameStrategy":
            raise JobError(f"[{one.part}] has no schema, and {strategy} needs its name: give schema or schema_file")
        found = {self._registry.latest(f"{topic}-{one.part}") for topic in self._job.topics()}
        if len({each.schema for each in found}) > 1:
            raise JobError(f"[{one.part}] the latest schemas of the topics differ: give schema or schema_file")
        newest = found.pop()
        if newest.references:
            raise JobError(f"[{one.part}] the latest schema refers to others: give schema_file with all of it")
        return avro.from_text(newest.schema, one.part)

    def _prefixes(self, one: Encoding, schema: Subject, index: bytes = b"") -> Mapping[str | None, bytes] | None:
        if self._registry is None or self._job.registry is None:
            return None
        strategy = self._job.registry.strategy
        topics: tuple[str | None, ...] = (None,) if strategy == "RecordNameStrategy" else self._job.topics()
        found: dict[str | None, bytes] = {}
        for topic in topics:
            subject = subject_of(strategy, topic, one.part, schema.record)
            found[topic] = prefix_of(self._id(subject, schema)) + index
        return found

    def _id(self, subject: str, schema: Subject) -> int:
        registry, options = self._registry, self._job.registry
        assert registry is not None and options is not None
        if options.latest:
            return registry.latest(subject).id
        references = self._references(schema.encoder, None)
        if options.register and self._writes:
            number = registry.register(subject, schema.schema, schema.kind, references)
            self._note(f"schema {number} is registered as {subject}")
            return number
        there = registry.lookup(subject, schema.schema, schema.kind, references)
        if there is not None:
            return there.id
        if options.register:
            self._note(f"subject {subject} has not this schema yet: a run registers it; the id is shown as 0")
            return 0
        raise JobError(f"[registry] subject {subject!r} has not this schema, and auto.register.schemas is false")

    def _references(self, encoder: ProtobufEncoder | None, name: str | None) -> list[Mapping[str, Any]]:
        """The files that a Protobuf file imports, each registered under its own name, as Confluent's clients do."""
        if encoder is None:
            return []
        registry, options = self._registry, self._job.registry
        assert registry is not None and options is not None
        references: list[Mapping[str, Any]] = []
        for imported in encoder.file(name).imports:
            content = _base64(encoder.file(imported).content)
            inner = self._references(encoder, imported)
            if options.register and self._writes:
                registry.register(imported, content, "PROTOBUF", inner)
            there = registry.lookup(imported, content, "PROTOBUF", inner)
            if there is None and self._writes:
                raise JobError(f"[registry] subject {imported!r} has not the file that {name or 'the message'} imports")
            references.append({"name": imported, "subject": imported, "version": there.version if there else 0})
        return references


def _with_bytes(schema: StructType, names: set[str]) -> StructType:
    from pyspark.sql.types import BinaryType, StructField, StructType

    fields = [
        StructField(field.name, BinaryType() if field.name in names else field.dataType, True)
        for field in schema.fields
    ]
    return StructType(fields)


def cut_by_spark(kind: Any, path: str, options: Mapping[str, str]) -> Iterator[str]:
    """The times in a struct that Spark's JSON and CSV write with milliseconds, which is their default."""
    from pyspark.sql import types as T

    given = {name.lower(): pattern for name, pattern in options.items()}
    inner: list[tuple[Any, str]] = []
    if isinstance(kind, T.StructType):
        inner = [(field.dataType, f"{path}.{field.name}") for field in kind.fields]
    elif isinstance(kind, T.ArrayType):
        inner = [(kind.elementType, f"{path}[]")]
    elif isinstance(kind, T.MapType):
        inner = [(kind.keyType, f"{path} (key)"), (kind.valueType, f"{path}[]")]
    for each, where in inner:
        yield from cut_by_spark(each, where, options)
    for of_times, option in ((T.TimestampType, "timestampFormat"), (T.TimestampNTZType, "timestampNTZFormat")):
        if isinstance(kind, of_times) and "SSSSSS" not in given.get(option.lower(), ""):
            yield f"{path} ({option})"


def _avro_name(text: str) -> str:
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return f"_{name}" if name[0].isdigit() else name


def _title(one: Encoding) -> str:
    """The name of a JSON Schema, which is its title."""
    try:
        title = json.loads(one.schema or "{}").get("title")
    except (ValueError, AttributeError):
        raise JobError(f"[{one.part}] schema is not a JSON object") from None
    if not isinstance(title, str):
        raise JobError(f"[{one.part}] the JSON Schema has no title, which subject.name.strategy needs")
    return title


def _content(path: str, part: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise JobError(f"[{part}] descriptor {path!r} cannot be read: {error.strerror}") from None


def _base64(content: bytes) -> str:
    return base64.standard_b64encode(content).decode()
