"""Host names with addresses of both families, on real sockets: localhost above all, with a broker on one of them."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forebay import AdminClient, KafkaProducer
from forebay._assembly import system_surroundings
from forebay._network.resolver import Resolver
from forebay.errors import KafkaTimeoutError
from forebay.testing import EmbeddedBroker
from forebay.testing._forward import Forwarder
from tests.integration.workload import WAIT_S, metric
from tests.support.fixtures import LOCAL, TopicFactory
from tests.support.pace import HANG_S, until, within, within_ms
from tests.support.readback import read_all
from tools.kafka import RealKafka

ROOT = Path(__file__).parents[2]
NAME = "both-families.test"
SIX, FOUR = "::1", "127.0.0.1"
FAMILY = {SIX: socket.AF_INET6, FOUR: socket.AF_INET}
OTHER = {SIX: FOUR, FOUR: SIX}
#: Neither the back-off nor the setup timeout may be what brings the next address.
PATIENT: dict[str, Any] = {
    "reconnect.backoff.ms": 120_000,
    "reconnect.backoff.max.ms": 120_000,
    "socket.connection.setup.timeout.ms": 120_000,
    "socket.connection.setup.timeout.max.ms": 120_000,
    "max.block.ms": within_ms(20_000),
}
#: Runs README's program where localhost is ::1 first, as in the hosts files of Debian, Ubuntu and macOS.
BOTH_FAMILIES = """
import socket
system = socket.getaddrinfo
def both(host, port, *args, **options):
    if host not in ("localhost", b"localhost"):
        return system(host, port, *args, **options)
    kind = socket.SOCK_STREAM
    return [(socket.AF_INET6, kind, 6, "", ("::1", port, 0, 0)), (socket.AF_INET, kind, 6, "", ("127.0.0.1", port))]
socket.getaddrinfo = both
"""


def lookup(*numbers: str) -> Any:
    """As ``getaddrinfo``, with ``numbers`` for ``NAME`` and for localhost."""

    def look_up(host: str, port: int, **options: Any) -> list[Any]:
        if host not in (NAME, "localhost"):
            return socket.getaddrinfo(host, port, **options)
        return [row for number in numbers for row in socket.getaddrinfo(number, port, type=socket.SOCK_STREAM)]

    return look_up


def around(*numbers: str) -> Any:
    return system_surroundings()._replace(resolver=lambda: Resolver(lookup(*numbers)))


@contextlib.contextmanager
def black_hole(host: str, port: int) -> Iterator[None]:
    """An address at which connections are neither taken nor refused: the backlog of its listener is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(FAMILY[host]))
        listener.bind((host, port))
        listener.listen(0)
        for _ in range(8):
            filler = stack.enter_context(socket.socket(FAMILY[host]))
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect((host, port))
        with pytest.raises(TimeoutError):
            socket.create_connection((host, port), 1)
        yield


@contextlib.contextmanager
def reachable_by(broker: EmbeddedBroker, host: str, *, silent: bool) -> Iterator[int]:
    """The port on which ``broker`` answers at ``host`` alone, and by which it advertises ``NAME``."""
    forwarder = Forwarder([host], 0, broker.address())
    try:
        broker.advertise(1, NAME, forwarder.port)
        with black_hole(OTHER[host], forwarder.port) if silent else contextlib.nullcontext():
            yield forwarder.port
    finally:
        forwarder.close()
        broker.advertise(1, *broker.address())


@pytest.mark.parametrize("silent", [False, True], ids=["refused", "silent"])
@pytest.mark.parametrize("host", [FOUR, SIX])
def test_the_other_family_is_tried_without_a_backoff(
    embedded: EmbeddedBroker, topic: TopicFactory, host: str, silent: bool
) -> None:
    """Bootstrap and the advertised listener alike, whichever family comes first."""
    name = topic(embedded)
    for numbers in ((SIX, FOUR), (FOUR, SIX)):
        with reachable_by(embedded, host, silent=silent) as port:
            config = {"bootstrap.servers": f"{NAME}:{port}", **PATIENT}
            with KafkaProducer._with(around(*numbers), config) as ours:
                assert ours.send(name, b"v").result(WAIT_S).topic == name
    assert len(read_all(embedded.bootstrap_servers, name)) == 2


