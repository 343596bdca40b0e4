"""Job files: what they say, and one line for each way to get one wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from forebay.config import Secret
from forebay.pipeline import Job, JobError, load
from forebay.spark.jobs.job import Registry, Stream, job_lines
from forebay.spark.jobs.loading import ALLOWED, SECTIONS
from forebay.spark.jobs.loading import REGISTRY as REGISTRY_KEYS

GOOD = """
[source]
format = "csv"
path = "rows.csv"
schema = "a STRING, b INT"
options = { header = true, nullValue = "NA", maxColumns = 9 }

[map]
key = "a"
value = "to_json(struct(*))"

[sink]
topic = "rows"

[producer]
"bootstrap.servers" = "localhost:9092"
linger.ms = 5
"compression.type" = "zstd"

[spark]
master = "local[2]"
conf = { "spark.sql.shuffle.partitions" = 2 }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text("a,b\nx,1\n")
    return tmp_path


def job_of(folder: Path, text: str, overrides: dict[str, str] | None = None) -> Job:
    path = folder / "job.toml"
    path.write_text(text)
    return load(path, overrides)


def test_a_whole_job(folder: Path) -> None:
    job = job_of(folder, GOOD)
    assert job.name == "job"
    (source,) = job.sources
    assert (source.name, source.format, source.path) == ("source", "csv", str(folder / "rows.csv"))
    assert source.options == {"header": "true", "nullValue": "NA", "maxColumns": "9"}
    assert source.schema == "a STRING, b INT"
    assert job.mapping == {"key": "a", "value": "to_json(struct(*))"}
    assert job.producer == {"bootstrap.servers": "localhost:9092", "linger.ms": "5", "compression.type": "zstd"}
    assert (job.sink.topic, job.master, job.conf) == ("rows", "local[2]", {"spark.sql.shuffle.partitions": "2"})
    assert job.stream is None


def test_several_sources_and_a_query_in_a_file(folder: Path) -> None:
    (folder / "join.sql").write_text("SELECT 1")
    text = """
    [sources.left]
    format = "csv"
    path = "rows.csv"
    [sources.right]
    format = "rate"
    [sql]
    file = "join.sql"
    [sink]
    topic = "t"
    [producer]
    bootstrap.servers = "h:1"
    """
    job = job_of(folder, text)
    assert [(source.name, source.path) for source in job.sources] == [
        ("left", str(folder / "rows.csv")),
        ("right", None),
    ]
    assert job.query == "SELECT 1"


def test_a_stream(folder: Path) -> None:
    job = job_of(folder, GOOD + '[stream]\ncheckpoint = "state"\ntrigger = "2 seconds"\n')
    assert job.stream is not None
    assert (job.stream.checkpoint, job.stream.trigger) == (str(folder / "state"), "2 seconds")
    assert job.sources[0].stream


def test_overrides_reach_every_place(folder: Path) -> None:
    (folder / "more.csv").write_text("")
    job = job_of(
        folder,
        GOOD,
        {
            "producer.bootstrap.servers": "other:1",
            "producer.acks": "1",
            "sink.topic": "elsewhere",
            "spark.master": "yarn",
            "spark.conf.spark.executor.memory": "1g",
            "source.path": str(folder / "more.csv"),
            "source.options.header": "false",
        },
    )
    assert job.producer["bootstrap.servers"] == "other:1"
    assert job.producer["acks"] == "1"
    assert (job.sink.topic, job.master, job.sources[0].path) == ("elsewhere", "yarn", str(folder / "more.csv"))
    assert job.conf["spark.executor.memory"] == "1g"
    assert job.sources[0].options["header"] == "false"


def test_secrets_are_not_shown(folder: Path) -> None:
    assert "localhost" not in repr(job_of(folder, GOOD))


