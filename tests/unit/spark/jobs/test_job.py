"""A job as a value: what it shows of itself, and the topics that are known before a row is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forebay.spark.jobs.job import Job, Registry, Sink, Source


def job(**changes: Any) -> Job:
    values: dict[str, Any] = {
        "path": Path("/j.toml"), "name": "j", "sources": (Source("s", "rate"),), "query": None, "function": None,
        "mapping": {}, "encodings": (), "registry": None, "sink": Sink("t"),
        "producer": {"bootstrap.servers": "h:1", "sasl.password": "sesame"}, "master": None, "conf": {},
    }  # fmt: skip
    return Job(**(values | changes))


def test_no_secret_is_shown() -> None:
    assert repr(job()) == "<Job j to t: 1 sources>"
    assert repr(Registry(("http://r",), user_info="u:sesame")) == "<Registry http://r>"


@pytest.mark.parametrize(("sink", "topics"), [(Sink("t"), ("t",)), (Sink(topics=("a", "b")), ("a", "b")), (Sink(), ())])
def test_topics(sink: Sink, topics: tuple[str, ...]) -> None:
    assert job(sink=sink).topics() == topics


def test_a_source_in_words() -> None:
    assert str(Source("s", "csv", "/a.csv", stream=True)) == "s: csv /a.csv, as a stream"
