"""A sink that acknowledges: the part of a Kafka broker that a producer needs.  It reads no record.

Produce requests are answered as soon as they are in; of a record batch only its length and its count are read, and
its records are received over and over into the same half a megabyte, as a bare connection's receiver does it: a whole
request in memory would cost the processor's cache, and so the client beside it, for nothing.
Records/s against it are bound by the client, not by a broker (which on a shared machine takes more CPU than a
good client).  Every topic that is asked for exists.  With a certificate the sink speaks TLS.  ``python -m bench
sink`` runs it in the foreground; :class:`AcknowledgingSink` runs it as a process of its own and knows what arrived.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Any, Self

from bench.support import child_environment, cpu_seconds

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, API_VERSIONS, INIT_PRODUCER_ID = 0, 1, 3, 10, 18, 22
# Fetch and FindCoordinator are never asked for, but librdkafka concludes from them what a broker can do.
VERSIONS = {
    PRODUCE: (3, 13),
    FETCH: (4, 11),
    METADATA: (1, 12),
    FIND_COORDINATOR: (0, 2),
    API_VERSIONS: (0, 4),
    INIT_PRODUCER_ID: (0, 4),
}
GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY = 71, 72
TELEMETRY_VERSIONS = {GET_TELEMETRY_SUBSCRIPTIONS: (0, 0), PUSH_TELEMETRY: (0, 0)}
PRODUCE_BY_ID, METADATA_WITH_IDS = 13, 10
FLEXIBLE_SINCE = {PRODUCE: 9, METADATA: 9, API_VERSIONS: 3, INIT_PRODUCER_ID: 2, **dict.fromkeys(TELEMETRY_VERSIONS, 0)}
UNSUPPORTED_VERSION = 35
RECEIVE_SIZE = 512 << 10
BATCH_START = 27
"""Bytes of a record batch up to its count of records."""
NODE_ID = 1

_INT16, _INT32 = Struct(">h"), Struct(">i")
_HEADER = Struct(">hhih")
_PARTITION = Struct(">ihq")


class Stream:
    """A connection's bytes, from front to back through one buffer; EOFError where the client has gone."""

    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer
        self.buffer = bytearray(RECEIVE_SIZE)
        self._view = memoryview(self.buffer)
        # What was received and not taken is buffer[begin:end].
        self._begin = self._end = 0
        self.taken = 0

    def take(self, size: int) -> int:
        """Where in the buffer the next ``size`` bytes are, until the next call; at most RECEIVE_SIZE."""
        while self._end - self._begin < size:
            if self._begin + size > RECEIVE_SIZE or self._begin == self._end:
                kept = self._end - self._begin
                self.buffer[:kept] = self.buffer[self._begin : self._end]
                self._begin, self._end = 0, kept
            self._end += self._receive(self._end)
        at = self._begin
        self._begin += size
        self.taken += size
        return at

    def skip(self, size: int) -> None:
        """The next ``size`` bytes are of no interest."""
        self.taken += size
        self._begin += size
        while self._begin > self._end:
            self._begin -= self._end
            self._end = self._receive(0)

    def _receive(self, at: int) -> int:
        received = self.peer.recv_into(self._view[at:])
        if not received:
            raise EOFError
        return received


