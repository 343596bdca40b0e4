"""What a load handed to its producer and what it was told: the one account that the checker believes.

A value says who made it (sender, number, transaction) and carries a checksum over itself and its key.  A record's entry
is made before the producer gets it and belongs to its sender's thread; the producer's threads write only what they
tell.
"""

from __future__ import annotations

import threading
import time
import zlib
from typing import NamedTuple

from forebay.model import DeliveryReport, RecordMetadata

NO_TRANSACTION = -1
NOTHING, ACKNOWLEDGED, FAILED, UNKNOWN = "nothing", "acknowledged", "failed", "unknown"
"""What was told of a record; UNKNOWN where only a sum over several was."""


class Name(NamedTuple):
    """Which record this is, within its load."""

    sender: int
    number: int
    transaction: int = NO_TRANSACTION


class Entry:
    """One record: its name, and what was told of it, and how long after ``send()`` had returned."""

    __slots__ = ("error", "moment", "name", "offset", "partition", "told", "told_at", "told_times")

    def __init__(self, name: Name) -> None:
        self.name = name
        self.told = NOTHING
        self.told_times = 0
        self.partition = -1
        self.offset = -1
        self.error: BaseException | None = None
        # Seconds of the monotonic clock; a callback may come before send() returns, so before `moment`.
        self.moment = 0.0
        self.told_at = 0.0

    def tell(self, report: DeliveryReport) -> None:
        """Notes the outcome; fits ``on_delivery``."""
        self.note(report.metadata, report.error)

    def note(self, metadata: RecordMetadata | None, error: BaseException | None) -> None:
        """Notes the outcome as a future has it: there are metadata if there is no error."""
        self.told_at = time.monotonic()
        self.told_times += 1
        if metadata is not None and error is None:
            self.partition, self.offset = metadata.partition, metadata.offset
        self.error = error
        self.told = ACKNOWLEDGED if error is None else FAILED

    @property
    def waited_s(self) -> float:
        """Seconds from the return of ``send()`` to the outcome."""
        return self.told_at - self.moment


class Journal:
    """The entries of one load; each sender adds its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Entry] = []  # under the lock
        self.transactions: dict[int, str] = {}
        """Transaction to "committed", "aborted" or "unknown"; written by the one thread that ends them."""

    def enter(self, name: Name) -> Entry:
        """A new entry, before its record is sent."""
        entry = Entry(name)
        with self._lock:
            self._entries.append(entry)
        return entry

    def entries(self) -> list[Entry]:
        """All so far."""
        with self._lock:
            return list(self._entries)

    def count(self) -> int:
        """How many entries there are."""
        with self._lock:
            return len(self._entries)

    def untold(self) -> list[Entry]:
        """Those of which nothing was told yet."""
        return [entry for entry in self.entries() if entry.told == NOTHING]


def to_value(name: Name, key: bytes | None, size: int) -> bytes:
    """The value of a record: its name, a checksum, and filling up to about ``size`` bytes."""
    head = b"%d|%d|%d|" % name
    filling = (head * (size // len(head) + 1))[: max(size - len(head), 0)]
    return b"%s%08x|%s" % (head, _checksum(head, key, filling), filling)


def from_value(value: bytes | None, key: bytes | None) -> Name:
    """The name in a value; ValueError when value or key are not what was sent."""
    parts = (value or b"").split(b"|", 4)
    if len(parts) != 5:
        raise ValueError(f"not a value of this run: {value!r}")
    sender, number, transaction, checksum, filling = parts
    head = b"%s|%s|%s|" % (sender, number, transaction)
    if int(checksum, 16) != _checksum(head, key, filling):
        raise ValueError(f"value or key are not those that were sent: {key!r}, {value!r}")
    return Name(int(sender), int(number), int(transaction))


def _checksum(head: bytes, key: bytes | None, filling: bytes) -> int:
    return zlib.crc32(filling, zlib.crc32(b"\x00null" if key is None else key, zlib.crc32(head)))
