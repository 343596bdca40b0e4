"""Ctrl-C gets through every wait, and loses nothing."""

from __future__ import annotations

import signal
import time

import pytest

from forebay.testing import EmbeddedBroker
from tests.integration.programs import COUNT, Program, stored
from tests.support.fixtures import TopicFactory
from tests.support.pace import within


@pytest.mark.parametrize(
    "wait",
    [
        "future.result()",
        "future.result(WAIT_S)",
        "future.exception()",
        "producer.flush()",
        "producer.flush(WAIT_S)",
        "producer.close()",
        "producer.close(WAIT_S)",
        "producer.__exit__(None, None, None)",
        "producer.partitions_for('another')",
        "producer.send('another', b'v')",
        "[producer.send(topic, b'x' * 900) for _ in range(100)]",
    ],
)
@pytest.mark.parametrize("ending", ["", "producer.close()"], ids=["exit", "close"])
def test_ctrl_c_gets_through(embedded: EmbeddedBroker, topic: TopicFactory, wait: str, ending: str) -> None:
    """At once, and nothing is lost by it: what was accepted before is delivered in the end."""
    name = topic(embedded)
    text = f"""
    producer = make(linger_ms=0, buffer_memory=20_000, batch_size=1000, enable_idempotence=False)
    producer.send(topic, b"first").result(WAIT_S)
    until_told()
    future = producer.send(topic, b"second")
    try:
        say("ready")
        {wait}
        say("nothing came")
    except KeyboardInterrupt:
        say("interrupted", producer._parts.accumulator.pool.queued())
    {ending}
    """
    with Program(text, embedded.bootstrap_servers, name) as program:
        program.until_ready()
        embedded.node_down()
        program.go()
        program.until_ready()
        time.sleep(within(0.3))
        begun = time.monotonic()
        program.interrupt()
        assert program.process.stdout is not None
        said = program.process.stdout.readline()
        took = time.monotonic() - begun
        time.sleep(0.2)
        embedded.node_up()
        program.end()
    assert said == "interrupted 0\n"
    assert took < within(1)
    assert stored(embedded, name)[:2] == [b"first", b"second"]


@pytest.mark.parametrize("wait", ["producer.flush()", "producer.close()", "future.result()", "time.sleep(WAIT_S)"])
def test_a_termination_signal_delivers_what_was_accepted(
    embedded: EmbeddedBroker, topic: TopicFactory, wait: str
) -> None:
    """A service's handler that turns SIGTERM into SystemExit gets through every wait, and the exit sends the rest."""
    name = topic(embedded)
    text = f"""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    producer = make(linger_ms=60_000)
    producer.send(topic, b"first")
    producer.flush()
    until_told()
    for value in values({COUNT}):
        future = producer.send(topic, value)
    say("ready")
    {wait}
    """
    with Program(text, embedded.bootstrap_servers, name) as program:
        program.until_ready()
        embedded.node_down()
        program.go()
        program.until_ready()
        time.sleep(within(0.3))
        program.process.send_signal(signal.SIGTERM)
        time.sleep(within(0.3))
        embedded.node_up()
        program.end(status=143)
    assert stored(embedded, name)[1:] == [b"%d" % number for number in range(COUNT)]
