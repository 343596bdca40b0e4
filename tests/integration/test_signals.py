"""Public calls under a storm of signals, whose handler makes public calls itself; and finalisers that make them.

Each program has a time limit of its own, at which it says where every thread stands and ends.  A handler may be refused
in words where it came amid a lock that the sender needs; what it may not do is hang.  At which step it comes is chance
here; ``tests/scenario/test_interrupted.py`` goes through the steps.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forebay.errors import RecordTooLargeError
from forebay.testing import EmbeddedBroker
from tests.integration.programs import Program, run_under_locks
from tests.support.fixtures import TopicFactory
from tests.support.pace import HANG_S, PROGRAM_S

CALLS_S = 1.5
"""For which it makes calls at least; it goes on while fewer than ``CALLS`` have been handled."""
CALLS = 30
AHEAD = 500
"""Records that may wait: a busy machine takes fewer than are sent, and a flush would wait for ever more of them."""

STORM = """
import collections, faulthandler, itertools, json, random
from forebay.admin import AdminClient
import logging
logging.disable(logging.CRITICAL)

outer, inner, way, options = json.loads(sys.stdin.readline())
faulthandler.dump_traceback_later({limit}, exit=True)
numbers = itertools.count()
value = random.Random(1).randbytes(700) + bytes(700)
refused = collections.Counter()

def send():
    global last
    last = producer.send(topic, value[next(numbers) % 700:], key=b"%d" % (next(numbers) % 9), headers=[("a", b"b")])
def send_large():
    producer.send(topic, bytes(2_000_000)).exception(0)
def send_elsewhere():
    producer.send_nowait("another-%d" % next(numbers), b"v")
def send_batch():
    producer.send_batch(topic, [value] * 50).exception(WAIT_S)
def flush():
    producer.flush(WAIT_S)
def metrics():
    assert len(producer.metrics()) > 50
def partitions_for():
    assert len(producer.partitions_for(topic)) == 3
def result():
    last.result(WAIT_S)
def add_done_callback():
    last.add_done_callback(lambda future: future.result(0))
def transaction():
    try:
        with producer.transaction():
            for _ in range(3):
                producer.send(topic, value)
    except KafkaError:
        producer.abort_transaction(WAIT_S)
        raise
def begin_transaction():
    producer.begin_transaction()
def commit_transaction():
    producer.commit_transaction(WAIT_S)
def close_another():
    with make() as another:
        another.send(topic, value)
def construct():
    make(linger_ms=1000).close(WAIT_S)
def control_version():
    admin.transaction_version(timeout=WAIT_S)
def control_tail():
    admin.read_tail(topic, timeout=WAIT_S)
def control_id():
    admin.init_producer_id("of a test", timeout=WAIT_S)
def attempt(name):
    try:
        globals()[name]()
    except KafkaError as error:
        refused["interrupted another call" in str(error)] += 1

producer = make(**options)
admin = AdminClient(bootstrap_servers=bootstrap)
if "transactional_id" in options:
    producer.init_transactions(WAIT_S)
    with producer.transaction():
        send()
else:
    send()
last.result(WAIT_S)
inners, depth, handled, waiting = itertools.cycle(inner), 0, 0, collections.deque()

def handler(*_):
    global depth, handled
    if depth < 2:  # a handler may be interrupted by another
        depth += 1
        try:
            attempt(next(inners))
            handled += 1
        finally:
            depth -= 1

class Cycle:
    def __init__(self):
        self.itself = self
    def __del__(self):
        handler()

if way == "signals":
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
else:
    gc.set_threshold(50, 1, 1)
begun, made = time.monotonic(), 0
# A handler's call may wait for a broker, so a busy machine has few in the time; a hang ends at the limit.
while handled < {calls} or time.monotonic() - begun < {seconds}:
    if way == "finalisers":
        Cycle()
    attempt(outer)
    made += 1
    waiting.append(last)
    while len(waiting) > {ahead}:
        if waiting[0].done():
            waiting.popleft()
        else:
            time.sleep(0.001)
signal.setitimer(signal.ITIMER_REAL, 0)
gc.set_threshold(700, 10, 10)
if "transactional_id" not in options:
    producer.flush(WAIT_S)
    producer.close(WAIT_S)
else:
    producer.close()
