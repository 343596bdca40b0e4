"""Construction without descriptors, threads or memory: one class of error, nothing left open, nothing printed."""

from __future__ import annotations

import errno
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from forebay import AdminClient, KafkaProducer
from forebay._network.resolver import Resolver
from forebay._network.selector import SocketSelector
from forebay.errors import KafkaError, KafkaTimeoutError
from tests.support.pace import HANG_S

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}
ERRORS = {
    "descriptors": lambda: OSError(errno.EMFILE, "Too many open files"),
    "threads": lambda: RuntimeError("can't start new thread"),
    "memory": MemoryError,
}


class Supply:
    """Lets the ``n``-th call of this thread that opens a descriptor or starts a thread fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, make: Callable[[], BaseException]) -> None:
        self.make = make
        self.left = 0
        self.owner = threading.get_ident()
        monkeypatch.setattr(os, "pipe", self.counted(os.pipe))
        monkeypatch.setattr(os, "set_blocking", self.counted(os.set_blocking))
        monkeypatch.setattr(threading.Thread, "start", self.counted(threading.Thread.start))

    def counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any) -> Any:
            if threading.get_ident() == self.owner:
                self.left -= 1
                if self.left == 0:
                    raise self.make()
            return call(*arguments)

        return instead


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def ours() -> set[threading.Thread]:
    """Threads of the package's own."""
    return {thread for thread in threading.enumerate() if thread.name.startswith(("forebay", "kafka"))}


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What could only be printed."""
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    yield seen
    gc.collect()
    assert seen == []


def walk(make: Callable[[], Any], supply: Supply) -> int:
    """Lets one call after the other fail until ``make`` succeeds; how many did."""
    kept: list[BaseException] = []
    for count in range(1, 30):
        files, threads = open_files(), ours()
        supply.left = count
        try:
            make()
            return count - 1
        except KafkaError as error:
            assert type(error) is KafkaError
            assert type(error.__cause__) is type(supply.make())
            kept.append(error)  # its traceback keeps what was made
        supply.left = 0
        for thread in ours() - threads:
            thread.join(HANG_S)
        assert ours() <= threads
        assert open_files() == files
    raise AssertionError("it never succeeds")


@pytest.fixture(params=ERRORS)
def supply(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Supply:
    return Supply(monkeypatch, ERRORS[request.param])


pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors by /proc")


@pytest.mark.parametrize("options", [{}, {"transactional.id": "t"}, {"compression.type": "gzip"}])
def test_a_producer(supply: Supply, unraisable: list[Any], options: dict[str, Any]) -> None:
    closed: list[str] = []

    class Watching:
        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            """Nothing to do."""

        def close(self) -> None:
            closed.append("closed")

    def make() -> None:
        KafkaProducer({**NOWHERE, **options, "interceptor.classes": [Watching()]}).close()

    failed = walk(make, supply)
    assert failed == 6, "two threads that look up names, a pipe of two ends, and the sender's"
    assert len(closed) == failed + 1


def test_a_control(supply: Supply, unraisable: list[Any]) -> None:
    """It opens nothing before its first call, and a failed call leaves it as it was."""
    with AdminClient(NOWHERE) as admin:
        # KafkaTimeoutError is a KafkaError: only what fails for want of something reaches ``walk``.
        def ask() -> None:
            try:
                admin.create_topic("t", timeout=0)
            except KafkaTimeoutError:
                return

        assert walk(ask, supply) == 5


@pytest.mark.parametrize("part", [Resolver, SocketSelector])
def test_a_part_by_itself(supply: Supply, unraisable: list[Any], part: type) -> None:
    """Its own error, and nothing left open while that is kept."""
    kept = []
    for count in (1, 2, 3):
        files, threads = open_files(), ours()
        supply.left = count
        try:
            made = part()
        except Exception as error:  # noqa: BLE001 - looked at below
            kept.append(error)
            for thread in ours() - threads:
                thread.join(HANG_S)
            assert ours() <= threads and open_files() == files
        else:
            if part is Resolver:
                made.close()
    assert [type(error) for error in kept] == [type(supply.make())] * (2 if part is Resolver else 3)
