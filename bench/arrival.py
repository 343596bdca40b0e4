"""The time at which the system had an acknowledgement: a preloaded library logs the wire, independent of the GIL.

The library (``arrival.c``) notes what ``sendmsg`` and ``recv`` moved, and when; the client sees the same bytes in the
same calls.  From that log come, for each record's offset, three moments that need no GIL: the request's last byte was
handed to the system, the system had the answer's last byte, the client read it.  "Had" is the earliest of two things
that may only be late: the system's stamp of the bytes, and the first look of the library's own thread that saw them
counted.  The stamp alone would not do: bytes that arrive while earlier ones wait to be read are joined to them, and all
of them get the later stamp.  Nothing of it is in the product, whose send path would pay for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from forebay._protocol.metadata import decode_metadata
from forebay._protocol.produce_response import decode_produce

SENT, READ, HELD = 1, 2, 3
PRODUCE, METADATA = 0, 3
FLEXIBLE_SINCE = 9
"""Version of a produce or metadata answer from which tagged fields end its header."""
METADATA_WITH_IDS = 10
ENTRY = Struct("=iiiiqq")
"""As ``struct entry`` in the library; the bytes follow, up to the next multiple of 8."""

_LENGTH, _REQUEST, _ANSWER = Struct(">i"), Struct(">hhi"), Struct(">i")


class WireUnclear(RuntimeError):
    """The log does not tell when something was acknowledged."""


class Entry(NamedTuple):
    """What was sent or read by one call, ``at`` ns; ``received`` is the stamp of a read, 0 for none.

    HELD has no data: by then the system had received so many bytes (``received``) since the connection began.
    """

    kind: int
    fd: int
    generation: int
    at: int
    received: int = 0
    data: bytes = b""


class Moments(NamedTuple):
    """In ns on the clock of ``time.monotonic_ns``: request handed over, answer with the system, answer read."""

    sent: int
    received: int
    read: int


class Frames:
    """One direction of a connection, cut at the lengths in it."""

    def __init__(self) -> None:
        self.rest = bytearray()
        self.end = 0

    def completed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Frames that these bytes complete, without their lengths; each with the place in the stream of its end."""
        self.rest += data
        while len(self.rest) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self.rest)[0]
            if end < _LENGTH.size:
                raise WireUnclear(f"a frame of {end - _LENGTH.size} bytes, at least 0 are allowed")
            if len(self.rest) < end:
                return
            body = bytes(self.rest[_LENGTH.size : end])
            del self.rest[:end]
            self.end += end
            yield self.end, body


class Connection:
    """One connection's requests and answers, and how much it had received when."""

    def __init__(self) -> None:
        self.requests, self.answers = Frames(), Frames()
        self.waiting: dict[int, tuple[int, int, int]] = {}
        """By correlation id: api key, version, when the last byte was sent."""
        self.held: list[tuple[int, int]] = []
        """Pairs of (bytes, ns)."""
        self.produced: list[tuple[int, int, bytes, Moments]] = []
        """Answers to produce requests: end in the stream, version, body, moments by stamp alone."""
        self.names: dict[bytes, str] = {}
        """Topics by the ids that metadata gave them: newer produce answers have nothing else."""

    def add(self, entry: Entry) -> None:
        if entry.kind == SENT:
            for _, body in self.requests.completed(entry.data):
                key, version, correlation = _REQUEST.unpack_from(body)
                self.waiting[correlation] = (key, version, entry.at)
        elif entry.kind == READ:
            for end, body in self.answers.completed(entry.data):
                self._answered(end, body, entry)
        elif entry.kind == HELD:
            self.held.append((entry.received, entry.at))
        else:
            raise WireUnclear(f"an entry of kind {entry.kind}, only {SENT}, {READ} and {HELD} are known")

    def _answered(self, end: int, body: bytes, entry: Entry) -> None:
        (correlation,) = _ANSWER.unpack_from(body)
        if correlation not in self.waiting:
            raise WireUnclear(f"descriptor {entry.fd}: answer {correlation} has no request")
        key, version, sent = self.waiting.pop(correlation)
        if key == PRODUCE:
            moments = Moments(sent, entry.received or entry.at, entry.at)
            self.produced.append((end, version, body, moments))
        elif key == METADATA and version >= METADATA_WITH_IDS:
            for topic in decode_metadata(version, after_header(version, body)).topics:
                if topic.topic_id is not None and topic.name is not None:
                    self.names[topic.topic_id] = topic.name

    def acknowledged(self, names: Mapping[bytes, str]) -> Iterator[tuple[tuple[str, int], int, Moments]]:
        """(topic, partition), base offset and moments of each batch that was written.

        Args:
            names: of topics by their ids, from all connections.
        """
        # The first look at each count, and no look counts less than an earlier one.
        self.held.sort()
        counts = [count for count, _ in self.held]
        for end, version, body, moments in self.produced:
            place = bisect_left(counts, end)
            if place < len(counts):
                moments = moments._replace(received=min(moments.received, self.held[place][1]))
            for one in decode_produce(version, after_header(version, body)).partitions:
                if one.error_code == 0:
                    if one.topic_id is not None and one.topic_id not in names:
                        raise WireUnclear(f"an answer about topic id {one.topic_id.hex()}, which no metadata named")
                    name = one.topic if one.topic_id is None else names[one.topic_id]
                    yield (name, one.partition), one.base_offset, moments