admin.close()
say(made, handled, refused[True])
"""

ALL = ["send", "flush", "metrics", "send_elsewhere", "result", "send_large", "partitions_for"]
TRANSACTIONAL = {"transactional_id": "storm"}
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
CASES = [
    *(("send", ["send", "flush", "result", "metrics"], {"compression_type": codec}) for codec in CODECS),
    ("send_batch", ["send_batch", "flush", "send"], {"compression_type": "zstd"}),
    ("send_batch", ["send_batch", "metrics"], {}),
    ("send_elsewhere", ALL, {}),
    ("send_large", ALL, {}),
    ("flush", ALL, {}),
    ("metrics", ["metrics"], {}),
    ("metrics", ALL, {}),
    ("partitions_for", ALL, {}),
    ("result", ALL, {}),
    ("add_done_callback", ["add_done_callback", *ALL], {}),
    ("transaction", ["metrics", "flush", "send", "begin_transaction", "commit_transaction"], TRANSACTIONAL),
    ("construct", ["construct", "metrics"], {}),
    ("close_another", ["close_another", "flush"], {}),
    ("control_version", ["control_version", "flush", "metrics"], {}),
    ("control_tail", ["control_tail", "flush"], {}),
    ("control_id", ["control_id", "send"], {}),
]


def storm(broker: EmbeddedBroker, topic: str, *case: object) -> list[int]:
    """How many calls were made, how many by handlers, and how many waits were refused for a lock."""
    text = STORM.format(limit=PROGRAM_S, seconds=CALLS_S, calls=CALLS, ahead=AHEAD)
    with Program(text, broker.bootstrap_servers, topic) as program:
        assert program.process.stdin is not None
        program.process.stdin.write(json.dumps(case) + "\n")
        program.process.stdin.flush()
        out, _ = program.end(timeout_s=PROGRAM_S + HANG_S)
    return [int(word) for word in out.split()]


@pytest.mark.parametrize(
    ("outer", "inner", "options"), CASES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_signals(
    embedded: EmbeddedBroker, topic: TopicFactory, outer: str, inner: list[str], options: dict[str, object]
) -> None:
    given = {"batch_size": 1000, "linger_ms": 0, **options}
    made, handled, refused = storm(embedded, topic(embedded, 3), outer, inner, "signals", given)
    assert made > 0 and handled >= CALLS
    assert refused <= handled / 4


@pytest.mark.parametrize("outer", ["send", "send_batch", "metrics", "transaction"])
def test_finalisers(embedded: EmbeddedBroker, topic: TopicFactory, outer: str) -> None:
    options: dict[str, object] = {"batch_size": 1000, "linger_ms": 0}
    if outer == "transaction":
        options |= TRANSACTIONAL
    made, handled, _ = storm(embedded, topic(embedded, 3), outer, ["flush", "metrics", "send"], "finalisers", options)
    assert made > 0 and handled >= CALLS


UNDER_LOCKS = [
    *({"compression.type": codec} for codec in CODECS),
    {"transactional.id": "under-locks"},
    {"enable.idempotence": "false", "acks": "1"},
    {"bootstrap.servers": "localhost"},
]


@pytest.mark.parametrize("config", UNDER_LOCKS, ids=lambda config: next(iter(config.values())))
def test_no_thread_waits_for_a_lock_that_a_handler_may_have_interrupted(
    embedded: EmbeddedBroker, topic: TopicFactory, config: dict[str, str]
) -> None:
    """The locks of ``logging``, of imports, of ``strptime`` and of the list of threads; the main thread holds them."""
    servers = embedded.bootstrap_servers
    if "bootstrap.servers" in config:
        config = {"bootstrap.servers": servers.replace("127.0.0.1", config["bootstrap.servers"])}
    assert run_under_locks(servers, topic(embedded, 3), config) == "done\n"


def test_nor_where_a_batch_has_to_be_split(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """The modules for that are not there yet, and cannot be imported now: the batch is sent again."""
    embedded.push_request_errors(0, RecordTooLargeError)
    assert run_under_locks(embedded.bootstrap_servers, topic(embedded), {}) == "done\n"


def test_nor_with_a_socket_that_describes(embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path) -> None:
    config = {"describe.socket": str(tmp_path)}
    assert run_under_locks(embedded.bootstrap_servers, topic(embedded), config) == "done\n"
