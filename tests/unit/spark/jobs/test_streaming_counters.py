"""Counters of micro-batches added up are those that one file for all of them would have."""

from __future__ import annotations

import json
from pathlib import Path

from forebay.model import TransactionIdentity
from forebay.spark.commit import Counters, save
from forebay.spark.exactly_once.protocol import Claim, TaskOutcome, TaskWrite, Write
from forebay.spark.jobs.streaming import add_batch, added, read_counters
from tests.unit.spark.test_commit import report

FIRST = [report(rows=10, batches=1, fill=1.0, finished_ms=1500), report(1, rows=5, partitions={"t-1": 5})]
SECOND = [report(rows=7, batches=3, fill=0.25, started_ms=2000, finished_ms=2600, partitions={"t-1": 3, "u-0": 4})]


DRIVER = TransactionIdentity("p-driver", 1, 1, 2)
CLAIM, WRITE = Claim(DRIVER), Write("q", 1)
TASK = TaskWrite(0, DRIVER._replace(transactional_id="p-1-0-0"), 10, 5)
EXACTLY_ONCE = [
    [
        report(outcome=TaskOutcome(CLAIM, WRITE, 0, False, TASK)),
        report(1, rows=0, outcome=TaskOutcome(CLAIM, WRITE, 1, True)),
    ],
    [
        report(outcome=TaskOutcome(CLAIM, WRITE, 0, False, TASK)),
        report(1, outcome=TaskOutcome(CLAIM, WRITE, 1, False, TASK)),
    ],
]


def test_what_exactly_once_writes_count_is_added_too(tmp_path: Path) -> None:
    total, one = str(tmp_path / "total"), str(tmp_path / "one")
    for number, reports in enumerate(EXACTLY_ONCE):
        save(one, reports, add=False)
        add_batch(total, one, number)
    values = json.loads(Path(total).read_text())
    assert (values["transactions"], values["skipped_tasks"], values["tasks"]) == (3, 1, 4)


def test_each_counter_is_added() -> None:
    """Whatever the file has, two equal writes have twice, but for times, shares and lists."""
    once = Counters()
    once.add(EXACTLY_ONCE[0])
    found, single = added(added({}, once.as_dict(), 0), once.as_dict(), 1), once.as_dict()
    as_it_is = {"format", "compression_ratio", "average_fill", "started_ms", "finished_ms", "history", "last_tasks"}
    for name in single.keys() - as_it_is:
        wanted = single[name]
        both = {key: 2 * value for key, value in wanted.items()} if isinstance(wanted, dict) else 2 * wanted
        assert found[name] == both, name


def test_two_writes_added_are_as_one_file_of_a_stream(tmp_path: Path) -> None:
    stream, total, one = (str(tmp_path / name) for name in ("stream", "total", "one"))
    for number, reports in enumerate((FIRST, SECOND)):
        save(stream, reports, add=True, batch_id=number)
        save(one, reports, add=False)
        add_batch(total, one, number)
    assert json.loads(Path(total).read_text()) == json.loads(Path(stream).read_text())
    assert not Path(one).exists()


def test_a_write_that_left_no_counters_changes_nothing(tmp_path: Path) -> None:
    add_batch(str(tmp_path / "total"), str(tmp_path / "one"), 0)
    assert read_counters(str(tmp_path / "total")) == {}


def test_a_write_without_rows_divides_by_nothing(tmp_path: Path) -> None:
    save(str(tmp_path / "one"), [], add=False)
    values = added({}, read_counters(str(tmp_path / "one")), 3)
    assert (values["average_fill"], values["compression_ratio"], values["started_ms"]) == (0.0, 0.0, None)
    assert [entry["batch_id"] for entry in values["history"]] == [3]