def without(*lines: str) -> str:
    return "\n".join(line for line in GOOD.splitlines() if not line.startswith(lines))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[source\n", r"not TOML: .*line 1, column 8"),
        (GOOD + "[sinks]\n", r"unknown key 'sinks' in the file; did you mean 'sink'"),
        (GOOD.replace("format", "fromat"), r"unknown key 'fromat' in \[source\]; did you mean 'format'"),
        (GOOD.replace("key =", "keys ="), r"unknown key 'keys' in \[map\]; did you mean 'key'"),
        (without("format"), r"\[source\] has no format"),
        (GOOD.replace("rows.csv", "gone.csv"), r"\[source\] path '.*gone.csv' does not exist"),
        (without("topic"), "no topic: set topic in"),
        (GOOD.replace('topic = "rows"', "topic = 5"), r"\[sink\] topic must be a text that is not empty, not 5"),
        (
            GOOD.replace('topic = "rows"', "option = { includeHeaders = true }"),
            r"unknown key 'option' in \[sink\]; did you",
        ),
        (
            '[sources.a]\nformat = "rate"\nname = "b"\n[sink]\ntopic = "t"\n[producer]\na = 1\n',
            r"unknown key 'name' in \[sources.a\]\. Allowed: format, path",
        ),
        (without('"bootstrap'), r'\[producer\] has no "bootstrap.servers"'),
        (GOOD.replace("linger.ms", "lingre.ms"), r"\[producer\] .*lingre.ms.*linger.ms"),
        (GOOD.replace("linger.ms = 5", 'linger.ms = "soon"'), r"\[producer\] .*soon.*linger.ms"),
        (GOOD + '[sql]\nquery = "a"\nfile = "b"\n', r"\[sql\] has query and file"),
        (GOOD + "[sql]\n", r"\[sql\] has neither query nor file"),
        (GOOD + '[sql]\nfile = "no.sql"\n', r"\[sql\] file '.*no.sql' cannot be read: No such file"),
        (GOOD + '[sources.b]\nformat = "rate"\n', r"\[source\] and \[sources.<name>\] exclude each other"),
        (GOOD + "[stream]\n", r"\[stream\] has no checkpoint"),
        (GOOD.replace("[map]", "stream = true\n[map]"), r"\[source\] is a stream, so the job needs a \[stream\] table"),
        (
            GOOD.replace('nullValue = "NA"', "nullValue = 1979-05-27"),
            r"\[source.options\] nullValue must be a text, number",
        ),
        ("sink = 3\n" + without("[sink]", "topic"), r"sink must be a table \[sink\], not 3"),
        ('[sink]\ntopic = "t"\n[producer]\nbootstrap.servers = "h:1"\n', "no source: add"),
        (
            '[sources.a]\nformat = "rate"\n[sources.b]\nformat = "rate"\n[sink]\ntopic = "t"\n[producer]\na = 1\n',
            "2 sources need a query",
        ),
    ],
)
def test_every_mistake_is_one_line_that_names_the_place(folder: Path, text: str, message: str) -> None:
    with pytest.raises(JobError, match=message) as caught:
        job_of(folder, text)
    assert str(folder / "job.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="job file '.*none.toml' does not exist"):
        load(tmp_path / "none.toml")


@pytest.mark.parametrize("place", ["topic", "sources.a", "producer.", ""])
def test_an_override_without_a_place_is_refused(folder: Path, place: str) -> None:
    with pytest.raises(JobError, match="cannot set .*: give section.key"):
        job_of(folder, GOOD, {place: "x"})


def test_an_unknown_place_is_refused_like_an_unknown_key(folder: Path) -> None:
    with pytest.raises(JobError, match=r"unknown key 'topik' in \[sink\]"):
        job_of(folder, GOOD, {"sink.topik": "x"})


def test_an_override_through_a_value_is_refused(folder: Path) -> None:
    overrides: dict[str, Any] = {"sink.topic": "x"}
    with pytest.raises(JobError, match="cannot set 'sink.topic': 'sink' is not a table"):
        job_of(folder, "sink = 3\n" + without("[sink]", "topic"), overrides)


SEVERAL = GOOD.replace('topic = "rows"', 'topics = ["a", "b"]').replace("[map]", '[map]\ntopic = "a"')
AVRO = GOOD + '[value]\nformat = "avro"\n'
REGISTRY = AVRO + '[registry]\nurl = "http://r:1/,https://s"\n'


def test_a_value_in_avro_with_a_registry(folder: Path) -> None:
    (folder / "v.avsc").write_text('{"type": "record"}')
    (folder / "ca.pem").write_text("")
    job = job_of(
        folder,
        REGISTRY + 'basic.auth.user.info = "u:p"\nssl.ca.location = "ca.pem"\nauto.register.schemas = false\n'
        'subject.name.strategy = "RecordNameStrategy"\n[key]\nformat = "avro"\nschema_file = "v.avsc"\n',
    )
    assert [(one.part, one.format, one.schema) for one in job.encodings] == [
        ("key", "avro", '{"type": "record"}'),
        ("value", "avro", None),
    ]
    assert job.registry == Registry(
        ("http://r:1", "https://s"),
        user_info=Secret("u:p"),
        ca=str(folder / "ca.pem"),
        strategy="RecordNameStrategy",
        register=False,
    )
    assert "u:p" not in repr(job) + repr(job.registry)


def test_a_login_in_the_url_of_a_registry_is_taken_out_of_it(folder: Path) -> None:
    job = job_of(folder, REGISTRY.replace("http://r:1", "http://ann:pa%2Fss@r:1"))
    assert job.registry is not None and job.registry.urls[0] == "http://r:1"
    assert job.registry.logins == {"http://r:1": Secret("ann:pa/ss")}
    assert "ann" not in repr(job.registry) + "".join(value for _, value in job_lines(job))


@pytest.mark.parametrize("login", ["ann:", "sesame", ":sesame", "ann:ses/ame", "ann:ses#ame", "ann:ses ame"])
def test_a_login_that_cannot_be_read_is_refused_unseen(folder: Path, login: str) -> None:
    with pytest.raises(JobError, match=r"\[registry\] url") as caught:
        job_of(folder, REGISTRY.replace("http://r:1", f"http://{login}@r:1"))
    assert "ann:" not in str(caught.value) and "ses" not in str(caught.value)


def test_topics_of_a_column_and_dead_letters(folder: Path) -> None:
    text = SEVERAL.replace("[producer]", 'dead_letters = "d"\noptions = { deliveryGuarantee = "x" }\n[producer]')
    sink = job_of(folder, text).sink
    assert (sink.topic, sink.topics, sink.dead_letters) == (None, ("a", "b"), "d")
    assert sink.options == {"deliveryGuarantee": "x"}


@pytest.mark.parametrize(("word", "meant"), [('"kafka"', True), ("true", True), ('"none"', False), ("false", False)])
def test_repartition(folder: Path, word: str, meant: bool) -> None:
    text = GOOD.replace('topic = "rows"', f'topic = "rows"\nrepartition = {word}')
    assert job_of(folder, text).sink.repartition is meant


def test_sources_of_the_catalogue_and_by_sql(folder: Path) -> None:
    text = """
    [sources.a]
    table = "db.t"
    [sources.b]
    sql = "SELECT * FROM range(3)"
    [transform]
    function = "late:rows"
    [sink]
    topic = "t"
    [producer]
    bootstrap.servers = "h:1"
    """
    job = job_of(folder, text)
    assert [str(source) for source in job.sources] == ["a: table db.t", "b: sql SELECT * FROM range(3)"]
    assert (job.query, job.function) == (None, "late:rows")


def test_a_stream_with_all_its_keys(folder: Path) -> None:
    text = GOOD + '[stream]\ncheckpoint = "s3://b/c"\noutput_mode = "complete"\nstop_after = "2 minutes"\nname = "n"\n'
    stream = job_of(folder, text).stream
    assert stream == Stream("s3://b/c", "available now", "complete", 120.0, "n")


def test_an_override_replaces_what_stands_without_quotes(folder: Path) -> None:
    job = job_of(folder, GOOD, {"producer.linger.ms": "7", "registry.url": "http://h"} | {"value.format": "avro"})
    assert job.producer["linger.ms"] == "7"
    assert job.registry is not None and job.registry.urls == ("http://h",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace('format = "csv"', 'format = "csv"\ntable = "t"'), r"\[source\] has format and table; give one"),
        (GOOD.replace('format = "csv"', 'sql = "SELECT 1"'), r"\[source\] path needs a format"),
        (
            '[source]\nsql = "SELECT 1"\nstream = true\n[stream]\ncheckpoint = "c"\n'
            + without("[source]", "format", "path", "schema"),
            r"\[source\] sql cannot be a stream",
        ),
        (GOOD + "[transform]\n", r"\[transform\] has no function"),
        (
            GOOD + '[transform]\nfunction = "late"\n',
            r"\[transform\] function is 'late', which is not \"module:function\"",
        ),
        (GOOD + '[transform]\nfunction = "a:b"\n[sql]\nquery = "c"\n', r"\[sql\] and \[transform\] exclude each other"),
        (GOOD + "[value]\n", r"\[value\] has no format. Allowed: json, csv, avro"),
        (GOOD + '[value]\nformat = "arvo"\n', r"format is 'arvo', which is unknown; did you mean 'avro'\?"),
        (AVRO + 'message = "m"\n', r"\[value\] message is not for format 'avro', which has: schema"),
        (AVRO + 'schema = "{}"\nname = "n"\n', r"\[value\] has schema and name; give one"),
        (AVRO + 'schema_file = "no.avsc"\n', r"\[value\] schema_file '.*no.avsc' cannot be read: No such file"),
        (AVRO + 'name = "a-b"\n', r"\[value\] name is 'a-b'; an Avro name has letters"),
        (GOOD + '[value]\nformat = "protobuf"\n', r"\[value\] format 'protobuf' needs descriptor"),
        (GOOD + '[value]\nformat = "json"\nschema = "{}"\n', "so the job needs \\[registry\\]"),
        (AVRO + "[registry]\n", r"\[registry\] has no url, such as"),
        (AVRO + '[registry]\nurl = "r:1"\n', r"url is 'r:1'; it must begin with http"),
        (
            REGISTRY + 'basic.auth.user = "x"\n',
            r"unknown key 'basic.auth.user' in \[registry\]; did you mean 'basic.auth",
        ),
        (REGISTRY + 'basic.auth.user.info = "sesame"\n', r"must be user:password; its 6 characters have no colon"),
        (REGISTRY + 'use.latest.version = "yes"\n', r"use.latest.version must be true or false, not 'yes'"),
        (REGISTRY + 'subject.name.strategy = "Topic"\n', r"'Topic', which is unknown.* Allowed: TopicNameStrategy"),
        (GOOD + '[registry]\nurl = "http://r"\n', r"neither \[value\] nor \[key\] has a format with a schema"),
        (
            REGISTRY.replace('topic = "rows"', "").replace("[map]", '[map]\ntopic = "a"'),
            "TopicNameStrategy needs the topics before a row is read",
        ),
        (GOOD.replace('topic = "rows"', 'topic = "rows"\ntopics = ["a"]'), r"\[sink\] has topic and topics; give one"),
        (
            SEVERAL.replace('["a", "b"]', '["a", 3]'),
            r"topics must be a list of texts that are not empty, not \['a', 3\]",
        ),
        (
            SEVERAL.replace("[producer]", 'dead_letters = "b"\n[producer]'),
            r"dead_letters is 'b', where the other rows go",
        ),
        (
            GOOD.replace('topic = "rows"', 'topic = "a b"'),
            r"\[sink\] topic names no topic that can be, 'a b': it has ' '",
        ),
        (SEVERAL.replace('["a", "b"]', '["a", ".."]'), r"\[sink\] topics names no topic that can be, '\.\.'"),
        (
            SEVERAL.replace("[producer]", f'dead_letters = "{"d" * 250}"\n[producer]'),
            r"\[sink\] dead_letters names no topic that can be, 'd+\.\.\.': it has 250 characters",
        ),
        (SEVERAL.replace("[producer]", "repartition = true\n[producer]"), r"repartition needs topic in \[sink\]"),
        (
            GOOD.replace('topic = "rows"', 'topic = "rows"\nrepartition = "yes"'),
            r"repartition must be true or false, not 'yes'. Allowed also: \"kafka\"",
        ),
        (
            GOOD.replace('topic = "rows"', 'topic = "rows"\noptions = { kafka.acks = 1 }'),
            r"\[sink.options\] kafka.acks belongs into \[producer\]",
        ),
        (
            GOOD.replace('topic = "rows"', 'topic = "rows"\noptions = { metrics.path = "m" }'),
            r"\[sink.options\] metrics.path is a key of \[sink\] itself: metrics",
        ),
        (GOOD + '[stream]\ncheckpoint = "c"\ntrigger = "continuous 1 second"\n', "loses the rows of a Python sink"),
        (
            GOOD + '[stream]\ncheckpoint = "c"\ntrigger = "5"\n',
            r"trigger is '5'. Allowed: \"available now\", or an interval",
        ),
        (
            GOOD + '[stream]\ncheckpoint = "c"\nstop_after = "soon"\n',
            "stop_after is 'soon', which is no duration. Allowed",
        ),
        (GOOD + '[stream]\ncheckpoint = "c"\noutput_mode = "upsert"\n', "output_mode is 'upsert', which is unknown"),
    ],
)
def test_every_mistake_in_newer_tables_is_one_line_too(folder: Path, text: str, message: str) -> None:
    with pytest.raises(JobError, match=message) as caught:
        job_of(folder, text)
    assert "\n" not in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_the_page_describes_every_key_and_no_other() -> None:
    page = (Path(__file__).parents[4] / "docs" / "pipeline.md").read_text(encoding="utf-8")
    described: dict[str, list[str]] = {}
    for table, keys in re.findall(r"^\| `\[([\w.]+)\]` \| (.+?) \|", page, re.MULTILINE):
        described.setdefault(table.replace("NAME", "<name>"), []).extend(re.findall(r"`(\w+)`", keys))
    assert {table.partition(".")[0] for table in described} == set(SECTIONS)
    # Options: those of the producer are listed by `forebay config`, those of a registry have a table of their own.
    assert described.pop("producer") == described.pop("registry") == []
    assert {table: sorted(keys) for table, keys in described.items()} == {
        table: sorted(keys) for table, keys in ALLOWED.items() if keys is not None
    }
    _, _, registry = page.partition("| Key of `[registry]`")
    assert tuple(re.findall(r"^\| `([\w.]+)` \|", registry.partition("\n\n")[0], re.MULTILINE)) == REGISTRY_KEYS


