"""A job as one frozen value, which ``load`` makes of a job file, and the lines that show it to people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HIDDEN = "[hidden]"
_SECRETS = r"secret|password|passwd|token|credential|(?:access|account).?key|private|jaas|user\.info|\bsas\b"
SECRET = re.compile(_SECRETS, re.IGNORECASE)
"""Names of options, Spark's and others', whose values are not shown; the producer's say it themselves."""
CREDENTIALS = re.compile(r"(?<=//)[^/\s@]+(?=@)")
PARAMETERS = re.compile(rf"([?&;](?:[\w.]*(?:{_SECRETS})[\w.]*)=)[^&;\s]+", re.IGNORECASE)
"""The parameters of a URL, such as that of a database, whose values are not shown."""
TRIGGER_NOW = "available now"
FIELDS = ("key", "value", "headers", "partition", "timestamp", "topic")
"""What a Kafka record has, as columns of the sink."""


@dataclass(frozen=True, slots=True)
class Source:
    """One input; the SQL sees it as a view of this name.  It has one of ``format``, ``table`` and ``sql``."""

    name: str
    format: str | None = None
    path: str | None = None
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    stream: bool = False
    table: str | None = None
    """A table of Spark's catalogue."""
    sql: str | None = None
    """A query over what Spark has without this job, such as ``range(10)`` and tables of a catalogue."""

    def __str__(self) -> str:
        if self.table is not None:
            what = f"table {self.table}"
        elif self.sql is not None:
            what = f"sql {' '.join(self.sql.split())}"
        else:
            what = f"{self.format}{'' if self.path is None else ' ' + self.path}"
        return f"{self.name}: {what}{', as a stream' if self.stream else ''}"


@dataclass(frozen=True, slots=True)
class Stream:
    """How a streaming job runs."""

    checkpoint: str
    trigger: str = TRIGGER_NOW
    """``available now`` (what is there, then end), or an interval such as ``10 seconds``."""
    output_mode: str = "append"
    stop_after_s: float | None = None
    """Seconds after which the stream is stopped; None runs until it ends or is stopped."""
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Encoding:
    """How the bytes of a record's key or value are made."""

    part: str
    """``key`` or ``value``."""
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    """Spark's options of ``to_json`` and ``to_csv``."""
    schema: str | None = None
    """An Avro schema, or a JSON Schema, as text; None makes the Avro schema of the columns."""
    name: str | None = None
    """The full name of the Avro record if there is no schema."""
    descriptor: str | None = None
    """A file that ``protoc --include_imports --descriptor_set_out`` wrote."""
    message: str | None = None
    """The full name of the Protobuf message."""
    exact_times: bool = False
    """Refuses to cut microseconds to milliseconds."""


@dataclass(frozen=True, slots=True)
class Registry:
    """A Schema Registry, and how subjects are named."""

    urls: tuple[str, ...]
    """Without a login."""
    logins: Mapping[str, Any] = field(default_factory=dict)
    """``user:password`` by URL, for those that had it in them; a ``Secret`` each."""
    user_info: Any = None
    """``user:password``, a ``Secret``."""
    token: Any = None
    """A ``Secret``."""
    ca: str | None = None
    """A file with the certificates of trusted authorities, PEM."""
    strategy: str = "TopicNameStrategy"
    register: bool = True
    latest: bool = False

    def __repr__(self) -> str:
        # Passwords are among the values.
        return f"<Registry {', '.join(self.urls)}>"


@dataclass(frozen=True, slots=True)
class Sink:
    """Where rows go, and where counters and the report go."""

    topic: str | None = None
    topics: tuple[str, ...] = ()
    """The topics that the column may name; empty allows any."""
    repartition: bool = False
    dead_letters: str | None = None
    """The topic for rows that cannot be encoded; None lets the job fail."""
    metrics: str | None = None
    report: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the sink other than topic, metrics and the producer's."""


@dataclass(frozen=True, slots=True)
class Job:
    """A whole job, with paths made absolute."""

    path: Path
    name: str
    sources: tuple[Source, ...]
    query: str | None
    function: str | None
    """``module:function``, in place of a query."""
    mapping: Mapping[str, str]
    """SQL expressions by record field."""
    encodings: tuple[Encoding, ...]
    registry: Registry | None
    sink: Sink
    producer: Mapping[str, str]
    master: str | None
    conf: Mapping[str, str]
    stream: Stream | None = None

    def __repr__(self) -> str:
        # Producer options hold passwords.
        return f"<Job {self.name} to {self.sink.topic}: {len(self.sources)} sources>"

    def topics(self) -> tuple[str, ...]:
        """The topics that are known before a row is read."""
        return (self.sink.topic,) if self.sink.topic is not None else self.sink.topics


def job_lines(job: Job) -> Iterator[tuple[str, str]]:
    """(What it is, what it says), from the sources to the sink."""
    for source in job.sources:
        yield "source", without_secrets(str(source))
        yield from _options(f"source {source.name} option", source.options)
    if job.query is not None:
        yield "transform", " ".join(job.query.split())
    elif job.function is not None:
        yield "transform", job.function
    for name, expression in job.mapping.items():
        yield f"map {name}", " ".join(expression.split())
    for one in job.encodings:
        yield f"{one.part} format", _encoding(one)
    if job.registry is not None:
        yield "registry", _registry(job.registry)
    yield from _sink(job)
    for name, value in _producer(job.producer):
        yield f"producer {name}", value
    yield from _options("spark", job.conf)


def _encoding(one: Encoding) -> str:
    exact = ", exact times" if one.exact_times else ""
    if one.format == "protobuf":
        return f"protobuf, message {one.message}"
    if one.format == "avro":
        return f"avro, schema of the {'columns' if one.schema is None else 'job'}{exact}"
    options = ", ".join(f"{name}={value}" for name, value in one.options.items())
    return f"{one.format}{', ' + options if options else ''}{exact}"


def _registry(registry: Registry) -> str:
    login = registry.user_info or registry.logins
    access = ", with a password" if login else ", with a token" if registry.token else ""
    return f"{', '.join(registry.urls)}, {registry.strategy}{access}"


def _sink(job: Job) -> Iterator[tuple[str, str]]:
    yield "topic", job.sink.topic or ", ".join(job.sink.topics) or "of each row"
    if job.sink.dead_letters is not None:
        yield "dead letters", job.sink.dead_letters
    if job.sink.repartition:
        yield "repartition", "kafka"
    yield from _options("sink", job.sink.options)
    if job.stream is not None:
        yield "stream", f"{job.stream.output_mode}, {job.stream.trigger}"
        yield "checkpoint", job.stream.checkpoint


def _producer(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    from forebay.config import ProducerConfig

    # Passwords are values of a class that prints none of them.
    for name, value in ProducerConfig(options).originals().items():
        yield name, HIDDEN if SECRET.search(name) else str(value)


def _options(where: str, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        yield f"{where} {name}", HIDDEN if SECRET.search(name) else without_secrets(value)


def without_secrets(text: str) -> str:
    """A text whose URLs have neither a login nor a password among their parameters."""
    return PARAMETERS.sub(rf"\1{HIDDEN}", CREDENTIALS.sub(HIDDEN, text))