def test_the_other_family_is_tried_soon(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """A quarter of a second for each of the two connections, and some more on a busy machine."""
    name = topic(embedded)
    with reachable_by(embedded, FOUR, silent=True) as port:
        began = time.monotonic()
        with KafkaProducer._with(around(SIX, FOUR), {"bootstrap.servers": f"{NAME}:{port}", **PATIENT}) as ours:
            ours.send(name, b"v").result(WAIT_S)
            took = time.monotonic() - began
    assert 0.25 <= took < within(5)


def test_a_control_reaches_it_too(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    with reachable_by(embedded, FOUR, silent=False) as port:
        admin = AdminClient._with(around(SIX, FOUR), {"bootstrap.servers": f"{NAME}:{port}", **PATIENT})
        assert admin.read_tail(name) == []
        admin.close()


def test_the_error_names_every_address_with_its_reason() -> None:
    with socket.socket() as taken:
        taken.bind((FOUR, 0))
        port = taken.getsockname()[1]
        config = {"bootstrap.servers": f"{NAME}:{port}", "max.block.ms": 1000}
        with KafkaProducer._with(around(SIX, FOUR), config) as ours:
            # Else the time of the send may be over before the sender's thread had its first turn.
            until(lambda: metric(ours, "connection-close-total") >= 2, "both addresses have failed")
            with pytest.raises(KafkaTimeoutError) as failed:
                ours.send("t", b"v").result(WAIT_S)
    for host in (f"[::1]:{port}", f"127.0.0.1:{port}"):
        assert re.search(re.escape(host) + ": E[A-Z]+: ", str(failed.value)), failed.value


def test_an_embedded_broker_is_reached_by_localhost(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """Whichever family comes first, and if it is the only one."""
    name = topic(embedded)
    port = embedded.address()[1]
    embedded.advertise(1, "localhost", port)
    for numbers in ((SIX, FOUR), (FOUR, SIX), (SIX,), (FOUR,)):
        with KafkaProducer._with(around(*numbers), {"bootstrap.servers": f"localhost:{port}", **PATIENT}) as ours:
            assert ours.send(name, b"v").result(WAIT_S).topic == name
    assert len(read_all(f"127.0.0.1:{port}", name)) == 4


def test_a_kafka_that_advertises_localhost(kafka: RealKafka, topic: TopicFactory) -> None:
    """``advertised.listeners=localhost`` while it listens on 127.0.0.1 alone."""
    name = topic(kafka)
    for numbers in ((SIX, FOUR), (FOUR, SIX)):
        with KafkaProducer._with(around(*numbers), {"bootstrap.servers": kafka.address_of(LOCAL), **PATIENT}) as ours:
            assert ours.send(name, b"v").result(WAIT_S).topic == name
    assert len(read_all(kafka.bootstrap_servers, name)) == 2


@pytest.mark.parametrize("host", ["localhost", FOUR])
@pytest.mark.parametrize("beginning", ["", BOTH_FAMILIES], ids=["the system's localhost", "::1 first"])
def test_the_first_program_of_the_readme_runs_against_forebay_broker(host: str, beginning: str) -> None:
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert program is not None and '"localhost:9092"' in program[1]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "forebay.cli", "broker", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as broker:
        try:
            assert broker.stdout is not None
            port = broker.stdout.readline().strip().rpartition(":")[2]
            code = beginning + program[1].replace("localhost:9092", f"{host}:{port}")
            done = subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                env=environment,
                timeout=HANG_S,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, "")
            assert [record.value for record in read_all(f"127.0.0.1:{port}", "topic")] == [b"v"]
        finally:
            broker.terminate()
