from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from bench.arrival import (
    ENTRY,
    HELD,
    READ,
    SENT,
    Acknowledgements,
    Entry,
    Moments,
    WireUnclear,
    acknowledgements,
    entries_of,
    is_logged,
    preloaded,
)
from bench.support import child_environment
from tests.support.pace import HANG_S
from tests.unit.bench.wire import answer, answer_by_id, flexible_answer, framed, metadata_answer, request

FD = 7
needs_library = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not (shutil.which("cc") or shutil.which("gcc")),
    reason="the library is preloaded on Linux, and compiled when it is needed",
)


def sent(data: bytes, at: int, generation: int = 0) -> Entry:
    return Entry(SENT, FD, generation, at, 0, data)


def read(data: bytes, at: int, stamp: int = 0, generation: int = 0) -> Entry:
    return Entry(READ, FD, generation, at, stamp, data)


def held(size: int, at: int) -> Entry:
    return Entry(HELD, FD, 0, at, size)


def logged(entry: Entry) -> bytes:
    about = ENTRY.pack(entry.kind, entry.fd, entry.generation, len(entry.data), entry.at, entry.received)
    return about + entry.data + bytes(-len(entry.data) % 8)


# -- the log's reader ------------------------------------------------------------------------------------


def test_entries_come_back_as_they_were_written() -> None:
    entries = [sent(b"request", 3), held(12, 5), read(b"12345678", 9, 4, generation=2), read(b"x", 10)]
    log = b"".join(map(logged, entries))
    assert list(entries_of(log)) == entries
    with pytest.raises(WireUnclear, match="an entry of 1 bytes, 0 are left"):
        list(entries_of(log[:-8]))
    with pytest.raises(WireUnclear, match="5 bytes at the log's end"):
        list(entries_of(log + bytes(5)))


def test_an_answer_is_matched_with_its_request_whatever_the_pieces() -> None:
    first, second, answers = request(1), request(2), answer(1, (0, 10), (3, 0)) + answer(2, (0, 12))
    entries = [
        sent(first[:5], 100),
        sent(first[5:] + second[:2], 110),
        sent(second[2:], 120),
        read(answers[:3], 200, 190),
        read(answers[3:-1], 210, 205),
        read(answers[-1:], 220, 215),
    ]
    found = acknowledgements(entries)
    assert found.of("t", 0, 10) == found.of("t", 0, 11) == found.of("t", 3, 0) == Moments(110, 205, 210)
    assert found.of("t", 0, 12) == found.of("t", 0, 9999) == Moments(120, 215, 220)


def test_the_system_had_an_answer_at_the_earliest_of_what_may_only_be_late() -> None:
    one, other = answer(1, (0, 0)), answer(2, (0, 1))
    entries = [
        sent(request(1) + request(2), 10),
        # Joined while they waited: both have the stamp of the second.
        read(one, 200, 150),
        read(other, 201, 150),
        held(len(one) - 1, 40),
        held(len(one), 50),
        held(len(one), 60),
        held(len(one + other), 170),
    ]
    found = acknowledgements(entries)
    assert found.of("t", 0, 0) == Moments(10, 50, 200)
    assert found.of("t", 0, 1) == Moments(10, 150, 201)


def test_without_a_stamp_or_a_look_an_answer_counts_as_received_when_it_was_read() -> None:
    found = acknowledgements([sent(request(1), 10), read(answer(1, (0, 0)), 30)])
    assert found.of("t", 0, 0) == Moments(10, 30, 30)


def test_answers_with_tagged_fields_and_to_other_requests_are_told_apart() -> None:
    entries = [
        sent(request(1, key=3) + request(2, version=9) + request(3, version=9), 10),
        read(framed(b"\x00\x00\x00\x01anything") + flexible_answer(2, 4, 77), 20),
    ]
    assert acknowledgements(entries).of("t", 4, 77) == Moments(10, 20, 20)
    with pytest.raises(WireUnclear, match="1 tagged fields in an answer's header"):
        acknowledgements([*entries, read(flexible_answer(3, 4, 78, header_tags=1), 30)])


