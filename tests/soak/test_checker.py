"""The checker finds what is put in its way: each broken promise, and nothing in a run that kept them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from forebay.model import RecordMetadata
from tests.soak.checker import Finding, Promise, check, summary
from tests.soak.journal import Entry, Journal, Name, from_value, to_value
from tests.support.readback import ReadRecord

PROMISE = Promise(told_within_s=5.0)
SENDERS, EACH, PARTITIONS = 2, 12, 3


def told(entry: Entry, partition: int, offset: int) -> None:
    entry.moment = 10.0
    entry.note(RecordMetadata("t", partition, offset, 0, 0, 0), None)
    entry.told_at = 11.0


def read(name: Name, partition: int, offset: int) -> ReadRecord:
    key = b"%d" % name.number if name.number % 2 else None
    return ReadRecord(partition, offset, key, to_value(name, key, 50), (), 0)


def good_run() -> tuple[Journal, list[ReadRecord]]:
    """Two senders in turn over three partitions, all acknowledged, all there."""
    journal, records = Journal(), []
    ends = [0] * PARTITIONS
    for number in range(EACH):
        for sender in range(SENDERS):
            partition = number % PARTITIONS
            name = Name(sender, number)
            told(journal.enter(name), partition, ends[partition])
            records.append(read(name, partition, ends[partition]))
            ends[partition] += 1
    return journal, sorted(records, key=lambda record: record[:2])


def kinds(findings: list[Finding]) -> set[str]:
    return {finding.kind for finding in findings}


def test_a_good_run_has_no_findings() -> None:
    journal, records = good_run()
    assert check(PROMISE, journal, records) == []
    assert len(records) == SENDERS * EACH


@pytest.mark.parametrize("at", range(SENDERS * EACH))
def test_a_record_taken_away_is_missing(at: int) -> None:
    journal, records = good_run()
    lost = records.pop(at)
    (finding,) = check(PROMISE, journal, records)
    assert finding.kind == "missing" and str(from_value(lost.value, lost.key)) in finding.text


@pytest.mark.parametrize("at", range(SENDERS * EACH))
def test_a_record_read_twice_is_doubled(at: int) -> None:
    journal, records = good_run()
    records.append(records[at]._replace(offset=1000))
    assert "doubled" in kinds(check(PROMISE, journal, records))
    assert "doubled" not in kinds(check(Promise(5.0, once=False), journal, records))


def test_two_records_of_a_sender_exchanged_are_out_of_order_and_moved() -> None:
    journal, records = good_run()
    first, second = (
        r
        for r in records
        if r.partition == 0 and from_value(r.value, r.key).number in (0, 3) and from_value(r.value, r.key).sender == 0
    )
    records.remove(first)
    records.remove(second)
    records += [first._replace(offset=second.offset), second._replace(offset=first.offset)]
    assert kinds(check(PROMISE, journal, records)) == {"order", "moved"}
    assert kinds(check(Promise(5.0, in_order=False), journal, records)) == {"moved"}


def test_neighbours_of_two_senders_may_stand_in_any_order() -> None:
    journal, records = good_run()
    for entry in journal.entries():
        entry.offset = -1  # a duplicate's acknowledgement does not tell where it is
    first, second = records[:2]
    assert from_value(first.value, first.key).sender != from_value(second.value, second.key).sender
    records[:2] = [first._replace(offset=second.offset), second._replace(offset=first.offset)]
    assert check(PROMISE, journal, records) == []


def change_key(record: ReadRecord) -> ReadRecord:
    return record._replace(key=b"another")


def change_value(record: ReadRecord) -> ReadRecord:
    assert record.value is not None
    return record._replace(value=record.value[:-1] + b"?")


def drop_value(record: ReadRecord) -> ReadRecord:
    return record._replace(value=None)


@pytest.mark.parametrize("change", [change_key, change_value, drop_value])
def test_a_changed_record_is_garbled_and_missing(change: Callable[[ReadRecord], ReadRecord]) -> None:
    journal, records = good_run()
    records[5] = change(records[5])
    assert kinds(check(PROMISE, journal, records)) == {"garbled", "missing"}


def test_a_record_that_nobody_sent_is_a_stranger() -> None:
    journal, records = good_run()
    records.append(read(Name(7, 0), 0, 1000))
    assert kinds(check(PROMISE, journal, records)) == {"stranger"}


def test_a_failed_record_may_be_there_or_not_but_once() -> None:
    journal, records = good_run()
    entry = journal.enter(Name(0, EACH))
    entry.moment = 10.0
    entry.note(None, TimeoutError("expired"))
    entry.told_at = 12.0
    assert check(PROMISE, journal, records) == []
    there = read(entry.name, 0, 1000)
    assert check(PROMISE, journal, [*records, there]) == []
    assert kinds(check(PROMISE, journal, [*records, there, there._replace(offset=1001)])) == {"doubled"}


def test_outcomes_that_are_late_or_never_come_or_come_twice_are_found() -> None:
    journal, records = good_run()
    late, repeated = journal.entries()[:2]
    late.told_at = late.moment + 5.1
    repeated.told_times = 2
    journal.enter(Name(0, EACH))
    assert kinds(check(PROMISE, journal, records)) == {"late", "silent", "repeated"}


def transactional_run(end: str, visible: int) -> list[Finding]:
    journal, records = good_run()
    for number in range(4):
        name = Name(2, number, 0)
        told(journal.enter(name), 1, 100 + number)
        if number < visible:
            records.append(read(name, 1, 100 + number))
    journal.transactions[0] = end
    return check(PROMISE, journal, records)


def test_transactions_are_whole_or_not_there() -> None:
    assert transactional_run("committed", 4) == transactional_run("aborted", 0) == []
    assert transactional_run("unknown", 0) == transactional_run("unknown", 4) == []
    assert kinds(transactional_run("committed", 3)) == {"torn", "missing"}
    assert kinds(transactional_run("committed", 0)) == {"torn", "missing"}
    assert kinds(transactional_run("unknown", 1)) == {"torn"}
    assert kinds(transactional_run("aborted", 1)) == {"aborted"}


def test_a_summary_counts_kinds_and_shows_the_first() -> None:
    findings = [Finding("missing", f"number {number}") for number in range(30)] + [Finding("order", "x")]
    text = summary(findings, most=3)
    assert text.splitlines()[0] == "30 missing, 1 order"
    assert text.splitlines()[1:] == ["  missing: number 0", "  missing: number 1", "  missing: number 2"]
    assert summary([]) == "nothing found"
