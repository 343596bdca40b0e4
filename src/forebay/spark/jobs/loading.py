"""The job file: TOML in, one frozen value out, every mistake one line that names the file and the place.

Nothing here needs Spark or Java, so a bad file costs milliseconds and not the start of a session.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from forebay._runtime.allowed import url_refusal
from forebay._runtime.files import NoTextError
from forebay.config._door import door, kafka_name
from forebay.config._secret import Secret, shown_name, shown_value
from forebay.errors import ConfigError
from forebay.model._wire import shown, topic_fault
from forebay.spark.jobs.formats import check_source
from forebay.spark.jobs.job import TRIGGER_NOW, Encoding, Job, Registry, Sink, Source, Stream
from forebay.spark.jobs.table import AVRO_NAME, DURATION, JobError, Table, duration, known, read_text

ENCODING = ("format", "options", "schema", "schema_file", "name", "descriptor", "message", "exact_times")
ALLOWED: dict[str, tuple[str, ...] | None] = {
    "job": ("name",),
    "source": ("format", "path", "schema", "options", "table", "sql", "stream", "name"),
    "sources.<name>": ("format", "path", "schema", "options", "table", "sql", "stream"),
    "sql": ("query", "file"),
    "transform": ("function",),
    "map": ("key", "value", "headers", "partition", "timestamp", "topic"),
    "key": ENCODING,
    "value": ENCODING,
    "registry": None,
    "sink": ("topic", "topics", "repartition", "dead_letters", "metrics", "report", "options"),
    "producer": None,
    "spark": ("master", "conf"),
    "stream": ("checkpoint", "trigger", "output_mode", "stop_after", "name"),
}
"""The keys of each table; None is for options with dots in their names, which are checked elsewhere."""
SECTIONS = ("job", "source", "sources", *(name for name in ALLOWED if not name.startswith(("job", "source"))))

REGISTRY = (
    "url",
    "basic.auth.user.info",
    "bearer.auth.token",
    "ssl.ca.location",
    "subject.name.strategy",
    "auto.register.schemas",
    "use.latest.version",
)
STRATEGIES = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")

FORMAT_KEYS: dict[str, tuple[str, ...]] = {
    "json": ("options", "schema", "schema_file", "exact_times"),
    "csv": ("options", "exact_times"),
    "avro": ("schema", "schema_file", "name", "exact_times"),
    "protobuf": ("descriptor", "message"),
    "raw": (),
}
"""The formats, and which keys each of them has beside ``format``."""
ELSEWHERE = {
    "key.serializer": "[key] says how keys become bytes",
    "value.serializer": "[value] says how values become bytes",
    "transactional.id": 'each task needs one of its own; set deliveryGuarantee = "exactly-once" and '
    "transactionalIdPrefix in [sink.options]",
    "interceptor.classes": "rows go from Arrow memory into batches, no record object is made for an interceptor",
}
"""Options of a producer that a job has under other names, or cannot have."""
OUTPUT_MODES = ("append", "update", "complete")
DEFAULT_VIEW = "source"
TWICE = re.compile(r"Cannot declare \((.*?)\) twice(.*)")
NAME = re.compile(r"'([^']*)'")
FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@door(wrap=False)
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
        document = tomllib.loads(read_text(file))
    except FileNotFoundError:
        raise JobError(f"job file {str(path)!r} does not exist") from None
    except OSError as error:
        raise JobError(f"job file {str(path)!r} cannot be read: {error.strerror}") from None
    except NoTextError as error:
        raise JobError(f"job file {str(path)!r} {error}") from None
    except tomllib.TOMLDecodeError as error:
        twice = TWICE.search(str(error))
        what = f"table [{'.'.join(re.findall(NAME, twice[1]))}] is there twice" if twice else f"not TOML: {error}"
        raise JobError(f"{file}: {what}{twice[2] if twice else ''}") from None
    for place, value in (overrides or {}).items():
        _override(document, place, value)
    try:
        return _job(document, file.resolve())
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
    if section not in ("producer", "registry") and head in ("conf", "options") and tail:
        keys.append(head)
        rest = tail
    if not rest:
        raise JobError(
            f"cannot set {_place(place)}: give section.key, such as producer.bootstrap.servers or sink.topic"
        )
    for key in keys:
        inside = inside.setdefault(key, {})
        if not isinstance(inside, dict):
            raise JobError(f"cannot set {_place(place)}: {key!r} is not a table")
    _replace(inside, rest, value)


def _place(place: str) -> str:
    # A section alone is no value without a name.
    return shown_name(place, place) if place.strip(".") else repr(place)


def _replace(table: dict[str, Any], key: str, value: str) -> None:
    # In TOML ``linger.ms`` without quotes is a table ``linger`` with a key ``ms``; the file's value may stand there.
    head, _, tail = key.partition(".")
    if tail and key not in table and isinstance(table.get(head), dict):
        _replace(table[head], tail, value)
    else:
        table[key] = value


def _job(document: dict[str, Any], file: Path) -> Job:
    known(document, SECTIONS, "the file")
    whole = Table(document, "the file", None, file.parent)
    sources = _sources(whole)
    query, function = _transform(whole, sources)
    mapping = _mapping(whole)
    sink = _sink(whole, mapping)
    registry = _registry(whole)
    encodings = tuple(_encoding(whole, part, registry) for part in ("key", "value") if part in whole)
    _check_registry(registry, encodings, sink)
    spark = whole.inner("spark", ALLOWED["spark"])
    return Job(
        path=file,
        name=whole.inner("job", ALLOWED["job"]).text("name") or file.stem,
        sources=sources,
        query=query,
        function=function,
        mapping=mapping,
        encodings=encodings,
        registry=registry,
        sink=sink,
        producer=_producer(whole),
        master=spark.text("master"),
        conf=spark.options("conf"),
        stream=_stream(whole, sources),
    )


def _sources(whole: Table) -> tuple[Source, ...]:
    if "source" in whole and "sources" in whole:
        raise JobError("[source] and [sources.<name>] exclude each other: name them all")
    streaming = "stream" in whole
    if "source" in whole:
        return (_source(whole.inner("source", ALLOWED["source"]), None, streaming),)
    named = whole.inner("sources", None)
    if not named.names():
        raise JobError("no source: add [source] with format and path, or [sources.<name>] for several")
    allowed = ALLOWED["sources.<name>"]
    return tuple(_source(named.inner(name, allowed, f"sources.{name}"), name, streaming) for name in named.names())


def _source(table: Table, name: str | None, streaming: bool) -> Source:
    table.only_one("format", "table", "sql")
    form, catalogue, sql = table.text("format"), table.text("table"), table.text("sql")
    if form is None and catalogue is None and sql is None:
        raise JobError(f"[{table.where}] has no format, such as csv, json, parquet; nor table, nor sql")
    for key in ("path", "schema") if form is None else ():
        if key in table:
            raise JobError(f"[{table.where}] {key} needs a format; a table or a query has it by itself")
    stream = table.flag("stream", streaming and sql is None)
    if stream and not streaming:
        raise JobError(f"[{table.where}] is a stream, so the job needs a [stream] table with a checkpoint")
    if stream and sql is not None:
        raise JobError(f"[{table.where}] sql cannot be a stream; read the stream by format or table")
    path, options = table.existing("path"), table.options("options")
    if form is not None:
        check_source(table.where, form, path, options)
    return Source(
        name=name or table.text("name") or DEFAULT_VIEW,
        format=form,
        path=path,
        schema=table.text("schema"),
        options=options,
        stream=stream,
        table=catalogue,
        sql=sql,
    )


def _transform(whole: Table, sources: tuple[Source, ...]) -> tuple[str | None, str | None]:
    sql = whole.inner("sql", ALLOWED["sql"])
    function = whole.inner("transform", ALLOWED["transform"]).text("function")
    sql.only_one("query", "file")
    query = sql.text("query") if "query" in sql else sql.content("file")
    if query is None and "sql" in whole:
        raise JobError("[sql] has neither query nor file")
    if function is None and "transform" in whole:
        raise JobError('[transform] has no function, such as "flights:delays"')
    if query is not None and function is not None:
        raise JobError("[sql] and [transform] exclude each other: a function may call session.sql itself")
    if function is not None and FUNCTION.fullmatch(function) is None:
        raise JobError(f'[transform] function is {function!r}, which is not "module:function"')
    if query is None and function is None and len(sources) > 1:
        raise JobError(f'{len(sources)} sources need a query: add [sql] query = "SELECT ..." or [transform] function')
    return query, function


def _mapping(whole: Table) -> Mapping[str, str]:
    table = whole.inner("map", ALLOWED["map"])
    found = {key: table.text(key) for key in ALLOWED["map"] or ()}
    return {key: value for key, value in found.items() if value is not None}


def _sink(whole: Table, mapping: Mapping[str, str]) -> Sink:
    table = whole.inner("sink", ALLOWED["sink"])
    table.only_one("topic", "topics")
    sink = Sink(
        topic=table.text("topic"),
        topics=table.texts("topics"),
        repartition=_repartition(table),
        dead_letters=table.text("dead_letters"),
        metrics=table.place("metrics"),
        report=table.output("report"),
        options=table.options("options"),
    )
    _check_names(sink)
    if sink.topic is None and "topic" not in mapping:
        raise JobError("no topic: set topic in [sink], or an expression for topic in [map]")
    if sink.repartition and sink.topic is None:
        raise JobError("[sink] repartition needs topic in [sink]: topics of a column differ in their partitions")
    if sink.dead_letters is not None and sink.dead_letters in (sink.topic, *sink.topics):
        raise JobError(f"[sink] dead_letters is {sink.dead_letters!r}, where the other rows go; name another topic")
    for key in sink.options:
        if key.lower().startswith("kafka."):
            raise JobError(f"[sink.options] {key} belongs into [producer], without kafka. before it")
        if key.lower() in ("topic", "metrics.path", "repartition"):
            raise JobError(f"[sink.options] {key} is a key of [sink] itself: {key.lower().removesuffix('.path')}")
    return sink


def _check_names(sink: Sink) -> None:
    for key, names in (("topic", (sink.topic,)), ("topics", sink.topics), ("dead_letters", (sink.dead_letters,))):
        for name in names:
            fault = None if name is None else topic_fault(name)
            if fault is not None:
                raise JobError(f"[sink] {key} names no topic that can be, '{shown(name or '')}': {fault}")


def _repartition(table: Table) -> bool:
    # The word is what Spark's options would have; a file may also say true.
    if "repartition" in table and table.options().get("repartition") in ("kafka", "none"):
        return table.text("repartition") == "kafka"
    try:
        return table.flag("repartition")
    except JobError as error:
        raise JobError(f'{error}. Allowed also: "kafka", which is true, and "none"') from None


def _encoding(whole: Table, part: str, registry: Registry | None) -> Encoding:
    table = whole.inner(part, ALLOWED[part])
    form = table.choice("format", FORMAT_KEYS)
    if form is None:
        raise JobError(f"[{part}] has no format. Allowed: {', '.join(FORMAT_KEYS)}")
    for key in table.names():
        if key != "format" and key not in FORMAT_KEYS[form]:
            has = ", ".join(FORMAT_KEYS[form]) or "no other key"
            raise JobError(f"[{part}] {key} is not for format {form!r}, which has: {has}")
    table.only_one("schema", "schema_file", "name")
    encoding = Encoding(
        part=part,
        format=form,
        options=table.options("options"),
        schema=table.text("schema") if "schema" in table else table.content("schema_file"),
        name=table.text("name"),
        descriptor=table.file("descriptor"),
        message=table.text("message"),
        exact_times=table.flag("exact_times"),
    )
    if encoding.name is not None and AVRO_NAME.fullmatch(encoding.name) is None:
        raise JobError(f"[{part}] name is {encoding.name!r}; an Avro name has letters, digits and _, parted by dots")
    if form == "protobuf" and (encoding.descriptor is None or encoding.message is None):
        raise JobError(f"[{part}] format 'protobuf' needs descriptor, a file of protoc, and message, a name in it")
    if form == "json" and encoding.schema is not None and registry is None:
        raise JobError(f"[{part}] schema of format 'json' is for a Schema Registry, so the job needs [registry]")
    return encoding


def _registry(whole: Table) -> Registry | None:
    if "registry" not in whole:
        return None
    options = whole.inner("registry", None).options()
    known(options, REGISTRY, "[registry]")
    table = Table(dict(options), "registry", None, whole.folder)
    given = tuple(url.strip().rstrip("/") for url in (table.text("url") or "").split(",") if url.strip())
    if not given:
        raise JobError('[registry] has no url, such as "http://localhost:8081"')
    urls, logins = zip(*map(_url_and_login, given), strict=True)
    for refusal in filter(None, map(url_refusal, urls)):
        raise JobError(f"[registry] url: {refusal}")
    token, user_info = table.text("bearer.auth.token"), _user_info(table)
    if any(logins) and (token is not None or user_info is not None):
        raise JobError(
            "[registry] url has a user and a password, so basic.auth.user.info and bearer.auth.token cannot be"
        )
    return Registry(
        urls=urls,
        logins={url: Secret(login) for url, login in zip(urls, logins, strict=True) if login},
        user_info=None if user_info is None else Secret(user_info),
        token=None if token is None else Secret(token),
        ca=table.file("ssl.ca.location"),
        strategy=table.choice("subject.name.strategy", STRATEGIES, STRATEGIES[0]) or STRATEGIES[0],
        register=table.flag("auto.register.schemas", True),
        latest=table.flag("use.latest.version"),
    )


def _url_and_login(given: str) -> tuple[str, str | None]:
    """The address of a registry without its login, and the login as ``user:password``; no message shows either."""
    wrong = f"[registry] url is {shown_value(given)}; it must begin with http:// or https:// and a host"
    scheme, sign, rest = given.partition("://")
    login, at, place = rest.rpartition("@")
    if scheme not in ("http", "https") or not sign or not re.match(r"[^/?#\s]+", place):
        raise JobError(wrong)
    if not at:
        return given, None
    user, colon, password = login.partition(":")
    if not user or not colon or not password or re.search(r"[/?#\s]", login):
        raise JobError(
            "[registry] url has a login that cannot be read: write user:password@ before the host, and signs like / "
            "and @ in them as %2F and %40"
        )
    return f"{scheme}://{place}", f"{unquote(user)}:{unquote(password)}"


def _user_info(table: Table) -> str | None:
    table.only_one("basic.auth.user.info", "bearer.auth.token")
    value = table.text("basic.auth.user.info")
    if value is not None and ":" not in value:
        raise JobError(
            f"[registry] basic.auth.user.info must be user:password; its {len(value)} characters have no colon"
        )
    return value


def _check_registry(registry: Registry | None, encodings: tuple[Encoding, ...], sink: Sink) -> None:
    if registry is None:
        return
    framed = [one for one in encodings if one.format in ("avro", "protobuf") or one.schema is not None]
    framed += [one for one in encodings if one.format == "json" and registry.latest and one not in framed]
    if not framed:
        raise JobError("[registry] is given, but neither [value] nor [key] has a format with a schema: avro, protobuf")
    if registry.strategy != "RecordNameStrategy" and sink.topic is None and not sink.topics:
        raise JobError(
            f"[registry] subject.name.strategy {registry.strategy} needs the topics before a row is read: "
            'list them in [sink] topics = ["..."], or take RecordNameStrategy'
        )


def _producer(whole: Table) -> Mapping[str, str]:
    options = whole.inner("producer", None).options()
    for key in options:
        name = kafka_name(key)
        if key.lower().startswith("kafka."):
            raise JobError(f"[producer] {key}: write {key[6:]}, without kafka. before it")
        if name in ELSEWHERE:
            raise JobError(f"[producer] {key} cannot be: {ELSEWHERE[name]}")
    if "bootstrap.servers" not in options:
        raise JobError('[producer] has no "bootstrap.servers", such as "localhost:9092"')
    from forebay.config import ProducerConfig

    try:
        ProducerConfig(options)
    except ConfigError as error:
        raise JobError(f"[producer] {error}") from None
    return options


def _stream(whole: Table, sources: tuple[Source, ...]) -> Stream | None:
    if "stream" not in whole:
        return None
    table = whole.inner("stream", ALLOWED["stream"])
    checkpoint = table.place("checkpoint")
    if checkpoint is None:
        raise JobError("[stream] has no checkpoint: the folder that a restart goes on from")
    if not any(source.stream for source in sources):
        raise JobError("[stream] is given, but no source has stream = true")
    return Stream(
        checkpoint=checkpoint,
        trigger=_trigger(table),
        output_mode=table.choice("output_mode", OUTPUT_MODES, "append") or "append",
        stop_after_s=table.seconds("stop_after"),
        name=table.text("name"),
    )


def _trigger(table: Table) -> str:
    value = table.text("trigger") or TRIGGER_NOW
    if value == TRIGGER_NOW:
        return value
    if value.split()[0].lower() == "continuous":
        raise JobError(
            f"[stream] trigger is {value!r}, but Spark loses the rows of a Python sink in continuous mode. "
            f'Allowed: "{TRIGGER_NOW}", or an interval such as "1 second"'
        )
    if DURATION.fullmatch(value) is None:
        raise JobError(f'[stream] trigger is {value!r}. Allowed: "{TRIGGER_NOW}", or an interval such as "10 seconds"')
    duration(value, "[stream] trigger")
    return value