def test_answers_by_id_are_about_the_topic_that_metadata_gave_the_id() -> None:
    """On whatever connection it came; an id that no metadata named is no guess."""
    topic_id = bytes(range(16))
    asked = [sent(request(1, version=12, key=3), 10), read(metadata_answer(1, topic_id), 20)]
    answered = [
        sent(request(1, version=13), 30, generation=1),
        read(answer_by_id(1, topic_id, 4, 77), 40, generation=1),
    ]
    assert acknowledgements(asked + answered).of("t", 4, 77) == Moments(30, 40, 40)
    with pytest.raises(WireUnclear, match=f"topic id {topic_id.hex()}, which no metadata named"):
        acknowledgements(answered)


def test_only_what_was_written_counts_and_of_two_answers_the_first() -> None:
    entries = [
        sent(request(1) + request(2) + request(3), 10),
        read(answer(1, (0, -1), error=6), 20),
        read(answer(2, (0, 5)), 30),
        read(answer(3, (0, 5)), 40),
    ]
    found = acknowledgements(entries)
    assert found.of("t", 0, 5) == Moments(10, 30, 30)
    for topic, partition, offset in (("t", 0, 4), ("t", 1, 5), ("u", 0, 5)):
        with pytest.raises(WireUnclear, match=f"{topic}-{partition}@{offset}: no answer"):
            found.of(topic, partition, offset)


def test_a_descriptor_that_was_given_again_is_another_connection() -> None:
    old = [sent(request(1), 10), read(answer(1, (0, 0))[:9], 20)]
    new = [sent(request(1), 30, generation=1), read(answer(1, (0, 0)), 40, generation=1)]
    assert acknowledgements(old + new).of("t", 0, 0) == Moments(30, 40, 40)


def test_bytes_that_are_not_kafkas_are_refused() -> None:
    with pytest.raises(WireUnclear, match="descriptor 7: answer 2 has no request"):
        acknowledgements([sent(request(1), 10), read(answer(2, (0, 0)), 20)])
    with pytest.raises(WireUnclear, match="a frame of -1 bytes"):
        acknowledgements([read(b"\xff\xff\xff\xff", 20)])
    with pytest.raises(WireUnclear, match="an entry of kind 0"):
        acknowledgements([Entry(0, FD, 0, 0)])


def test_batches_may_be_added_after_one_was_asked_for() -> None:
    found = Acknowledgements()
    late, early = Moments(1, 2, 3), Moments(4, 5, 6)
    found.add(("t", 0), 20, late)
    assert found.of("t", 0, 25) == late
    found.add(("t", 0), 10, early)
    assert (found.of("t", 0, 19), found.of("t", 0, 20)) == (early, late)


# -- the library -----------------------------------------------------------------------------------------


def run_logged(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    with preloaded() as more:
        assert os.path.exists(more["LD_PRELOAD"])
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**child_environment(), **more, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
        )
    assert not os.path.exists(more["LD_PRELOAD"])
    return done


TOGETHER = """
import os, time
from bench.arrival import acknowledgements, entries_of, wire_log
from tests.unit.bench.wire import answer, connected, request
near, far = connected()
begun = time.monotonic_ns()
near.sendmsg([request(1)[:6], request(1)[6:] + request(2)])
both = time.monotonic_ns()
# Not by recv, which would be logged as this side's, too.
assert os.read(far.fileno(), 1000) == request(1) + request(2)
far.sendall(answer(1, (0, 0)))
time.sleep(0.4)
# What waits is confirmed with this: from then on the system may join to it what comes.
near.sendmsg([request(3)])
time.sleep(0.1)
second = time.monotonic_ns()
far.sendall(answer(2, (0, 1)))
time.sleep(0.1)
before = time.monotonic_ns()
assert near.recv(1000) == answer(1, (0, 0)) + answer(2, (0, 1))
after = time.monotonic_ns()
found = acknowledgements(entries_of(wire_log()))
one, other = found.of("t", 0, 0), found.of("t", 0, 1)
assert begun <= one.sent == other.sent <= both, (begun, one, other, both)
assert both <= one.received < second <= other.received < before, (one, second, other, before)
assert before <= one.read <= other.read <= after, (before, one, other, after)
"""