class Reader:
    """A request's fields from front to back; what is malformed raises struct.error or IndexError."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.data = stream.buffer
        self.flexible = False

    def int16(self) -> int:
        return int(_INT16.unpack_from(self.data, self.stream.take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack_from(self.data, self.stream.take(4))[0])

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.stream.take(1)]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def count(self) -> int:
        """Of an array's elements or of bytes; -1 for null."""
        return self.varint() - 1 if self.flexible else self.int32()

    def string(self) -> bytes | None:
        size = self.varint() - 1 if self.flexible else self.int16()
        if size < 0:
            return None
        at = self.stream.take(size)
        return bytes(self.data[at : at + size])

    def uuid(self) -> bytes:
        at = self.stream.take(16)
        return bytes(self.data[at : at + 16])

    def tags(self) -> None:
        if self.flexible:
            for _ in range(self.varint()):
                self.varint()
                self.stream.skip(self.varint())


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Writer:
    """An answer's fields in order; ``out`` has what was written."""

    def __init__(self, flexible: bool) -> None:
        self.out = bytearray()
        self.flexible = flexible

    def raw(self, data: bytes) -> None:
        self.out += data

    def int16(self, value: int) -> None:
        self.out += _INT16.pack(value)

    def int32(self, value: int) -> None:
        self.out += _INT32.pack(value)

    def count(self, value: int) -> None:
        self.out += varint(value + 1) if self.flexible else _INT32.pack(value)

    def string(self, value: bytes | None) -> None:
        size = -1 if value is None else len(value)
        self.out += varint(size + 1) if self.flexible else _INT16.pack(size)
        self.out += value or b""

    def tags(self) -> None:
        if self.flexible:
            self.out.append(0)


class Log:
    """What arrived; connections' threads touch it under ``lock``.  Clients push metrics each ``push_interval_ms``."""

    def __init__(self, partitions: int, push_interval_ms: int = 0) -> None:
        self.partitions = partitions
        self.push_interval_ms = push_interval_ms
        self.versions = {**VERSIONS, **(TELEMETRY_VERSIONS if push_interval_ms else {})}
        self.lock = threading.Lock()
        self.ends: dict[bytes, list[int]] = {}
        self.names: dict[bytes, bytes] = {}
        """Topics by their ids, 16 bytes each."""
        self.requests = 0
        self.batches = 0
        self.bytes = 0
        self.pushes = 0

    def topic(self, name: bytes) -> list[int]:
        """The next offset of each partition."""
        return self.ends.setdefault(name, [0] * self.partitions)

    def topic_id(self, name: bytes) -> bytes:
        """The same one in every run."""
        topic_id = hashlib.md5(name, usedforsecurity=False).digest()
        self.names[topic_id] = name
        return topic_id

    def summary(self) -> dict[str, Any]:
        """Counts so far, as values of JSON."""
        with self.lock:
            records = {name.decode(): sum(ends) for name, ends in self.ends.items()}
            counts = {each: getattr(self, each) for each in ("requests", "batches", "bytes", "pushes")}
        return {"records": records, **counts, "cpu_s": cpu_seconds()}


