"""docs/deployment.md, "Ending well": which ends of a process lose what was accepted, and how to end instead.

Each program is a file, because multiprocessing's other start methods import it.  Its records linger for a minute, so
what is in the topic afterwards was delivered by the end of the process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import forebay
from forebay.testing import EmbeddedBroker
from tests.integration.programs import expected, stored
from tests.integration.workload import WAIT_S
from tests.support.fixtures import TopicFactory

COUNT = 100
PROGRAM = f"""
import concurrent.futures, multiprocessing, os, signal, sys, time
from multiprocessing import util
from forebay import KafkaProducer

bootstrap, topic = sys.argv[1:]
numbers = range({COUNT})

def start(exits_on_sigterm=False):
    global producer
    if exits_on_sigterm:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # Telemetry is imported by a thread of its own, which may make named tuples.  If that is after Ctrl-C, Python
    # forgets that nothing handled the KeyboardInterrupt, and the status is 1.
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=60_000, enable_metrics_push=False)

def work(number):
    return producer.send(topic, b"%d" % number).done()

def stay(mark):
    open(mark, "w").close()
    time.sleep(60)

def work_and_stay(mark):
    start()
    for number in numbers:
        work(number)
    stay(mark)

def work_and_end_amid_the_end():
    start(exits_on_sigterm=True)
    for number in numbers:
        work(number)
    before_the_others = dict(exitpriority=1000)
    util.Finalize(None, os.kill, (os.getpid(), signal.SIGTERM), **before_the_others)

if __name__ == "__main__":
"""


def end_of(folder: Path, broker: EmbeddedBroker, topic: str, text: str) -> tuple[int, str, str]:
    """Runs a program to its end: its exit status and what it wrote."""
    path = folder / "program.py"
    path.write_text(PROGRAM + textwrap.indent(textwrap.dedent(text), "    "))
    done = subprocess.run(
        [sys.executable, str(path), broker.bootstrap_servers, topic],
        env={**os.environ, "PYTHONPATH": str(Path(forebay.__file__).parents[1])},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def delivered(broker: EmbeddedBroker, topic: str) -> bool:
    """True for every record, False for none; anything between fails."""
    values = stored(broker, topic)
    assert not values or sorted(values) == sorted(expected(COUNT))
    return bool(values)


# -- the process itself ---------------------------------------------------------------------------------------

SENT = """
start()
for number in numbers:
    work(number)
