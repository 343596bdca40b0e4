"""Turns that a thread that sends takes in the sender's place, over sockets: what may come in between loses nothing.

Each program sends one record at a time to an idle producer, so that nearly every ``send()`` does the sender's work.
"""

from __future__ import annotations

import signal
import textwrap
import time

import pytest

from forebay.testing import EmbeddedBroker
from tests.integration.programs import Program, stored
from tests.support.fixtures import TopicFactory

RECORDS = 3000

SETUP = """
producer = make(linger_ms=0)
producer.send(topic, b"first").result(20)
producer.send(topic, b"second").result(20)
"""


def finish(program: Program) -> str:
    output, errors = program.process.communicate(timeout=120)
    assert program.process.returncode == 0, errors
    return output


def run(text: str, broker: EmbeddedBroker, topic: str) -> str:
    with Program(SETUP + textwrap.dedent(text), broker.bootstrap_servers, topic) as program:
        return finish(program)


def test_no_python_runs_inside(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """A signal's handler, a finaliser or a switch of threads needs interpreted Python: there is none in there."""
    name = topic(embedded)
    text = """
    calls, wire = [], producer._parts.metrics
    def note(frame, event, argument):
        if event == "call":
            calls.append(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)
    lent = clean = 0
    for number in range(300):
        before = wire.requests.count
        calls.clear()
        sys.setprofile(note)
        future = producer.send(topic, b"%d" % number)
        sys.setprofile(None)
        if wire.requests.count > before:
            lent += 1
            clean += not [one for one in calls if "add_topic" not in one]
        future.result(20)
    say(lent, clean, set(calls))
    producer.close()
    """
    said = run(text, embedded, name)
    lent, clean = map(int, said.split()[:2])
    # On a busy machine the sender's thread is not always back in its wait when the next record comes.
    assert lent == clean > 20, said


def test_ctrl_c_at_any_moment_loses_nothing(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """Every record that send() took or was interrupted in is there once at most, and none that was acknowledged not."""
    name = topic(embedded, 1)
    text = f"""
    taken, random = [], __import__("random").Random(5)
    def interrupt(number, frame):
        raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    for number in range({RECORDS}):
        value = b"%d" % number
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 6e-5))
            try:
                future = producer.send(topic, value)
                taken.append(value)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupted += 1
        if number % 3 == 0:
            time.sleep(0.0003)
    producer.flush(30)
    say(interrupted, producer._parts.sender.failed_records(), producer._parts.accumulator.pool.queued())
    producer.close()
    say(b" ".join(taken).decode())
    """
    counts, taken = run(text, embedded, name).split("\n", 1)
    interrupted, failed, queued = map(int, counts.split())
    assert (failed, queued) == (0, 0)
    assert interrupted > 20
    values = stored(embedded, name)
    assert len(values) == len(set(values))
    assert {value.encode() for value in taken.split()} <= set(values)


def test_a_finaliser_may_wait_for_the_producer(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """Collected at any allocation: one that flushes would wait for the thread that cannot go on without this one."""
    name = topic(embedded, 1)
    text = """
    done = []
    class Cycle:
        def __init__(self):
            self.itself = self
        def __del__(self):
            producer.flush(20)
            done.append(1)
    gc.set_threshold(1, 1, 1)
    begun = time.monotonic()
    for number in range(500):
        Cycle()
        producer.send(topic, b"%d" % number)
    took = time.monotonic() - begun
    gc.set_threshold(700, 10, 10)
    producer.close()
    say(len(done) > 400, took < 15)
    """
    assert run(text, embedded, name).split() == ["True", "True"]
    assert len(stored(embedded, name)) == 502


def test_callbacks_send_while_others_do(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """From the sender's thread, whose turn it is; in order for each thread, and each once."""
    name = topic(embedded, 1)
    text = """
    def again(metadata, error, number=0):
        producer.send(topic, b"again")
    def work(mark):
        for number in range(500):
            producer.send(topic, mark + b"%d" % number, on_delivery=again)
            if number % 5 == 0:
                time.sleep(0.0002)
    threads = [threading.Thread(target=work, args=(mark,)) for mark in (b"a", b"b", b"c", b"d")]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    producer.flush(30)
    producer.close(30)
    say("done")
    """
    assert run(text, embedded, name).split() == ["done"]
    values = stored(embedded, name)
    for mark in (b"a", b"b", b"c", b"d"):
        assert [value for value in values if value[:1] == mark and value != b"again"] == [
            mark + b"%d" % number for number in range(500)
        ]
    assert values.count(b"again") == 2000


def test_forks_while_others_send(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """The child refuses to send and ends; the parent goes on."""
    name = topic(embedded, 1)
    text = """
    ended = []
    def work():
        number = 0
        while not ended:
            producer.send(topic, b"%d" % number).result(20)
            number += 1
        ended.append(number)
    thread = threading.Thread(target=work)
    thread.start()
    codes = set()
    for number in range(20):
        child = os.fork()
        if child == 0:
            try:
                producer.send(topic, b"child")
            except ForkedProducerError:
                os._exit(7)
            os._exit(1)
        codes.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    ended.append(True)
    thread.join()
    producer.close()
    say(*codes, ended[-1])
    """
    code, sent = run(text, embedded, name).split()
    assert code == "7" and int(sent) > 20
    assert len(stored(embedded, name)) == int(sent) + 2


@pytest.mark.parametrize("ending", ["", "producer.close()", "os.kill(os.getpid(), signal.SIGINT)"])
def test_the_end_comes_while_a_thread_sends(embedded: EmbeddedBroker, topic: TopicFactory, ending: str) -> None:
    """Interpreter exit, close and Ctrl-C: the process ends, and what was acknowledged is there."""
    name = topic(embedded, 1)
    text = f"""
    acknowledged = []
    def work():
        number = 0
        try:
            while True:
                producer.send(topic, b"%d" % number).result(20)
                acknowledged.append(number)
                number += 1
        except KafkaError:
            pass
    threading.Thread(target=work, daemon=True).start()
    time.sleep(0.5)
    say(len(acknowledged))
    {ending}
    """
    with Program(SETUP + textwrap.dedent(text), embedded.bootstrap_servers, name) as program:
        begun = time.monotonic()
        output, _ = program.process.communicate(timeout=60)
        assert time.monotonic() - begun < 30
        assert program.process.returncode in ((0,) if "kill" not in ending else (1, 130, -signal.SIGINT))
    assert len(stored(embedded, name)) >= int(output.split()[0])


def test_a_lack_of_memory_anywhere_loses_nothing(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """One allocation after the other fails, from the queue's entry in the schedule to the request's making."""
    pytest.importorskip("_testcapi", reason="this Python was built without its test modules, which fail allocations")
    name = topic(embedded, 1)
    text = """
    import _testcapi, logging
    logging.disable(logging.CRITICAL)
    raised = taken = 0
    for number in range(70):
        future = None
        _testcapi.set_nomemory(number, number + 1)
        try:
            future = producer.send(topic, b"%d" % number)
        except MemoryError:
            raised += 1
        finally:
            _testcapi.remove_mem_hooks()
        if future is not None:
            taken += 1
            try:
                future.result(20)
            except TimeoutError:
                raise
            except KafkaError:
                pass
        time.sleep(0.002)
    producer.flush(20)
    say(raised, taken, producer._parts.accumulator.has_incomplete(), len(producer._parts.sender.in_flight))
    producer.close()
    """
    raised, taken, *left = run(text, embedded, name).split()
    assert int(raised) + int(taken) == 70 and int(taken) > 10
    assert left == ["False", "0"]
    values = stored(embedded, name)
    assert len(values) == len(set(values))
