"""Every key of the job file with a wrong name, type and value, out of the file's own description."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from forebay.config import table
from forebay.pipeline import JobError, load
from forebay.spark.jobs.loading import ALLOWED, ELSEWHERE, REGISTRY
from tests.fakes.names import FORBIDDEN_TOPICS

Document = dict[str, Any]

LISTS = {("sink", "topics")}
FLAGS = {
    *(("source", "stream"), ("sources.<name>", "stream"), ("sink", "repartition")),
    *(("key", "exact_times"), ("value", "exact_times")),
}
OPTIONS = {(name, "options") for name in ("source", "sources.<name>", "key", "value", "sink")} | {("spark", "conf")}
KEYS = [(name, key) for name, keys in ALLOWED.items() for key in keys or ()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("rows.csv", "query.sql", "schema.avsc", "file.desc"):
        (tmp_path / name).write_text("SELECT 1")
    return tmp_path


def good() -> Document:
    return {
        "source": {"format": "csv", "path": "rows.csv"},
        "sink": {"topic": "t"},
        "producer": {"bootstrap.servers": "h:1"},
    }


def with_table(document: Document, name: str) -> tuple[Document, Document]:
    """The document, and the table ``name`` of it, which is there then."""
    if name == "sources.<name>":
        document["sources"] = {"one": document.pop("source")}
        return document, document["sources"]["one"]
    needed: Document = {
        "sql": {"query": "SELECT 1"},
        "transform": {"function": "m:f"},
        "key": {"format": "json"},
        "value": {"format": "json"},
        "stream": {"checkpoint": "state"},
        "registry": {"url": "http://h:1"},
    }
    return document, document.setdefault(name, dict(needed.get(name, {})))


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {toml(each)}' for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return '"' + "".join(f"\\U{ord(each):08x}" for each in value) + '"' if isinstance(value, str) else str(value)


def refusal(folder: Path, document: Document) -> str:
    text = "\n".join(f'"{name}" = {toml(value)}' for name, value in document.items())
    (folder / "job.toml").write_text(text)
    with pytest.raises(JobError) as caught:
        load(folder / "job.toml")
    message = str(caught.value)
    assert message.startswith(f"{folder / 'job.toml'}: ") and "\n" not in message
    return message


def heading(name: str) -> str:
    return name.replace("<name>", "one")


@pytest.mark.parametrize(("name", "key"), KEYS)
def test_each_key_with_a_wrong_name(folder: Path, name: str, key: str) -> None:
    document, inner = with_table(good(), name)
    inner[f"{key}x"] = "a"
    message = refusal(folder, document)
    assert f"unknown key '{key}x' in [{heading(name)}]" in message
    assert f"did you mean '{key}'?" in message


@pytest.mark.parametrize("name", [name for name in ALLOWED if "<" not in name])
def test_each_table_with_a_wrong_name_or_that_is_none(folder: Path, name: str) -> None:
    document, inner = with_table(good(), name)
    if name not in ("source", "sink", "producer"):
        document[f"{name}x"] = inner
        assert f"unknown key '{name}x' in the file; did you mean '{name}'?" in refusal(folder, document)
        del document[f"{name}x"]
    for wrong in (1, "a", [1], True):
        assert f"{name} must be a table [{name}]" in refusal(folder, {**document, name: wrong})


def wrong_types(name: str, key: str) -> list[Any]:
    if (name, key) in OPTIONS:
        return [3, "a", [1], True]
    if (name, key) in LISTS:
        return ["a", 3, [1], [""], {"a": 1}]
    if (name, key) in FLAGS:
        return ["yes", 1, 0.5, ["true"], {"a": 1}]
    return [3, 0.5, True, ["a"], {"a": 1}, "", " "]


@pytest.mark.parametrize(("name", "key"), KEYS)
def test_each_key_with_a_wrong_type(folder: Path, name: str, key: str) -> None:
    for wrong in wrong_types(name, key):
        document, inner = with_table(good(), name)
        if name in ("sql", "transform", "source", "sources.<name>", "sink"):
            for other in ("query", "format", "path", "topic"):
                # What excludes the key, or needs it, would be told first.
                if (other, key) in {("query", "file"), ("format", "table"), ("format", "sql"), ("topic", "topics")}:
                    inner.pop(other, None)
            if key in ("table", "sql"):
                inner.pop("path", None)
        if key == "topics":
            document["map"] = {"topic": "a"}
        if key in ("descriptor", "message"):
            inner |= {"format": "protobuf", "descriptor": "file.desc", "message": "M"}
        if name in ("key", "value") and key in ("schema", "schema_file", "name"):
            inner["format"] = "avro"
        inner[key] = wrong
        message = refusal(folder, document)
        place = heading(name)
        assert f"[{place}] {key} must be" in message or f"[{place}.{key}] must be" in message, (wrong, message)


def test_each_registry_key(folder: Path) -> None:
    for key in REGISTRY:
        document, inner = with_table(good(), "registry")
        document["value"] = {"format": "avro", "name": "N"}
        inner[f"{key}x"] = "a"
        assert f"unknown key '{key}x' in [registry]; did you mean '{key}'?" in refusal(folder, document)
        del inner[f"{key}x"]
        inner[key] = ["", 1]
        assert f"[registry] {key} must be" in refusal(folder, document)


@pytest.mark.parametrize("name", [option.name for option in table()])
def test_each_producer_option_with_a_wrong_name(folder: Path, name: str) -> None:
    middle = len(name) // 2
    for wrong in (f"{name}x", name[:middle] + name[middle + 1 :], f"kafka.{name}"):
        document = good()
        document["producer"][wrong] = "1"
        message = refusal(folder, document)
        assert "[producer] " in message
        assert wrong in message or "[producer]" in message


@pytest.mark.parametrize("name", ELSEWHERE)
def test_options_that_a_job_has_elsewhere(folder: Path, name: str) -> None:
    for spelling in (name, name.replace(".", "_")):
        document = good()
        document["producer"][spelling] = "x"
        assert f"[producer] {spelling} cannot be: {ELSEWHERE[name]}" in refusal(folder, document)


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("key", {"format": "jsn"}, "[key] format is 'jsn', which is unknown; did you mean 'json'?"),
        ("value", {"format": "avroo"}, "[value] format is 'avroo', which is unknown; did you mean 'avro'?"),
        ("value", {"format": "avro", "name": "1x"}, "[value] name is '1x'"),
        ("stream", {"output_mode": "appends"}, "[stream] output_mode is 'appends', which is unknown"),
        ("transform", {"function": "f"}, "[transform] function is 'f'"),
    ],
)
def test_values_that_cannot_be(folder: Path, name: str, changes: Document, words: str) -> None:
    document, inner = with_table(good(), name)
    inner |= changes
    assert words in refusal(folder, document)


@pytest.mark.parametrize(("key", "value"), [("trigger", "soon"), ("stop_after", "5"), ("stop_after", "0 seconds")])
def test_times_that_cannot_be(folder: Path, key: str, value: str) -> None:
    document, inner = with_table(good(), "stream")
    document["source"]["stream"] = True
    inner[key] = value
    assert f"[stream] {key} is '{value}'" in refusal(folder, document)


# TOML has no lone surrogates.
IN_TOML = [name for name in FORBIDDEN_TOPICS if name.strip() and not re.search("[\0\ud800-\udfff]", name)]


@pytest.mark.parametrize("topic", IN_TOML, ids=ascii)
def test_topics_that_cannot_be(folder: Path, topic: str) -> None:
    for key, value in (("topic", topic), ("topics", ["a", topic]), ("dead_letters", topic)):
        document = good()
        document["sink"] = {**({} if key != "dead_letters" else {"topic": "t"}), key: value}
        document["map"] = {"topic": "a"}
        assert f"[sink] {key} names no topic that can be" in refusal(folder, document)


@pytest.mark.parametrize("again", ["[sink]", "[sink.options]", '["sink"]'])
def test_a_table_that_is_there_twice(folder: Path, again: str) -> None:
    (folder / "job.toml").write_text(f'[sink]\ntopic = "t"\n[sink.options]\n{again}\n')
    with pytest.raises(JobError, match=r"table \[sink(\.options)?\] is there twice \(at line 4"):
        load(folder / "job.toml")