"""


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("os.kill(os.getpid(), signal.SIGTERM)", -15),
        # Under nohup it is ignored at first.
        ("signal.signal(signal.SIGHUP, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGHUP)", -1),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
        ("os._exit(0)", 0),
        ("os.execv(sys.executable, [sys.executable, '-c', ''])", 0),
    ],
    ids=["SIGTERM", "SIGHUP", "SIGKILL", "os._exit", "os.exec"],
)
def test_an_end_that_runs_no_python_loses_what_was_not_sent_and_says_nothing(
    embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path, ending: str, status: int
) -> None:
    name = topic(embedded)
    assert end_of(tmp_path, embedded, name, SENT + ending) == (status, "", "")
    assert not delivered(embedded, name)


@pytest.mark.parametrize(
    ("ending", "status"),
    [("os.kill(os.getpid(), signal.SIGTERM)", -15), ("os._exit(0)", 0)],
    ids=["SIGTERM", "os._exit"],
)
def test_what_was_flushed_before_is_there(
    embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path, ending: str, status: int
) -> None:
    name = topic(embedded)
    assert end_of(tmp_path, embedded, name, f"{SENT}\nproducer.flush()\n{ending}") == (status, "", "")
    assert delivered(embedded, name)


@pytest.mark.parametrize(
    "place",
    [
        "time.sleep(60)",
        "producer.flush()",
        "while True: pass",
        "with producer: time.sleep(60)",
    ],
    ids=["sleep", "flush", "computing", "with"],
)
def test_a_handler_of_sigterm_that_exits_delivers(
    embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path, place: str
) -> None:
    """Wherever the main thread is at that moment."""
    name = topic(embedded)
    if place == "producer.flush()":
        embedded.set_rtt(600)  # it is still waiting then
    text = f"""
    start(exits_on_sigterm=True)
    for number in numbers:
        work(number)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    {place}
    """
    assert end_of(tmp_path, embedded, name, text) == (0, "", "")
    embedded.set_rtt(0)
    assert delivered(embedded, name)


def test_a_second_sigterm_does_not_end_the_delivery(
    embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path
) -> None:
    """Its handler raises SystemExit amid the wait at the end of the interpreter, which was on its way already."""
    name = topic(embedded)
    embedded.set_rtt(300)
    text = """
    start(exits_on_sigterm=True)
    for number in numbers:
        work(number)
    left = [0.1, 0.1, 0.1]
    def alarm(*_):
        signal.setitimer(signal.ITIMER_REAL, left.pop() if left else 0)
        os.kill(os.getpid(), signal.SIGTERM)
    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    time.sleep(60)
    """
    assert end_of(tmp_path, embedded, name, text) == (0, "", "")
    embedded.set_rtt(0)
    assert delivered(embedded, name)


def test_ctrl_c_delivers(embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path) -> None:
    name = topic(embedded)
    status, out, err = end_of(tmp_path, embedded, name, f"{SENT}\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)")
    assert (status, out) == (-2, "") and err.endswith("\nKeyboardInterrupt\n")
    assert delivered(embedded, name)


# -- workers of multiprocessing -------------------------------------------------------------------------------

METHODS = ("fork", "spawn", "forkserver")


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_in_a_with_block_loses_what_its_workers_hold(
    embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path, method: str
) -> None:
    """The end of the block terminates them: SIGTERM.

    They are busy here.  An idle worker may notice in time that the pool ends, and deliver; mostly it does not.
    """
    name = topic(embedded)
    text = f"""
    with multiprocessing.get_context("{method}").Pool(2, start) as pool:
        print(any(pool.map(work, numbers)))
        busy = pool.map_async(stay, ["one", "two"], chunksize=1)
        while not (os.path.exists("one") and os.path.exists("two")):
            time.sleep(0.01)
    """
    assert end_of(tmp_path, embedded, name, text) == (0, "False\n", "")
    assert not delivered(embedded, name)


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_that_is_closed_and_joined_delivers(
    embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path, method: str
) -> None:
    name = topic(embedded)
    text = f"""
    with multiprocessing.get_context("{method}").Pool(2, start) as pool:
        print(any(pool.map(work, numbers)))
        pool.close()
        pool.join()
    """
    assert end_of(tmp_path, embedded, name, text) == (0, "False\n", "")
    assert delivered(embedded, name)


def test_workers_with_a_handler_of_sigterm_deliver(
    embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic(embedded)
    text = """
    with multiprocessing.Pool(2, start, [True]) as pool:
        pool.map(work, numbers)
    """
    assert end_of(tmp_path, embedded, name, text) == (0, "", "")
    assert delivered(embedded, name)


@pytest.mark.parametrize("method", METHODS)
def test_a_sigterm_amid_the_end_of_a_worker_delivers(
    embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path, method: str
) -> None:
    """An idle worker of a pool may end by itself just before it is terminated.

    Its handler then raises SystemExit in multiprocessing's own code, which leaves out the rest of its list.  Python
    3.14 prints such an exception.
    """
    name = topic(embedded)
    text = f"""
    process = multiprocessing.get_context("{method}").Process(target=work_and_end_amid_the_end)
    process.start()
    process.join()
    print(process.exitcode)
    """
    status, output, errors = end_of(tmp_path, embedded, name, text)
    assert (status, output) == (0, "0\n")
    if errors:
        assert errors.startswith("Exception ignored in atexit callback <function _exit_function")
        assert errors.endswith("SystemExit: 0\n") and errors.count("Traceback") == 1 and "forebay" not in errors
    assert delivered(embedded, name)


@pytest.mark.parametrize("method", METHODS)
def test_a_process_pool_executor_delivers(
    embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path, method: str
) -> None:
    """The end of its block waits until its workers have ended by themselves."""
    name = topic(embedded)
    text = f"""
    context = multiprocessing.get_context("{method}")
    with concurrent.futures.ProcessPoolExecutor(2, context, start) as pool:
        print(any(pool.map(work, numbers)))
    """
    assert end_of(tmp_path, embedded, name, text) == (0, "False\n", "")
    assert delivered(embedded, name)


@pytest.mark.parametrize(
    ("daemon", "ending"), [(False, "process.terminate()"), (True, "pass")], ids=["terminate", "daemon"]
)
def test_a_process_that_is_terminated_loses_what_it_holds(
    embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path, daemon: bool, ending: str
) -> None:
    """A daemon process is terminated when its parent ends."""
    name = topic(embedded)
    text = f"""
    process = multiprocessing.Process(target=work_and_stay, args=["mark"], daemon={daemon})
    process.start()
    while not os.path.exists("mark"):
        time.sleep(0.01)
    {ending}
    """
    assert end_of(tmp_path, embedded, name, text) == (0, "", "")
    assert not delivered(embedded, name)
