"""A table and its tasks: what follows from them."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.errors import ConfigError
from forebay.tune import SparkTable

SMALL: dict[str, Any] = {"rows": 1000, "row_bytes": 100, "tasks": 4}


def test_the_sink_chooses_batches_by_partitions() -> None:
    sizes = [SparkTable(**SMALL, partitions=count).settings()["batch.size"] for count in (12, 200, 400, 2000)]
    assert sizes == ["131072", "65536", "32768", "16384"]
    assert SparkTable(**SMALL).settings()["linger.ms"] == "100"


def test_who_sets_a_size_chooses_all_of_them() -> None:
    settings = SparkTable(**SMALL, options={"buffer.memory": "64000000"}).settings()
    assert "batch.size" not in settings


def test_options_of_the_connection_are_not_kept() -> None:
    table = SparkTable(**SMALL, options={"sasl.jaas.config": "password", "linger.ms": "5", "bootstrap.servers": "a:1"})
    assert dict(table.options) == {"linger.ms": "5"}


def test_rows_of_an_arrow_batch() -> None:
    """Those of a task are as many as fit, and of the same size."""

    def rows(**more: Any) -> int:
        return SparkTable(**{"rows": 10**6, "row_bytes": 100, "tasks": 1, **more}).arrow_rows

    assert rows() == rows(arrow_bytes=1 << 20) == 10_000
    assert rows(row_bytes=1000, arrow_bytes=1 << 20) == 1048
    assert rows(row_bytes=1 << 21, arrow_bytes=1 << 20) == 1
    assert rows(rows=12_500) == 6250
    assert rows(rows=500) == 500
    assert rows(rows=25_000, splits=2) == 6250


def test_what_a_task_sends() -> None:
    assert SparkTable(**SMALL).stream().partitions == ()
    keyed = SparkTable(**SMALL, keyed=True, partitions=6)
    assert keyed.stream().partitions == (1.0,) * 6
    grouped = SparkTable(**SMALL, keyed=True, grouped=True, partitions=6)
    assert grouped.stream().partitions == (1, 0, 0, 0, 1, 0)
    assert SparkTable(**SMALL, rate=2000.0).stream().think_ms == 125
    assert (SparkTable(**SMALL).rows_s, SparkTable(**SMALL | {"row_bytes": 1000}).rows_s) == (500_000, 200_000)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"rows": 0}, "rows is 0"),
        ({"tasks": 1.5}, "tasks is 1.5"),
        ({"splits": 0}, "splits is 0"),
        ({"rate": 0}, "rate is 0"),
        ({"grouped": True}, "rows without keys are in no partition yet"),
        ({"options": {"transactional.id": "a"}}, "transactions are not simulated"),
        ({"options": {"lingerms": "5"}}, "lingerms"),
    ],
)
def test_values_that_cannot_be(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        SparkTable(**SMALL | more)