class Connection:
    """One client's requests, answered in order on a thread of its own."""

    def __init__(self, peer: socket.socket, log: Log, port: int) -> None:
        self.peer = peer
        self.log = log
        self.port = port
        self.answers: dict[int, Callable[[int, Reader, Writer], bool]] = {
            PRODUCE: self.produce,
            METADATA: self.metadata,
            API_VERSIONS: self.api_versions,
            INIT_PRODUCER_ID: self.init_producer_id,
            GET_TELEMETRY_SUBSCRIPTIONS: self.telemetry_subscription,
            PUSH_TELEMETRY: self.telemetry,
        }

    def serve(self) -> None:
        """Until the client goes, or sends what makes no sense."""
        with self.peer:
            try:
                self.take_requests()
            except ConnectionError:
                # A client that leaves with answers on the way resets the connection.
                return

    def take_requests(self) -> None:
        stream = Stream(self.peer)
        reader = Reader(stream)
        while True:
            reader.flexible = False
            try:
                size = reader.int32()
                end = stream.taken + size
                self.answer(reader, size)
                stream.skip(end - stream.taken)
            except EOFError:
                return

    def answer(self, reader: Reader, size: int) -> None:
        """One request of so many bytes."""
        api, version, correlation, name_size = _HEADER.unpack_from(reader.data, reader.stream.take(_HEADER.size))
        reader.stream.skip(max(name_size, 0))
        reader.flexible = version >= FLEXIBLE_SINCE.get(api, 99)
        reader.tags()
        writer = Writer(reader.flexible)
        writer.int32(correlation)
        if api != API_VERSIONS:
            writer.tags()
        if self.answers[api](version, reader, writer):
            self.peer.sendall(_INT32.pack(len(writer.out)) + writer.out)
        if api == PRODUCE:
            with self.log.lock:
                self.log.requests += 1
                self.log.bytes += size

    def api_versions(self, version: int, reader: Reader, writer: Writer) -> bool:
        supported = version <= VERSIONS[API_VERSIONS][1]
        # A version that is unknown here is refused in the layout of the oldest.
        writer.flexible = supported and writer.flexible
        writer.int16(0 if supported else UNSUPPORTED_VERSION)
        writer.count(len(self.log.versions))
        for api, (oldest, newest) in self.log.versions.items():
            for number in (api, oldest, newest):
                writer.int16(number)
            writer.tags()
        if supported and version >= 1:
            writer.int32(0)
        writer.tags()
        return True

    def metadata(self, version: int, reader: Reader, writer: Writer) -> bool:
        asked = []
        for _ in range(reader.count()):
            reader.stream.skip(16 if version >= 10 else 0)
            asked.append(reader.string() or b"")
            reader.tags()
        with self.log.lock:
            for name in asked:
                self.log.topic(name)
            names = asked or list(self.log.ends)
        if version >= 3:
            writer.int32(0)
        writer.count(1)
        writer.int32(NODE_ID)
        writer.string(b"127.0.0.1")
        writer.int32(self.port)
        writer.string(None)
        writer.tags()
        if version >= 2:
            writer.string(b"acknowledging-sink")
        writer.int32(NODE_ID)
        writer.count(len(names))
        for name in names:
            self.topic(name, version, writer)
        if 8 <= version <= 10:
            writer.int32(0)
        writer.tags()
        return True

    def topic(self, name: bytes, version: int, writer: Writer) -> None:
        writer.int16(0)
        writer.string(name)
        if version >= METADATA_WITH_IDS:
            with self.log.lock:
                writer.raw(self.log.topic_id(name))
        writer.raw(b"\x00")
        writer.count(self.log.partitions)
        for partition in range(self.log.partitions):
            writer.int16(0)
            writer.int32(partition)
            writer.int32(NODE_ID)
            if version >= 7:
                writer.int32(0)
            for _ in ("replicas", "in sync"):
                writer.count(1)
                writer.int32(NODE_ID)
            if version >= 5:
                writer.count(0)
            writer.tags()
        if version >= 8:
            writer.int32(0)
        writer.tags()

    def init_producer_id(self, version: int, reader: Reader, writer: Writer) -> bool:
        writer.raw(bytes(6) + (1000).to_bytes(8, "big") + bytes(2))
        writer.tags()
        return True

    def telemetry_subscription(self, version: int, reader: Reader, writer: Writer) -> bool:
        # No throttling, no error, an instance id, a subscription id, zstd; 1 MiB at most, differences, all metrics.
        writer.raw(bytes(21) + b"\x01" + _INT32.pack(1) + b"\x02\x04")
        writer.raw(_INT32.pack(self.log.push_interval_ms) + _INT32.pack(1 << 20) + b"\x01\x02\x02*\x00")
        return True

    def telemetry(self, version: int, reader: Reader, writer: Writer) -> bool:
        writer.raw(bytes(7))
        with self.log.lock:
            self.log.pushes += 1
        return True

    def produce(self, version: int, reader: Reader, writer: Writer) -> bool:
        reader.string()
        acks = reader.int16()
        reader.int32()
        topics = reader.count()
        writer.count(topics)
        for _ in range(topics):
            self.produce_topic(version, reader, writer)
        writer.int32(0)
        writer.tags()
        return acks != 0

    def produce_topic(self, version: int, reader: Reader, writer: Writer) -> None:
        by_id = version >= PRODUCE_BY_ID
        name = reader.uuid() if by_id else reader.string() or b""
        with self.log.lock:
            ends = self.log.topic(self.log.names[name] if by_id else name)
        partitions = reader.count()
        if by_id:
            writer.raw(name)
        else:
            writer.string(name)
        writer.count(partitions)
        for _ in range(partitions):
            partition = reader.int32()
            size = reader.count()
            batches, records = self.count_batches(reader.stream, size)
            with self.log.lock:
                writer.raw(_PARTITION.pack(partition, 0, ends[partition]))
                ends[partition] += records
                self.log.batches += batches
            reader.tags()
            writer.raw(b"\xff" * 8 + (b"\x00" * 8 if version >= 5 else b""))
            if version >= 8:
                writer.count(0)
                writer.string(None)
            writer.tags()
        reader.tags()
        writer.tags()

    def count_batches(self, stream: Stream, size: int) -> tuple[int, int]:
        """Record batches in the next ``size`` bytes, and the records in them by their own counts."""
        batches = records = 0
        end = stream.taken + size
        while stream.taken < end:
            at = stream.take(BATCH_START)
            # The length is after the base offset, the last record's offset delta after 11 bytes more.
            length = int(_INT32.unpack_from(stream.buffer, at + 8)[0])
            records += _INT32.unpack_from(stream.buffer, at + 23)[0] + 1
            batches += 1
            stream.skip(12 + length - BATCH_START)
        return batches, records