def test_a_mark_at_the_beginning_is_taken(folder: Path) -> None:
    path = folder / "job.toml"
    path.write_text(GOOD, encoding="utf-8-sig")
    assert load(path).sink.topic == "rows"


def test_an_option_in_both_spellings_is_refused(folder: Path) -> None:
    text = GOOD.replace("linger.ms = 5", 'linger.ms = 5\n"linger.ms" = 6')
    with pytest.raises(JobError, match=r"\[producer\] linger.ms is given twice"):
        job_of(folder, text)


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        ('[key]\nformat = "avro"\nschema_file = "v.avsc"\n[registry]\nurl = "http://r:1"\n', "schema_file"),
        ('[key]\nformat = "protobuf"\ndescriptor = "v.desc"\nmessage = "M"\n', "descriptor"),
        ('[registry]\nurl = "http://r:1"\nssl.ca.location = "ca.pem"\n', "ssl.ca.location"),
        ('[registry]\nurl = "http://r:1,https://u:canary@s"\n', "url"),
    ],
)
def test_what_a_job_names_is_bound_by_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, lines: str, key: str
) -> None:
    for name in ("v.avsc", "v.desc", "ca.pem"):
        (folder / name).write_text("{}")
    variable = "FOREBAY_ALLOWED_URLS" if key == "url" else "FOREBAY_ALLOWED_PATHS"
    monkeypatch.setenv(variable, "http://r:1" if key == "url" else str(folder / "rows"))
    with pytest.raises(JobError, match=rf"{key}.*{variable}") as refused:
        job_of(folder, AVRO + lines)
    assert "canary" not in str(refused.value)
