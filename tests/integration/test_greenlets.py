"""gevent: a waiting greenlet stops nobody, and all else is as with threads.  eventlet: refused in words.

Each test is a process of its own, patched before or after forebay is imported, or not at all, with greenlets in one of
its threads.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from forebay.testing import EmbeddedBroker
from tests.integration.programs import COUNT, Program, all_in_order, run, stored
from tests.support.fixtures import TopicFactory
from tests.support.pace import HANG_S, within, within_ms

LIMITS = f"""
WAIT_S, BLOCK_MS, STEP_S = {HANG_S}, {within_ms(500)}, {within(0.1)}
PAUSE_S = {min(within(0.05), 0.2)}  # a call that stops the others does so for half a second
"""
COMMON = (
    LIMITS
    + """
import logging, os, sys, threading, time
import gevent
from gevent import monkey
from forebay import AdminClient, KafkaProducer
from forebay.errors import *

bootstrap, topic = sys.argv[1:]
thread_number = monkey.get_original("_thread", "get_ident")
start_thread = monkey.get_original("_thread", "start_new_thread")
nap = monkey.get_original("time", "sleep")
fork = os.fork
wait_pid = monkey.get_original("os", "waitpid")

def make(**options):
    return KafkaProducer(bootstrap_servers=bootstrap, **options)
def say(*words):
    print(*words, flush=True)
def until_told():
    say("ready")
    sys.stdin.readline()

class Ticks:
    '''The longest pause between two ticks, of greenlets or of a thread, which only the machine makes longer.'''
    def __init__(self, nap):
        self.nap, self.longest = nap, 0.0
    def tick(self, *_):
        last = time.monotonic()
        while True:
            self.nap(0.002)
            now = time.monotonic()
            self.longest, last = max(self.longest, now - last), now
class Others:
    '''Fails if a call stops the other greenlets of its thread for more than PAUSE_S.'''
    def __init__(self):
        self.greenlet, self.thread = Ticks(gevent.sleep), Ticks(nap)
        self.ticking = gevent.spawn(self.greenlet.tick)
        start_thread(self.thread.tick, ())
    def go_on(self, name, raises, call):
        # Up to three times: on a busy machine this thread alone may have to wait for a processor.
        stopped = []
        for _ in range(3):
            gevent.sleep(0.05)
            self.greenlet.longest = self.thread.longest = 0
            begun = time.monotonic()
            try:
                call()
                assert False, name
            except raises:
                pass
            took = time.monotonic() - begun
            gevent.sleep(0.01)
            assert took >= 0.4, (name, took)
            stopped.append(self.greenlet.longest - self.thread.longest)
            if stopped[-1] < PAUSE_S:
                return
        assert False, (name, stopped)
"""
)
LATE = COMMON + "monkey.patch_all()\nin_world = lambda work: work()\n"
IN_THREAD = (
    COMMON
    + """
def in_world(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""
)
WORLDS = {
    "patched before": "from gevent import monkey\nmonkey.patch_all()\n" + COMMON + "in_world = lambda work: work()\n",
    "patched after": LATE,
    "not patched, in one thread": IN_THREAD,
    "patched, in a thread of its own": LATE
    + """
fork = monkey.get_original("os", "fork")  # gevent's is for its main thread
def in_world(work):
    ended = []
    def run():
        try:
            work()
        finally:
            ended.append(1)
    start_thread(run, ())
    while not ended:
        nap(0.01)
""",
}
WAITS = """
def work():
    others = Others()
    def started():
        producer = make(linger_ms=0, max_block_ms=BLOCK_MS, buffer_memory=65536, acks="all")
        producer.send(topic, b"first").result(WAIT_S)
        return producer
    producers = [started() for _ in range(3)]
    producer = producers[0]
    other = make(max_block_ms=BLOCK_MS, transactional_id=topic)
    other.init_transactions()
    other.begin_transaction()
    other.send(topic, b"in a transaction").result(WAIT_S)
    until_told()
    futures = [producer.send(topic, b"held") for producer in producers]
    def full():
        while True:
            future = producer.send(topic, bytes(10_000))
            if future.done():
                future.result()
    def describe():
        with AdminClient(bootstrap_servers=bootstrap) as admin:
            admin.describe_transaction(topic, timeout=0.5)
    others.go_on("unknown topic", TimeoutError, lambda: producer.send("nobody-" + topic, b"v").result())
    others.go_on("partitions", TimeoutError, lambda: producer.partitions_for("else-" + topic))
    others.go_on("result", TimeoutError, lambda: futures[0].result(0.5))
    others.go_on("flush", TimeoutError, lambda: producer.flush(0.5))
    delivery = producer.send_batch(topic, [b"a", b"b"])
    others.go_on("rows", TimeoutError, lambda: delivery.result(0.5))
    others.go_on("full buffer", BufferExhaustedError, full)
    others.go_on("commit", TimeoutError, lambda: other.commit_transaction(0.5))
    others.go_on("admin", TimeoutError, describe)
    others.go_on("close", TimeoutError, lambda: producers.pop().close(0.5))
    say("went on")
try:
    in_world(work)
except BaseException:
    logging.exception("failed")
os._exit(0)  # else the exit would wait for the frozen broker
"""


