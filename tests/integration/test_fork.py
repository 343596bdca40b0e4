"""Forks: a child is told at once that the producer is not its own, and the parent does not notice."""

from __future__ import annotations

import re
import textwrap

import pytest

from forebay.testing import EmbeddedBroker
from tests.integration.programs import COUNT, all_in_order, run, stored
from tests.support.fixtures import TopicFactory

FORKED = """
def refusals(producer, future):
    '''What each method says in the child, and how long they all take.'''
    begun = time.monotonic()
    for call in (
        lambda: producer.send(topic, b"child"),
        lambda: producer.send_nowait(topic, b"child"),
        lambda: producer.flush(),
        lambda: producer.partitions_for(topic),
        lambda: producer.metrics(),
        lambda: producer.__enter__(),
        lambda: future.result(),
        lambda: future.exception(10),
    ):
        try:
            call()
        except ForkedProducerError as error:
            if "parent process" in str(error):
                continue
        return "not refused"
    producer.close()
    if "a copy in a forked child" not in repr(producer):
        return repr(producer)
    del producer
    gc.collect()
    return "refused" if time.monotonic() - begun < 1 else "late"

def wait_for(child, limit=10):
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"
"""


def test_fork(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """The child is told at once; the parent, whose threads go on sending meanwhile, does not notice."""
    name = topic(embedded, 3)
    text = """
    producer = make(linger_ms=5, batch_size=500)
    ended = threading.Event()
    sent = [[], [], []]
    def work(number):
        while not ended.is_set():
            future = producer.send(topic, b"%d:%d" % (number, len(sent[number])), partition=number)
            sent[number].append(future)
            if len(sent[number]) % 50 == 0:
                time.sleep(0.002)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    outcomes = set()
    for _ in range(30):
        while not sent[0]:
            time.sleep(0.01)
        future = producer.send(topic, b"2:extra", partition=2)
        child = os.fork()
        if child == 0:
            said = "nothing"
            try:
                said = "refused" if future.done() else refusals(producer, future)
            finally:
                os._exit(0 if said == "refused" else 1)
        outcomes.add(wait_for(child))
    ended.set()
    for thread in threads:
        thread.join()
    producer.close()
    failed = sum(future.exception(0) is not None for line in sent for future in line)
    say(outcomes, failed, sum(map(len, sent)))
    """
    out, err = run(FORKED + textwrap.dedent(text), embedded, name)
    outcomes, failed, count = re.fullmatch(r"\{(.*)\} (\d+) (\d+)\n", out).groups()  # type: ignore[union-attr]
    assert (outcomes, failed) == ("0", "0"), err
    found = [value for value in stored(embedded, name) if value != b"2:extra"]
    assert len(found) == len(set(found)) == int(count)


def test_a_forked_child_that_exits_as_usual(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """Its exit runs the handlers that it inherited, and harms neither itself nor the parent's records."""
    name = topic(embedded, 3)
    text = f"""
    producer = make(linger_ms=200)
    futures = [producer.send(topic, value) for value in values({COUNT})]
    child = os.fork()
    if child == 0:
        say("child", refusals(producer, futures[0]))
        sys.exit(0)
    say(wait_for(child), sum(future.exception(WAIT_S) is not None for future in futures))
    """
    out, err = run(FORKED + textwrap.dedent(text), embedded, name)
    assert (out, err) == ("child refused\n0 0\n", "")
    assert all_in_order(embedded, name)


def test_a_producer_made_in_a_forked_child(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded, 3)
    text = f"""
    first = make()
    first.send(topic, b"0").result(WAIT_S)
    child = os.fork()
    if child == 0:
        own = make(linger_ms=60_000)
        for value in values({COUNT})[1:500]:
            own.send(topic, value)
        sys.exit(0)
    say(wait_for(child))
    for value in values({COUNT})[500:]:
        first.send(topic, value)
    """
    out, err = run(FORKED + textwrap.dedent(text), embedded, name)
    assert (out, err) == ("0\n", "")
    assert sorted(map(int, stored(embedded, name))) == list(range(COUNT))


POOL = """
import multiprocessing
own = None
inherited = make(linger_ms=60_000)
def task(number):
    global own
    try:
        inherited.send(topic, b"never")
        return "not refused"
    except ForkedProducerError:
        pass
    if own is None:
        own = make(linger_ms=60_000)
    own.send(topic, b"%d" % number)
    return "sent"
"""


@pytest.mark.parametrize("tasks_per_child", [None, 100], ids=["one-life", "recycled"])
def test_a_prefork_pool(embedded: EmbeddedBroker, topic: TopicFactory, tasks_per_child: int | None) -> None:
    """As Celery does it: workers are forked, each makes its producer with the first task, nobody closes one."""
    name = topic(embedded, 3)
    text = f"""
    inherited.send(topic, b"0")
    context = multiprocessing.get_context("fork")
    pool = context.Pool(3, maxtasksperchild={tasks_per_child})
    say(sorted(set(pool.map(task, range(1, {COUNT}), chunksize=1))))
    pool.close()
    pool.join()
    """
    out, err = run(POOL + textwrap.dedent(text), embedded, name)
    assert (out, err) == ("['sent']\n", "")
    assert sorted(map(int, stored(embedded, name))) == list(range(COUNT))


@pytest.mark.parametrize("ending", ["os._exit(7)", "sys.exit(7)", "return"])
def test_a_fork_in_a_delivery_callback(embedded: EmbeddedBroker, topic: TopicFactory, ending: str) -> None:
    """The child was the sender's thread: it tells the callback whose producer this is, and ends when that returns."""
    name = topic(embedded, 3)
    text = f"""
    producer = make(linger_ms=20)
    told = []
    children = []
    def forks(report):
        child = os.fork()
        if child:
            children.append(child)
            return
        try:
            producer.send(topic, b"child")
        except ForkedProducerError:
            {ending}
        os._exit(9)
    futures = [producer.send(topic, b"0", on_delivery=forks)]
    producer.flush()
    futures += [producer.send(topic, value) for value in values({COUNT})[1:]]
    say(wait_for(children[0]), sum(future.exception(WAIT_S) is not None for future in futures))
    """
    out, err = run(FORKED + textwrap.dedent(text), embedded, name)
    expected = {"os._exit(7)": "7", "sys.exit(7)": "7", "return": "0"}[ending]
    assert (out, err) == (f"{expected} 0\n", "")
    assert all_in_order(embedded, name)
