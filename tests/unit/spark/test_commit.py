"""Counters are sums, files are replaced as a whole, and a commit without reports is refused."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path
from typing import Any

import pytest

from forebay.errors import IllegalStateError
from forebay.model import TransactionIdentity
from forebay.spark.commit import MOST_REMEMBERED, Counters, TaskReport, complete, describe_abort, notice, outcomes, save
from forebay.spark.exactly_once.protocol import MOST_APPS, NO_VERSION, Claim, TaskOutcome, TaskWrite, Write


def report(partition: int = 0, rows: int = 10, **changes: Any) -> TaskReport:
    values: dict[str, Any] = {
        "partition_id": partition,
        "attempt": 0,
        "rows": rows,
        "acknowledged": rows,
        "batches": 2,
        "bytes_sent": 50,
        "bytes_raw": 200,
        "fill": 0.5,
        "started_ms": 1000,
        "finished_ms": 2000,
        "partitions": {"t-0": rows},
        "producer": {"record-send-total": float(rows)},
    }
    return TaskReport(**(values | changes))


def test_reports_pickle() -> None:
    assert pickle.loads(pickle.dumps(report())) == report()


def test_counters_add_up_and_weigh_the_fill_by_batches() -> None:
    counters = Counters()
    counters.add(
        [report(rows=10, batches=1, fill=1.0), report(rows=5, batches=3, fill=0.2, partitions={"t-0": 2, "t-1": 3})]
    )
    values = counters.as_dict()
    values.pop("history")
    values.pop("last_tasks")
    assert values == {
        "format": 1,
        "commits": 1,
        "tasks": 2,
        "transactions": 0,
        "skipped_tasks": 0,
        "rows": 15,
        "acknowledged": 15,
        "batches": 4,
        "bytes_sent": 100,
        "bytes_raw": 400,
        "compression_ratio": 0.25,
        "average_fill": 0.4,
        "started_ms": 1000,
        "finished_ms": 2000,
        "partitions": {"t-0": 12, "t-1": 3},
        "producer": {"record-send-total": 15.0},
    }


def test_the_span_is_from_the_first_start_to_the_last_end_of_tasks_with_rows() -> None:
    counters = Counters()
    counters.add(
        [
            report(started_ms=500, finished_ms=900),
            report(started_ms=300, finished_ms=700),
            report(rows=0, started_ms=1, finished_ms=99999),
        ]
    )
    assert (counters.started_ms, counters.finished_ms) == (300, 900)


def test_commits_and_the_tasks_of_the_last_one_are_remembered_apart(tmp_path: Path) -> None:
    path = str(tmp_path / "counters.json")
    save(path, [report(rows=7, batches=1, fill=1.0), report(1, rows=0, started_ms=1)], add=True, batch_id=4)
    save(path, [report(2, rows=5, batches=3, fill=0.2, finished_ms=2500)], add=True, batch_id=5)
    values = json.loads(Path(path).read_text())
    assert [(one["batch_id"], one["tasks"], one["rows"]) for one in values["history"]] == [(4, 2, 7), (5, 1, 5)]
    first, second = values["history"]
    assert (first["started_ms"], first["finished_ms"], first["fill"]) == (1000, 2000, 1.0)
    assert (second["batches"], second["finished_ms"], second["fill"]) == (3, 2500, 0.2)
    assert [(one["partition"], one["rows"]) for one in values["last_tasks"]] == [(2, 5)]


def test_old_commits_are_forgotten_and_their_rows_are_not() -> None:
    counters = Counters()
    for number in range(MOST_REMEMBERED + 2):
        counters.add([report(rows=1)], number)
    values = Counters(counters.as_dict()).as_dict()
    assert [one["batch_id"] for one in values["history"]] == list(range(2, MOST_REMEMBERED + 2))
    assert values["rows"] == MOST_REMEMBERED + 2


def test_no_reports_are_zeros_not_a_division() -> None:
    values = Counters().as_dict()
    assert (values["average_fill"], values["compression_ratio"], values["started_ms"]) == (0.0, 0.0, None)


def test_a_batch_write_replaces_the_file_and_a_stream_adds_to_it(tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    save(str(path), [report(rows=7)], add=False)
    save(str(path), [report(rows=10)], add=False)
    assert json.loads(path.read_text())["rows"] == 10
    save(str(path), [report(rows=5, batches=6, fill=0.25)], add=True)
    values = json.loads(path.read_text())
    assert (values["rows"], values["commits"], values["batches"]) == (15, 2, 8)
    assert values["average_fill"] == pytest.approx((2 * 0.5 + 6 * 0.25) / 8)
    assert [entry.name for entry in tmp_path.iterdir()] == ["counters.json"]


@pytest.mark.parametrize("text", ["no json", "[]", '{"format": 99}'])
def test_a_file_that_is_not_ours_is_not_added_to(tmp_path: Path, text: str) -> None:
    path = tmp_path / "precious.json"
    path.write_text(text)
    with pytest.raises(IllegalStateError, match="precious.json.*holds no counters"):
        save(str(path), [report()], add=True)
    assert path.read_text() == text


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    path.mkdir()
    with pytest.raises(OSError):
        save(str(path), [report()], add=False)
    assert [entry.name for entry in tmp_path.iterdir()] == ["counters.json"]


@pytest.mark.parametrize("messages", [[None], [report(), None]])
def test_a_commit_with_a_task_that_never_wrote_is_refused(messages: list[Any]) -> None:
    with pytest.raises(IllegalStateError, match=r"1 of \d tasks wrote nothing.*continuous"):
        complete(messages)


def test_an_abort_counts_what_stays() -> None:
    assert describe_abort([report(rows=4), None]).startswith(
        "write aborted: 1 of 2 tasks had finished, their 4 records stay"
    )


def test_transactions_and_skipped_tasks_are_counted() -> None:
    driver = TransactionIdentity("p-driver", 1, 1, 2)
    claim, write = Claim(driver), Write("q", 1)
    task = TaskWrite(0, driver._replace(transactional_id="p-1-0-0"), 10, 5)
    reports = [
        report(outcome=TaskOutcome(claim, write, 0, False, task)),
        report(1, rows=0, outcome=TaskOutcome(claim, write, 1)),
        report(2, rows=0, outcome=TaskOutcome(claim, write, 2, True)),
    ]
    counters = Counters()
    counters.add(reports)
    assert (counters.as_dict()["transactions"], counters.as_dict()["skipped_tasks"]) == (1, 1)
    assert [outcome.partition for outcome in outcomes([*reports, None, report()])] == [0, 1, 2]


SEEN = (("q", 5),)
MANY = tuple((f"a{number}", number) for number in range(MOST_APPS))
SKIPPED, REPEATED, FIRST = "is skipped, because write q/5", "was committed before: it is skipped", "is the first of its"


@pytest.mark.parametrize(
    ("app", "version", "versions", "stream", "batch"),
    [
        ("q", 6, SEEN, None, None),
        ("q", 5, SEEN, (logging.INFO, REPEATED), (logging.WARNING, REPEATED)),
        ("q", 4, SEEN, (logging.WARNING, SKIPPED), (logging.WARNING, SKIPPED)),
        ("r", 0, SEEN, None, None),
        ("r", 7, SEEN, (logging.WARNING, FIRST), None),
        ("r", 7, (), (logging.WARNING, FIRST), None),
        ("r", 7, MANY, None, None),
        ("q", NO_VERSION, SEEN, None, None),
    ],
)
def test_a_write_that_is_skipped_or_strange_says_so(
    app: str, version: int, versions: tuple[tuple[str, int], ...], stream: Any, batch: Any
) -> None:
    claim = Claim(TransactionIdentity("p-driver", 1, 2, 2), versions)
    for streaming, wanted in ((True, stream), (False, batch)):
        told = notice([TaskOutcome(claim, Write(app, version), 0)], streaming=streaming)
        assert (told is None) is (wanted is None)
        assert told is None or (told[0] == wanted[0] and wanted[1] in told[1])
    unfinished = claim._replace(unfinished=Write(app, version), lost=(0,))
    assert notice([TaskOutcome(unfinished, Write(app, version), 0)], streaming=True) is None