PIECES = """
import os, time
from bench.arrival import READ, acknowledgements, entries_of, wire_log
from tests.unit.bench.wire import answer, connected, request

def taken(size=1000):
    time.sleep(0.05)
    try:
        return near.recv(size)
    except BlockingIOError:
        return None

near, far = connected()
near.sendmsg([request(1), request(2), request(3)])
first, second = answer(1, (0, 0)), answer(2, (0, 1))
assert taken() is None
for piece in (first[:2], first[2:3], first[3:9]):
    far.sendall(piece)
    assert taken() == piece
far.sendall(first[9:] + second + answer(3, (0, 2)))
# Less room than there is: to the middle of a length, then on from there.
assert taken(len(first) - 9 + 2) == first[9:] + second[:2]
last = time.monotonic_ns()
assert taken(5) == second[2:7]
assert taken() == second[7:] + answer(3, (0, 2))
assert taken() is None
assert len(os.read(far.fileno(), 1000)) == 3 * len(request(1))
far.close()
assert taken() == b"" == taken()
entries = list(entries_of(wire_log()))
assert b"".join(one.data for one in entries if one.kind == READ) == first + second + answer(3, (0, 2))
found = acknowledgements(entries)
assert found.of("t", 0, 0).read < last < found.of("t", 0, 1).read < found.of("t", 0, 2).read

# The descriptor again, as another connection from its beginning.
number = near.fileno()
near.close()
once, far = connected()
near = once.dup()
assert near.fileno() == number, (near, number)
near.sendmsg([request(1)])
far.sendall(answer(1, (0, 5)))
assert taken() == answer(1, (0, 5))
assert acknowledgements(entries_of(wire_log())).of("t", 0, 5).read > last
"""

NO_KAFKA = """
import errno, os, socket, threading, time
one, other = socket.socketpair()
threading.Timer(0.1, other.send, [b"x"]).start()
assert one.recv(1) == b"x"          # which waits
other.send(b"no length at all" * 100)
assert one.recv(5, socket.MSG_PEEK) == b"no le"
assert one.recv(5) == b"no le"
assert one.recv(10_000) == (b"no length at all" * 100)[5:]
try:
    one.recv(1, socket.MSG_DONTWAIT)
except BlockingIOError as error:
    assert error.errno == errno.EAGAIN
else:
    raise AssertionError("there was nothing to be read")
one.sendmsg([b"a", b"bc"])
assert other.recv(10) == b"abc"
one.shutdown(socket.SHUT_WR)
assert other.recv(10) == b""
datagrams = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
datagrams[0].send(b"a whole datagram")
assert datagrams[1].recv(100) == b"a whole datagram"
one.close()
try:
    os.close(one.fileno())
except OSError as error:
    assert error.errno == errno.EBADF
try:
    other.sendmsg([b"nobody is there"])
except BrokenPipeError as error:
    assert error.errno == errno.EPIPE
else:
    raise AssertionError("nobody was there")
"""

FULL = """
import os
from bench.arrival import wire_log
from tests.unit.bench.wire import connected
near, far = connected()
near.sendmsg([bytes(500)])
assert bytes(500) in wire_log()
near.sendmsg([bytes(500)])
assert os.read(far.fileno(), 2000) == bytes(1000)
wire_log()
"""


@needs_library
@pytest.mark.parametrize("script", [TOGETHER, PIECES, NO_KAFKA], ids=["together", "pieces", "no Kafka"])
def test_the_client_sees_no_library(script: str) -> None:
    done = run_logged(script)
    assert done.returncode == 0, done.stderr


@needs_library
def test_a_full_log_is_refused() -> None:
    done = run_logged(FULL, FOREBAY_BENCH_LOG_BYTES="1000")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("bench.arrival.WireUnclear: the log is full: 1072 bytes"), (
        done.stderr
    )


def test_without_the_library_there_is_no_log() -> None:
    assert not is_logged()