def freeze(broker: EmbeddedBroker) -> None:
    """Stops it in the middle of whatever it does: connections stay, answers do not come."""
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGSTOP)
    os.waitpid(broker.pid, os.WUNTRACED)


def thaw(broker: EmbeddedBroker) -> None:
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGCONT)


@pytest.fixture
def own_broker() -> Iterator[EmbeddedBroker]:
    """One that a test may freeze."""
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> str:
    pytest.importorskip("gevent", reason="gevent is not installed: it has no wheel for this Python")
    return WORLDS[request.param]


def test_a_greenlet_that_waits_stops_no_other(own_broker: EmbeddedBroker, world: str) -> None:
    own_broker.create_topic("frozen", 1)
    with Program(WAITS, own_broker.bootstrap_servers, "frozen", world) as program:
        program.until_ready()
        freeze(own_broker)
        try:
            program.go()
            out, err = program.end()
        finally:
            thaw(own_broker)
    assert out == "went on\n", err


EVERYTHING = f"""
    def work():
        mine, called = thread_number(), set()
        producer = make(linger_ms=1, buffer_memory=40_000, batch_size=1000)
        def one(number):
            def delivered(report):
                logging.getLogger("x").warning("%s", report.metadata)
                called.add(thread_number())
                assert report.error is None
            future = producer.send(topic, b"%d" % number, on_delivery=delivered)
            assert future.result(WAIT_S).topic == topic
        greenlets = [gevent.spawn(one, number) for number in range({COUNT})]
        gevent.joinall(greenlets, raise_error=True)
        assert called and mine not in called and len(called) == 1
        delivery = producer.send_batch(topic, [b"row"] * 100, partition=0)
        assert sum(run.records for runs in delivery.result(WAIT_S).values() for run in runs) == 100
        producer.flush(WAIT_S)
        with make(transactional_id=topic) as other:
            other.init_transactions()
            with other.transaction():
                other.send(ENDED, b"committed")
            try:
                with other.transaction():
                    other.send(ENDED, b"aborted").result(WAIT_S)
                    raise ZeroDivisionError
            except ZeroDivisionError:
                pass
        with AdminClient(bootstrap_servers=bootstrap) as admin:
            assert len(admin.read_tail(topic, 0)) == 1
        producer.close(WAIT_S)
        try:
            producer.send(topic, b"late")
        except ProducerClosedError:
            say("done")
    logging.basicConfig(level="INFO", stream=open(os.devnull, "w"))
    in_world(work)
    """


def test_everything_works(embedded: EmbeddedBroker, topic: TopicFactory, world: str) -> None:
    """Many greenlets on one producer, with too little memory for all of them; callbacks come on its own thread."""
    # The embedded broker's marks of ended transactions have no checksums, which readers do not take.
    name, ended = topic(embedded, 3), topic(embedded, 1)
    out, err = run(EVERYTHING.replace("ENDED", repr(ended)), embedded, name, prelude=world)
    assert (out, err) == ("done\n", "")
    values = stored(embedded, name)
    assert sorted(int(value) for value in values if value.isdigit()) == list(range(COUNT))
    assert values.count(b"row") == 100