def serve(listener: socket.socket, log: Log, tls: ssl.SSLContext | None = None) -> None:
    """Takes connections until the listener is shut down."""
    port = listener.getsockname()[1]
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            # The handshake is made by the connection's own thread, with its first read.
            peer = tls.wrap_socket(peer, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=Connection(peer, log, port).serve, daemon=True).start()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench sink", description=__doc__)
    parser.add_argument("--partitions", type=int, default=6, help="of every topic (default: %(default)s)")
    parser.add_argument("--push-interval", type=int, default=0, help="ms between pushes of metrics (default: none)")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument("--certificate", type=Path, help="a PEM file with key and chain: TLS instead of plaintext")
    options = parser.parse_args(arguments)
    log = Log(options.partitions, options.push_interval)
    tls = None
    if options.certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(options.certificate)
    listener = socket.create_server(("127.0.0.1", options.port))
    threading.Thread(target=serve, args=(listener, log, tls), daemon=True).start()
    print(f"127.0.0.1:{listener.getsockname()[1]}", flush=True)
    try:
        # Each line asks for the counts; the end of the input is the end.
        while sys.stdin.readline():
            print(json.dumps(log.summary()), flush=True)
    except KeyboardInterrupt:
        pass
    return 0


class AcknowledgingSink:
    """The sink as a process of its own, while in ``with``; with a ``certificate``, a PEM file with its key, TLS."""

    def __init__(self, partitions: int = 6, certificate: Path | None = None, push_interval_ms: int = 0) -> None:
        self.partitions = partitions
        self.push_interval_ms = push_interval_ms
        self.certificate = certificate
        self.bootstrap_servers = ""

    def __enter__(self) -> Self:
        more = ["--push-interval", str(self.push_interval_ms)]
        more += [] if self.certificate is None else ["--certificate", str(self.certificate)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.sink", "--partitions", str(self.partitions), *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=child_environment(),
        )
        self.bootstrap_servers = self._line().strip()
        return self

    @property
    def pid(self) -> int:
        """Of the sink's process."""
        return self._process.pid

    def summary(self) -> dict[str, Any]:
        """Counts so far: records by topic, requests, batches, bytes, pushes, and the sink's own CPU seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._line())
        return found

    def _line(self) -> str:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], 30)[0]:
            raise RuntimeError("the acknowledging sink does not answer")
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the acknowledging sink ended with status {self._process.wait()}")
        return line

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        self._process.stdout.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
