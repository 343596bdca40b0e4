"""A process that may open no more files: a constructor raises a KafkaError, leaves nothing open, prints nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.pace import HANG_S

PROGRAM = """
import gc, json, logging, os, resource, sys, threading, time
import forebay._transactions.session, forebay._sender.transactional, forebay.admin._session, forebay.producer._columns
from forebay import AdminClient, KafkaProducer
from forebay.errors import KafkaError, KafkaTimeoutError
from forebay.testing import EmbeddedBroker

logging.getLogger("forebay").addHandler(logging.NullHandler())  # what is printed is no log line
NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}

def admin():
    with AdminClient(NOWHERE) as ours:
        try:
            ours.create_topic("t", timeout=0)
        except KafkaTimeoutError:
            pass

MAKE = {
    "KafkaProducer": lambda: KafkaProducer(NOWHERE).close(),
    "AdminClient": admin,
    "EmbeddedBroker": lambda: EmbeddedBroker().close(),
}
make = MAKE[sys.argv[1]]
make()  # what it imports and looks up once is there now
gc.collect()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
lowest = os.dup(0)
os.close(lowest)
files = sorted(os.listdir("/proc/self/fd"))
kept, causes = [], []
for room in range(30):
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + room, hard))
    try:
        make()
        break
    except KafkaError as error:
        kept.append(error)
        causes.append([type(error).__name__, type(error.__cause__).__name__])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert sorted(os.listdir("/proc/self/fd")) == files, (room, os.listdir("/proc/self/fd"), files)
end = time.monotonic() + 10
while threading.active_count() > 1 and time.monotonic() < end:
    time.sleep(0.01)
assert threading.active_count() == 1, threading.enumerate()
del kept
gc.collect()
print(json.dumps(causes))
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors by /proc")
@pytest.mark.parametrize(
    ("what", "error"),
    [("KafkaProducer", "KafkaError"), ("AdminClient", "KafkaError"), ("EmbeddedBroker", "EmbeddedBrokerError")],
)
def test_descriptors_used_up(what: str, error: str) -> None:
    command = [sys.executable, "-c", PROGRAM, what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    causes = json.loads(done.stdout)
    assert len(causes) >= 2 and causes == [[error, "OSError"]] * len(causes)