HELD_LOCKS = """
    import collections, greenlet, traceback
    import forebay.producer._columns, forebay._transactions.session, forebay._accumulator.helpers
    from forebay._runtime import threads as _threads
    held, taken, switches, main = collections.Counter(), [0], [0], _threads.get_ident()
    def holder():
        # A thread that has a greenlet leaves work to the main thread at its end, which prints an error if that is just
        # making a named tuple.
        return greenlet.getcurrent() if _threads.get_ident() == main else None
    def watched(make):
        class Watched:
            def __init__(self):
                self.lock = make()
            def acquire(self, *arguments, **named):
                got = self.lock.acquire(*arguments, **named)
                held[holder()] += got
                taken[0] += got
                return got
            def release(self):
                held[holder()] -= 1
                self.lock.release()
            def _is_owned(self):
                return self.lock._is_owned()
            def __enter__(self):
                return self.acquire()
            def __exit__(self, *_):
                self.release()
        return Watched
    for module_name, module in list(sys.modules.items()):
        # A ticket's lock is there to be waited for, and so is that of a thread that gives way.
        waited_for = module_name in ("forebay._runtime.ticket", "forebay._runtime.parking")
        if module_name.startswith("forebay.") and not waited_for:
            for lock in {"Lock", "RLock", "Mutex"} & set(vars(module)):
                setattr(module, lock, watched(getattr(_threads, lock.replace("Mutex", "RLock"))))
    def switched(event, greenlets):
        switches[0] += 1
        if held[greenlets[0]]:
            traceback.print_stack()
            os._exit(1)
    def work():
        greenlet.settrace(switched)
        for codec in ("none", "gzip"):
            producer = make(linger_ms=1, buffer_memory=40_000, batch_size=1000, compression_type=codec)
            def one(number):
                producer.send(topic, b"%d" % number * 50, key=b"%d" % number).result(WAIT_S)
            def rows():
                producer.send_batch(topic, [b"row"] * 500).result(WAIT_S)
            gevent.joinall([gevent.spawn(one, number) for number in range(300)], raise_error=True)
            gevent.joinall([gevent.spawn(rows) for _ in range(3)], raise_error=True)
            producer.metrics()
            producer.close()
        with make(transactional_id=topic) as other:
            other.init_transactions()
            with other.transaction():
                other.send(topic, b"committed")
        greenlet.settrace(None)
        assert taken[0] > 1000 and switches[0] > 600, (taken, switches)
    in_world(work)
    """


