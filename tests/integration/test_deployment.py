"""Servers that fork, and SIGTERM: each process has a producer of its own, and what was accepted is delivered."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import forebay
from forebay.testing import EmbeddedBroker
from tests.integration.programs import Program, stored
from tests.integration.workload import WAIT_S
from tests.support.fixtures import TopicFactory
from tests.support.pace import until, within

# The linger is longer than any test: only an end that closes the producer delivers.
APP = """
import os, time
import forebay

TOPIC = os.environ["TOPIC"]
producer = forebay.per_process(bootstrap_servers=os.environ["BROKER"], linger_ms=60_000)

def work(name):
    producer().send(TOPIC, name.encode())

def wsgi(environ, start_response):
    work(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
"""
MULTIPROCESSING = """
import multiprocessing, sys
import app

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    app.work("parent")
    children = [context.Process(target=app.work, args=("child %d" % number,)) for number in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0, 0, 0]
"""
CELERY = """
import os, sys
import app
from celery import Celery

folder = os.environ["QUEUE"]
celery = Celery("jobs", broker="filesystem://", backend="file://" + folder)
celery.conf.broker_transport_options = {"data_folder_in": folder, "data_folder_out": folder}
celery.conf.broker_connection_retry_on_startup = True
app.work("before the workers")

@celery.task(name="jobs.work")
def work(name):
    app.work(name)
    return os.getpid()

if __name__ == "__main__":
    results = [work.delay("task %d" % number) for number in range(6)]
    for result in results:
        result.get(timeout=60)
"""


class Folder:
    """The programs, and what they find in their environment."""

    def __init__(self, path: Path, broker: EmbeddedBroker, topic: str) -> None:
        self.path = path
        source = str(Path(forebay.__file__).parents[1])
        queue = path / "queue"
        queue.mkdir()
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([source, str(path)]),
            "BROKER": broker.bootstrap_servers,
            "TOPIC": topic,
            "QUEUE": str(queue),
        }
        for name, text in {"app": APP, "processes": MULTIPROCESSING, "jobs": CELERY}.items():
            (path / f"{name}.py").write_text(text)

    def run(self, *command: str) -> None:
        done = subprocess.run(
            [sys.executable, *command], cwd=self.path, env=self.environment, capture_output=True, text=True,
            timeout=WAIT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *command], cwd=self.path, env=self.environment, stderr=subprocess.PIPE, text=True
        )


@pytest.fixture
def topic_name(embedded: EmbeddedBroker, topic: TopicFactory) -> str:
    return topic(embedded)


@pytest.fixture
def folder(tmp_path: Path, embedded: EmbeddedBroker, topic_name: str) -> Folder:
    return Folder(tmp_path, embedded, topic_name)


def ended(process: subprocess.Popen[str]) -> str:
    """What it wrote, once SIGTERM has ended it well."""
    process.terminate()
    try:
        _, err = process.communicate(timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, err
    return err


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method: str, folder: Folder, embedded: EmbeddedBroker, topic_name: str) -> None:
    folder.run("-W", "ignore:This process:DeprecationWarning", "processes.py", method)
    assert sorted(stored(embedded, topic_name)) == [b"child 0", b"child 1", b"child 2", b"parent"]


def test_celery(folder: Folder, embedded: EmbeddedBroker, topic_name: str) -> None:
    pytest.importorskip("celery")
    worker = folder.start("-m", "celery", "-A", "jobs", "worker", "--pool", "prefork", "--concurrency", "2")
    try:
        folder.run("jobs.py")
    finally:
        err = ended(worker)
    found = sorted(stored(embedded, topic_name))
    assert found == [b"before the workers"] * 2 + [b"task %d" % number for number in range(6)], err


def ask(path: Path, name: str) -> bytes:
    """The body of an answer of the server at a socket."""

    def listens() -> bool:
        with socket.socket(socket.AF_UNIX) as trying, contextlib.suppress(OSError):
            trying.connect(str(path))
            return True
        return False

    until(listens, "the server listens")
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(path))
        asking.settimeout(WAIT_S)
        asking.sendall(b"GET %s HTTP/1.0\r\n\r\n" % name.encode())
        answer = b""
        while part := asking.recv(4096):
            answer += part
        return answer.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("sigterm", [False, True], ids=["", "end_on_sigterm"])
def test_gunicorn_with_preload(
    sigterm: bool, folder: Folder, embedded: EmbeddedBroker, topic_name: str, tmp_path: Path
) -> None:
    pytest.importorskip("gunicorn")
    hooks = "import app, forebay\napp.work('/preloaded')\n"
    if sigterm:
        hooks += "def post_worker_init(worker):\n    forebay.end_on_sigterm(20)\n"
    (tmp_path / "gunicorn.conf.py").write_text(hooks)
    path = tmp_path / "socket"
    server = folder.start("-m", "gunicorn", "--preload", "-w", "2", "-b", f"unix:{path}", "app:wsgi")
    try:
        workers = {ask(path, f"/{number}") for number in range(20)}
    finally:
        err = ended(server)
    assert workers and str(server.pid).encode() not in workers
    assert sorted(stored(embedded, topic_name)) == sorted([b"/preloaded", *(b"/%d" % n for n in range(20))]), err


KILLED = """
import forebay
forebay.end_on_sigterm({limit})
producer = make(linger_ms=60_000)
for value in values(100):
    producer.send(topic, value)
{more}
{block}:
    try:
        say("ready")
        time.sleep(60)
    finally:
        say("finally")
"""


def test_sigterm_delivers_what_was_accepted(embedded: EmbeddedBroker, topic_name: str) -> None:
    with Program(KILLED.format(limit=20, more="", block="if True"), embedded.bootstrap_servers, topic_name) as program:
        program.until_ready()
        program.process.send_signal(signal.SIGTERM)
        out, err = program.end(143)
    assert (out, err) == ("finally\n", "")
    assert len(stored(embedded, topic_name)) == 100


@pytest.mark.parametrize("block", ["if True", "with producer"], ids=["exit", "with"])
def test_sigterm_is_limited_where_the_broker_does_not_answer(
    block: str, embedded: EmbeddedBroker, topic_name: str
) -> None:
    text = KILLED.format(limit=2, more="until_told()", block=block)
    with Program(text, embedded.bootstrap_servers, topic_name) as program:
        program.until_ready()
        embedded.node_down()
        program.go()
        program.until_ready()
        begun = time.monotonic()
        program.process.send_signal(signal.SIGTERM)
        _, err = program.end(143)
    assert "100 record(s)" in err
    assert 1.5 < time.monotonic() - begun < within(60), "delivery.timeout.ms is 120 s"
