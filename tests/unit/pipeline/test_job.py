"""Job files: what they say, and one line for each way to get one wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from forebay.pipeline import Job, JobError, load
from forebay.pipeline.job import ALLOWED, SECTIONS

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
    assert (job.topic, job.master, job.conf) == ("rows", "local[2]", {"spark.sql.shuffle.partitions": "2"})
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
    assert (job.topic, job.master, job.sources[0].path) == ("elsewhere", "yarn", str(folder / "more.csv"))
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
        (GOOD.replace('topic = "rows"', "options = { includeHeaders = true }"), r"unknown key 'options' in \[sink\]"),
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
    with pytest.raises(JobError, match="cannot set '.*': give section.key"):
        job_of(folder, GOOD, {place: "x"})


def test_an_unknown_place_is_refused_like_an_unknown_key(folder: Path) -> None:
    with pytest.raises(JobError, match=r"unknown key 'topik' in \[sink\]"):
        job_of(folder, GOOD, {"sink.topik": "x"})


def test_an_override_through_a_value_is_refused(folder: Path) -> None:
    overrides: dict[str, Any] = {"sink.topic": "x"}
    with pytest.raises(JobError, match="cannot set 'sink.topic': 'sink' is not a table"):
        job_of(folder, "sink = 3\n" + without("[sink]", "topic"), overrides)


def test_readme_describes_every_key_and_no_other() -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    described: dict[str, list[str]] = {}
    for table, keys in re.findall(r"^\| `\[([\w.]+)\]` \| (.+?) \|", readme, re.MULTILINE):
        described.setdefault(table.replace("NAME", "<name>"), []).extend(re.findall(r"`(\w+)`", keys))
    assert {table.partition(".")[0] for table in described} == set(SECTIONS)
    assert described.pop("producer") == []  # the producer's own options, which `forebay config` lists
    assert {table: sorted(keys) for table, keys in described.items()} == {
        table: sorted(keys) for table, keys in ALLOWED.items()
    }
