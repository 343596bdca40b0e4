"""Compares what a load was told with what a reader found; knows neither the producer nor the faults.

:func:`check` returns findings, none for a run that kept its promises.  The reader's records come in the order of
(partition, offset) and hold only what a ``read_committed`` consumer hands out.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.soak.journal import ACKNOWLEDGED, NO_TRANSACTION, NOTHING, Entry, Journal, Name, from_value
from tests.support.readback import ReadRecord


@dataclass(frozen=True, slots=True)
class Promise:
    """What a load's settings promise beside that nothing acknowledged is lost.

    ``told_within_s`` is the longest a future may take, from the return of ``send()``.
    """

    told_within_s: float
    once: bool = True
    in_order: bool = True


class Finding(NamedTuple):
    """A broken promise; ``kind`` is one word of the list in :func:`check`."""

    kind: str
    text: str


class Place(NamedTuple):
    """Where a record was read."""

    partition: int
    offset: int


@dataclass(slots=True)
class Account:
    """One load's side of the comparison, and the reader's."""

    entries: Mapping[Name, Entry]
    transactions: Mapping[int, str]
    places: dict[Name, list[Place]] = field(default_factory=lambda: defaultdict(list))
    garbled: list[str] = field(default_factory=list)

    def acknowledged(self) -> Iterator[Entry]:
        """The records that must be there, or must have been: those of aborted transactions were acknowledged too."""
        return (entry for entry in self.entries.values() if entry.told == ACKNOWLEDGED)


def check(promise: Promise, journal: Journal, records: Iterable[ReadRecord]) -> list[Finding]:
    """Every way in which the records differ from what was promised.

    Kinds: ``garbled`` and ``stranger`` (not what was sent), ``missing``, ``moved`` (not where its metadata says),
    ``doubled``, ``order``, ``aborted`` (visible although), ``torn`` (a transaction in part), ``late``, ``silent``
    (no outcome at all), ``repeated`` (more than one outcome).
    """
    account = _account(journal, records)
    findings = [Finding("garbled", text) for text in account.garbled]
    findings += _strangers(account)
    findings += _missing(account)
    findings += _late(account, promise.told_within_s)
    findings += _transactions(account)
    if promise.once:
        findings += _doubled(account)
    if promise.in_order:
        findings += _disorder(account)
    return findings


def _account(journal: Journal, records: Iterable[ReadRecord]) -> Account:
    account = Account({entry.name: entry for entry in journal.entries()}, journal.transactions)
    for record in records:
        try:
            name = from_value(record.value, record.key)
        except ValueError as error:
            account.garbled.append(f"partition {record.partition}, offset {record.offset}: {error}")
            continue
        account.places[name].append(Place(record.partition, record.offset))
    return account


def _strangers(account: Account) -> Iterator[Finding]:
    for name, places in account.places.items():
        if name not in account.entries:
            yield Finding("stranger", f"{name} was read at {places} and never sent")


def _missing(account: Account) -> Iterator[Finding]:
    for entry in account.acknowledged():
        # What becomes of a transaction's records is the transaction's business.
        if entry.name.transaction != NO_TRANSACTION and account.transactions.get(entry.name.transaction) != "committed":
            continue
        places = account.places.get(entry.name, [])
        told = Place(entry.partition, entry.offset)
        if not places:
            yield Finding("missing", f"{entry.name} was acknowledged at {told}, and is nowhere")
        elif entry.offset >= 0 and told not in places:
            yield Finding("moved", f"{entry.name} was acknowledged at {told}, and is at {places}")


def _late(account: Account, limit_s: float) -> Iterator[Finding]:
    for entry in account.entries.values():
        if entry.told == NOTHING:
            yield Finding("silent", f"{entry.name} has no outcome")
        elif entry.waited_s > limit_s:
            yield Finding("late", f"{entry.name} took {entry.waited_s:.3f} s of {limit_s:g} s: {entry.error!r}")
        if entry.told_times > 1:
            yield Finding("repeated", f"{entry.name} was told {entry.told_times} times")


def _doubled(account: Account) -> Iterator[Finding]:
    for name, places in account.places.items():
        if len(places) > 1:
            entry = account.entries.get(name)
            yield Finding("doubled", f"{name}, {entry.told if entry else 'never sent'}, is at {places}")


def _disorder(account: Account) -> Iterator[Finding]:
    """A sender's records in one partition ascend by number, those that failed and were written nevertheless too."""
    lines: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for name, places in account.places.items():
        for place in places:
            lines[place.partition, name.sender].append((place.offset, name.number))
    for (partition, sender), line in lines.items():
        line.sort()
        for (before, first), (offset, second) in itertools.pairwise(line):
            if second < first:
                where = f"partition {partition}, sender {sender}"
                yield Finding("order", f"{where}: number {first} at {before} is before {second} at {offset}")


def _transactions(account: Account) -> Iterator[Finding]:
    sent: dict[int, list[Name]] = defaultdict(list)
    for name in account.entries:
        if name.transaction != NO_TRANSACTION:
            sent[name.transaction].append(name)
    for transaction, names in sent.items():
        end = account.transactions.get(transaction, "unknown")
        seen = sum(name in account.places for name in names)
        if end == "aborted" and seen:
            yield Finding("aborted", f"transaction {transaction} was aborted, and {seen} of {len(names)} are visible")
        elif end == "committed" and seen < len(names):
            yield Finding("torn", f"transaction {transaction} was committed, and {seen} of {len(names)} are visible")
        elif end == "unknown" and 0 < seen < len(names):
            yield Finding("torn", f"transaction {transaction} ended unknown, and {seen} of {len(names)} are visible")


def summary(findings: Sequence[Finding], most: int = 20) -> str:
    """How many of each kind, and the first few of them."""
    if not findings:
        return "nothing found"
    counts: dict[str, int] = defaultdict(int)
    for finding in findings:
        counts[finding.kind] += 1
    head = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    return "\n".join([head, *(f"  {finding.kind}: {finding.text}" for finding in findings[:most])])
