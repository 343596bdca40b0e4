"""The job file: TOML in, one frozen value out, every mistake one line that names the file and the place.

Nothing here needs Spark or Java, so a bad file costs milliseconds and not the start of a session.
"""

from __future__ import annotations

import difflib
import glob
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forebay.errors import ConfigError

SECTIONS = ("job", "source", "sources", "sql", "map", "sink", "producer", "spark", "stream")
ALLOWED: dict[str, tuple[str, ...]] = {
    "job": ("name",),
    "source": ("format", "path", "schema", "options", "stream", "name"),
    "sources.<name>": ("format", "path", "schema", "options", "stream"),
    "sql": ("query", "file"),
    "map": ("key", "value", "headers", "partition", "timestamp", "topic"),
    "sink": ("topic", "metrics"),
    "spark": ("master", "conf"),
    "stream": ("checkpoint", "trigger", "name"),
}
DEFAULT_VIEW = "source"
TRIGGER_NOW = "available now"


class JobError(ConfigError):
    """The job file, or what it names, is not right; one line."""


@dataclass(frozen=True, slots=True)
class Source:
    """One input; the SQL sees it as a view of this name."""

    name: str
    format: str
    path: str | None = None
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Stream:
    """How a streaming job runs."""

    checkpoint: str
    trigger: str = TRIGGER_NOW
    """``available now`` (what is there, then end), or an interval such as ``10 seconds``."""
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A whole job, with paths made absolute."""

    path: Path
    name: str
    sources: tuple[Source, ...]
    query: str | None
    mapping: Mapping[str, str]
    """SQL expressions by record field."""
    topic: str | None
    metrics: str | None
    producer: Mapping[str, str]
    master: str | None
    conf: Mapping[str, str]
    stream: Stream | None = None

    def __repr__(self) -> str:
        # Producer options hold passwords.
        return f"<Job {self.name} to {self.topic}: {len(self.sources)} sources>"


def load(path: str | os.PathLike[str], overrides: Mapping[str, str] | None = None) -> Job:
    """Reads a job file.

    Args:
        path: the file; paths inside it are relative to its folder.
        overrides: values that replace the file's, by place: ``producer.bootstrap.servers``, ``sink.topic``,
            ``spark.master``, ``sources.flights.path`` ...

    Raises:
        JobError: no such file, bad TOML (with line and column), an unknown or missing key, a missing input.
    """
    file = Path(path)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise JobError(f"job file {str(path)!r} does not exist") from None
    except OSError as error:
        raise JobError(f"job file {str(path)!r} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise JobError(f"{file}: not TOML: {error}") from None
    for place, value in (overrides or {}).items():
        _override(document, place, value)
    try:
        return _Reader(file.resolve()).job(document)
    except JobError as error:
        raise JobError(f"{file}: {error}") from None


def _override(document: dict[str, Any], place: str, value: str) -> None:
    # Option names have dots of their own: only the sections' depth is split off.
    section, _, rest = place.partition(".")
    inside: dict[str, Any] = document
    keys = [section]
    if section == "sources":
        name, _, rest = rest.partition(".")
        keys.append(name)
    head, _, tail = rest.partition(".")
    if section in ("spark", "source", "sources") and head in ("conf", "options") and tail:
        keys.append(head)
        rest = tail
    if not rest:
        raise JobError(f"cannot set {place!r}: give section.key, such as producer.bootstrap.servers or sink.topic")
    for key in keys:
        inside = inside.setdefault(key, {})
        if not isinstance(inside, dict):
            raise JobError(f"cannot set {place!r}: {key!r} is not a table")
    inside[rest] = value


class _Reader:
    """Walks a parsed document; ``where`` in messages is the table's name as it stands in the file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def job(self, document: dict[str, Any]) -> Job:
        _known(document, SECTIONS, "the file")
        head = self._table(document, "job")
        query = self._query(document)
        sink = self._table(document, "sink")
        spark = self._table(document, "spark")
        sources = self._sources(document, "stream" in document)
        mapping = self._texts(self._table(document, "map"), "map", ALLOWED["map"])
        if query is None and len(sources) > 1:
            raise JobError(f'{len(sources)} sources need a query: add [sql] query = "SELECT ..."')
        topic = self._text(sink, "topic", "sink")
        if topic is None and "topic" not in mapping:
            raise JobError("no topic: set topic in [sink], or an expression for topic in [map]")
        metrics = self._text(sink, "metrics", "sink")
        return Job(
            path=self._file,
            name=self._text(head, "name", "job") or self._file.stem,
            sources=sources,
            query=query,
            mapping=mapping,
            topic=topic,
            metrics=None if metrics is None else self._local(metrics),
            producer=self._producer(document),
            master=self._text(spark, "master", "spark"),
            conf=self._options(spark, "conf", "spark.conf"),
            stream=self._stream(document, sources),
        )

    def _sources(self, document: dict[str, Any], streaming: bool) -> tuple[Source, ...]:
        if "source" in document and "sources" in document:
            raise JobError("[source] and [sources.<name>] exclude each other: name them all")
        if "source" in document:
            return (self._source(self._table(document, "source"), None, "source", streaming),)
        named = document.get("sources")
        if not isinstance(named, dict) or not named:
            raise JobError("no source: add [source] with format and path, or [sources.<name>] for several")
        return tuple(
            self._source(self._inner(named, name, f"sources.{name}"), name, f"sources.{name}", streaming)
            for name in named
        )

    def _source(self, table: dict[str, Any], name: str | None, where: str, streaming: bool) -> Source:
        _known(table, ALLOWED["source" if name is None else "sources.<name>"], f"[{where}]")
        form = self._text(table, "format", where)
        if form is None:
            raise JobError(f"[{where}] has no format, such as csv, json, parquet")
        path = self._text(table, "path", where)
        stream = table.get("stream", streaming)
        if not isinstance(stream, bool):
            raise JobError(f"[{where}] stream must be true or false, not {stream!r}")
        if stream and not streaming:
            raise JobError(f"[{where}] is a stream, so the job needs a [stream] table with a checkpoint")
        return Source(
            name=name or self._text(table, "name", where) or DEFAULT_VIEW,
            format=form,
            path=None if path is None else self._input(path, where),
            schema=self._text(table, "schema", where),
            options=self._options(table, "options", f"{where}.options"),
            stream=stream,
        )

    def _query(self, document: dict[str, Any]) -> str | None:
        table = self._table(document, "sql")
        query, file = self._text(table, "query", "sql"), self._text(table, "file", "sql")
        if query is not None and file is not None:
            raise JobError("[sql] has query and file; give one")
        if file is None:
            if query is None and "sql" in document:
                raise JobError("[sql] has neither query nor file")
            return query
        path = Path(self._local(file))
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise JobError(f"[sql] file {str(path)!r} cannot be read: {error.strerror}") from None

    def _producer(self, document: dict[str, Any]) -> Mapping[str, str]:
        if not isinstance(document.get("producer", {}), dict):
            raise JobError("[producer] must be a table of producer options")
        options = _flatten(document.get("producer", {}), "producer")
        if "bootstrap.servers" not in options:
            raise JobError('[producer] has no "bootstrap.servers", such as "localhost:9092"')
        from forebay.config import ProducerConfig

        try:
            ProducerConfig(options)
        except ConfigError as error:
            raise JobError(f"[producer] {error}") from None
        return options

    def _stream(self, document: dict[str, Any], sources: tuple[Source, ...]) -> Stream | None:
        if "stream" not in document:
            return None
        table = self._table(document, "stream")
        checkpoint = self._text(table, "checkpoint", "stream")
        if checkpoint is None:
            raise JobError("[stream] has no checkpoint: the folder that a restart goes on from")
        if not any(source.stream for source in sources):
            raise JobError("[stream] is given, but no source has stream = true")
        trigger = self._text(table, "trigger", "stream") or TRIGGER_NOW
        return Stream(self._local(checkpoint), trigger, self._text(table, "name", "stream"))

    def _table(self, document: dict[str, Any], name: str) -> dict[str, Any]:
        table = self._inner(document, name, name) if name in document else {}
        _known(table, ALLOWED[name], f"[{name}]")
        return table

    @staticmethod
    def _inner(document: dict[str, Any], name: str, where: str) -> dict[str, Any]:
        table = document[name]
        if not isinstance(table, dict):
            raise JobError(f"{where} must be a table [{where}], not {table!r}")
        return table

    @staticmethod
    def _text(table: dict[str, Any], key: str, where: str) -> str | None:
        value = table.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise JobError(f"[{where}] {key} must be a text that is not empty, not {value!r}")
        return value

    def _texts(self, table: dict[str, Any], where: str, keys: tuple[str, ...]) -> Mapping[str, str]:
        found = {key: self._text(table, key, where) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def _options(self, table: dict[str, Any], key: str, where: str) -> Mapping[str, str]:
        value = table.get(key, {})
        if not isinstance(value, dict):
            raise JobError(f"[{where}] must be a table of options, not {value!r}")
        return _flatten(value, where)

    def _local(self, path: str) -> str:
        return path if "://" in path else str((self._file.parent / Path(path).expanduser()).absolute())

    def _input(self, path: str, where: str) -> str:
        local = self._local(path)
        if "://" not in local and not glob.glob(local):
            raise JobError(f"[{where}] path {local!r} does not exist")
        return local


def _known(table: Mapping[str, Any], allowed: tuple[str, ...], where: str) -> None:
    for key in table:
        if key in allowed:
            continue
        near = difflib.get_close_matches(key, allowed, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise JobError(f"unknown key {key!r} in {where}{hint} Allowed: {', '.join(allowed)}")


def _flatten(table: Mapping[str, Any], where: str, prefix: str = "") -> dict[str, str]:
    """Options as text; ``linger.ms = 5`` without quotes is a nested table in TOML and means the same."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, where, f"{prefix}{key}.")
        elif isinstance(value, bool):
            flat[prefix + key] = "true" if value else "false"
        elif isinstance(value, (str, int, float)):
            flat[prefix + key] = str(value)
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            flat[prefix + key] = ",".join(value)
        else:
            raise JobError(f"[{where}] {prefix}{key} must be a text, number, true or false, not {value!r}")
    return flat