def test_no_greenlet_is_left_with_a_lock_in_its_hand(
    embedded: EmbeddedBroker, topic: TopicFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another greenlet of the thread would wait for it, and stop them all.

    Interpreted, where every lock is an object: each is replaced by one that knows who holds it, and each switch of the
    thread's greenlets is looked at.
    """
    pytest.importorskip("gevent", reason="gevent is not installed: it has no wheel for this Python")
    monkeypatch.setenv("FOREBAY_INTERPRETED", "1")
    name = topic(embedded, 3)
    assert run(HELD_LOCKS, embedded, name, prelude=WORLDS["patched before"]) == ("", "")


GIVES_UP = """
    def work():
        producer = make(linger_ms=0, buffer_memory=65536, max_block_ms=20_000, acks="all")
        producer.send(topic, b"first").result(WAIT_S)
        until_told()
        full = []
        def fill():
            while True:
                producer.send(topic, bytes(10_000))
        fillers = [gevent.spawn(fill) for _ in range(5)]
        gevent.sleep(3 * STEP_S)
        fillers[0].kill()
        last = gevent.spawn(producer.send, topic, b"last")
        gevent.sleep(STEP_S)
        try:
            with gevent.Timeout(0.1):
                producer.send(topic, bytes(10_000))
            assert False
        except gevent.Timeout:
            pass
        gevent.killall(fillers)
        assert not last.ready()
        say("gave up")
        last.get(timeout=WAIT_S).result(WAIT_S)
        producer.flush(WAIT_S)
        metrics = producer.metrics()
        say(metrics.value("buffer-available-bytes"), metrics.value("waiting-threads"))
        producer.close()
    in_world(work)
    """


def test_a_greenlet_that_gives_up_gives_back_what_it_would_have_got(own_broker: EmbeddedBroker, world: str) -> None:
    """Killed, or out of gevent's own time, while it waits for room: the room goes to those behind it."""
    own_broker.create_topic("frozen", 1)
    with Program(GIVES_UP, own_broker.bootstrap_servers, "frozen", world) as program:
        program.until_ready()
        freeze(own_broker)
        try:
            program.go()
            assert program.process.stdout is not None
            assert program.process.stdout.readline() == "gave up\n"
        finally:
            thaw(own_broker)
        out, err = program.end()
    assert (out, err) == ("65536 0\n", "")


def test_what_was_accepted_is_delivered_at_exit(embedded: EmbeddedBroker, topic: TopicFactory, world: str) -> None:
    name = topic(embedded, 3)
    text = f"""
    keep = []
    def work():
        keep.append(make(linger_ms=60_000, batch_size=1000))
        for number in range({COUNT}):
            keep[0].send(topic, b"%d" % number)
    in_world(work)
    """
    assert run(text, embedded, name, prelude=world) == ("", "")
    assert all_in_order(embedded, name)


def test_a_forked_child_is_told(embedded: EmbeddedBroker, topic: TopicFactory, world: str) -> None:
    name = topic(embedded, 1)
    text = """
    def work():
        producer = make(linger_ms=0)
        producer.send(topic, b"0").result(WAIT_S)
        child = fork()
        if child == 0:
            try:
                producer.send(topic, b"child")
            except ForkedProducerError:
                with make() as own:
                    own.send(topic, b"1").result(WAIT_S)
                os._exit(7)
            os._exit(1)
        say(os.waitstatus_to_exitcode(wait_pid(child, 0)[1]))
        producer.send(topic, b"2").result(WAIT_S)
        producer.close()
    in_world(work)
    """
    out, _ = run(text, embedded, name, prelude=world)  # from Python 3.12 on each fork with threads is warned of
    assert out == "7\n"
    assert stored(embedded, name) == [b"0", b"1", b"2"]


def test_a_callback_hands_over_to_greenlets(embedded: EmbeddedBroker, topic: TopicFactory, world: str) -> None:
    """As docs/deployment.md has it; a record sent and waited for in the hub itself, which cannot wait in itself."""
    name = topic(embedded, 1)
    text = """
    def work():
        import gevent.queue
        hub, inbox, mine = gevent.get_hub(), gevent.queue.Queue(), thread_number()
        def delivered(report):
            assert thread_number() != mine
            hub.loop.run_callback_threadsafe(inbox.put, report.metadata)
        producer = make(linger_ms=0)
        for _ in range(3):
            producer.send(topic, b"v", on_delivery=delivered)
        say([inbox.get(timeout=WAIT_S).offset for _ in range(3)])
        hub.loop.run_callback(lambda: inbox.put(producer.send(topic, b"v").result(WAIT_S)))
        say(inbox.get(timeout=WAIT_S).offset)
        producer.close()
    in_world(work)
    """
    assert run(text, embedded, name, prelude=world) == ("[0, 1, 2]\n3\n", "")


EVENTLET = (
    LIMITS
    + """
import warnings
warnings.simplefilter("ignore")
import eventlet, os, sys, time
"""
)
REFUSED = """
from forebay.errors import IllegalStateError
bootstrap, topic = sys.argv[1:]
for make in (KafkaProducer, AdminClient):
    try:
        make(bootstrap_servers=bootstrap)
    except IllegalStateError as error:
        assert "eventlet has replaced the threads" in str(error) and "monkey_patch(thread=False)" in str(error), error
        print("refused")
"""


@pytest.mark.parametrize(
    "prelude",
    [
        EVENTLET + "eventlet.monkey_patch()\nfrom forebay import AdminClient, KafkaProducer\n",
        EVENTLET + "from forebay import AdminClient, KafkaProducer\neventlet.monkey_patch()\n",
    ],
    ids=["patched before", "patched after"],
)
def test_eventlet_is_refused_in_words(embedded: EmbeddedBroker, prelude: str) -> None:
    pytest.importorskip("eventlet", reason="eventlet is not installed")
    out, _ = run(REFUSED, embedded, "t", prelude=prelude)
    assert out == "refused\nrefused\n"


def test_eventlet_s_greenlets_beside_threads_as_they_are(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """What the refusal proposes: all patched but threads, and waits in eventlet's own pool of them."""
    pytest.importorskip("eventlet", reason="eventlet is not installed")
    name = topic(embedded, 1)
    text = """
    import eventlet.tpool
    from forebay import KafkaProducer
    bootstrap, topic = sys.argv[1:]
    ticks = []
    def tick():
        while True:
            eventlet.sleep(0.005)
            ticks.append(1)
    eventlet.spawn(tick)
    producer = KafkaProducer(bootstrap_servers=bootstrap.replace("127.0.0.1", "localhost"), linger_ms=300)
    producer.send(topic, b"first").result(WAIT_S)
    future = producer.send(topic, b"second")
    ticks.clear()
    eventlet.tpool.execute(future.result, WAIT_S)
    print(len(ticks) > 5, flush=True)
    producer.close()
    """
    out, _ = run(text, embedded, name, prelude=EVENTLET + "eventlet.monkey_patch(thread=False)\n")
    assert out == "True\n"
    assert stored(embedded, name) == [b"first", b"second"]