class Acknowledgements:
    """When each batch was acknowledged, by its place in its partition."""

    def __init__(self) -> None:
        self._moments: dict[tuple[str, int], dict[int, Moments]] = {}
        self._bases: dict[tuple[str, int], list[int]] = {}

    def add(self, partition: tuple[str, int], base: int, moments: Moments) -> None:
        """The first answer counts."""
        self._moments.setdefault(partition, {}).setdefault(base, moments)

    def of(self, topic: str, partition: int, offset: int) -> Moments:
        """Those of the record's batch, which is the one with the largest base up to its offset."""
        found = self._moments.get((topic, partition), {})
        bases = self._bases.get((topic, partition), ())
        if len(bases) != len(found):
            bases = self._bases[topic, partition] = sorted(found)
        place = bisect_right(bases, offset)
        if not place:
            raise WireUnclear(f"{topic}-{partition}@{offset}: no answer in the log has this offset")
        return found[bases[place - 1]]


def after_header(version: int, body: bytes) -> bytes:
    """A produce or metadata answer without its header."""
    if version < FLEXIBLE_SINCE:
        return body[_ANSWER.size :]
    if body[_ANSWER.size]:
        raise WireUnclear(f"{body[_ANSWER.size]} tagged fields in an answer's header, 0 are known")
    return body[_ANSWER.size + 1 :]


def acknowledgements(entries: Iterable[Entry]) -> Acknowledgements:
    """What a log says of the records that were written.

    Raises:
        WireUnclear: its bytes are not those of Kafka's connections from their beginning.
    """
    connections: dict[tuple[int, int], Connection] = {}
    for entry in entries:
        # A descriptor that was closed and given again is another connection.
        connections.setdefault((entry.fd, entry.generation), Connection()).add(entry)
    found = Acknowledgements()
    names = {topic_id: name for connection in connections.values() for topic_id, name in connection.names.items()}
    for connection in connections.values():
        for partition, base, moments in connection.acknowledged(names):
            found.add(partition, base, moments)
    return found


def entries_of(log: bytes) -> Iterator[Entry]:
    """A log's entries in their order.

    Raises:
        WireUnclear: the last one is cut off.
    """
    at = 0
    while at < len(log):
        if len(log) - at < ENTRY.size:
            raise WireUnclear(f"{len(log) - at} bytes at the log's end, an entry has at least {ENTRY.size}")
        kind, fd, generation, size, moment, received = ENTRY.unpack_from(log, at)
        begin = at + ENTRY.size
        at = begin + (size + 7) // 8 * 8
        if at > len(log):
            raise WireUnclear(f"an entry of {size} bytes, {len(log) - begin} are left of the log")
        yield Entry(kind, fd, generation, moment, received, log[begin : begin + size])


@contextlib.contextmanager
def preloaded() -> Iterator[dict[str, str]]:
    """What a child's environment needs in addition; empty where there is no compiler, or no such preloading."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        yield {}
        return
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "arrival.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-pthread", "-o", library, source], check=True)
        yield {"LD_PRELOAD": str(library)}


def is_logged() -> bool:
    """Whether the library is in this process."""
    try:
        ctypes.c_void_p.in_dll(ctypes.PyDLL(None), "forebay_bench_log")
    except ValueError:
        return False
    return True


def wire_log() -> bytes:
    """The log so far, of a process that ``is_logged``; its connections should be closed.

    Raises:
        WireUnclear: there was no room for all of it.
    """
    process = ctypes.PyDLL(None)
    used = ctypes.c_size_t.in_dll(process, "forebay_bench_log_used").value
    if ctypes.c_int.in_dll(process, "forebay_bench_log_full").value:
        raise WireUnclear(f"the log is full: {used} bytes were to be written, FOREBAY_BENCH_LOG_BYTES allows fewer")
    return ctypes.string_at(ctypes.c_void_p.in_dll(process, "forebay_bench_log").value or 0, used)
