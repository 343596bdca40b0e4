"""Whatever ends a producer or its process: what was accepted is delivered, or somebody is told of it."""

from __future__ import annotations

import socket
import time

import pytest

import forebay
from forebay import KafkaProducer
from forebay.testing import EmbeddedBroker
from tests.integration.programs import COUNT, Program, all_in_order, expected, run, stored
from tests.integration.workload import WAIT_S
from tests.support.fixtures import TopicFactory
from tests.support.pace import within, within_ms

# -- what was accepted is delivered ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("raise ValueError", 1),
        ("threading.Thread(target=lambda: time.sleep(0.2)).start()", 0),
        ("_ = sys.modules; keep = [producer]; keep.append(keep); del producer", 0),
    ],
    ids=["end", "sys.exit", "error", "another-thread-lives-on", "cycle"],
)
def test_interpreter_exit_without_close(
    embedded: EmbeddedBroker, topic: TopicFactory, ending: str, status: int
) -> None:
    name = topic(embedded, 3)
    text = f"""
    producer = make(linger_ms=60_000, batch_size=1000)
    for value in values({COUNT}):
        producer.send(topic, value)
    {ending}
    """
    run(text, embedded, name, status)
    assert all_in_order(embedded, name)


def test_del(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """The process goes on, and its end has no part in the delivery."""
    name = topic(embedded, 3)
    text = f"""
    producer = make(linger_ms=60_000, batch_size=1000)
    for value in values({COUNT}):
        producer.send(topic, value)
    begun = time.monotonic()
    del producer
    say(time.monotonic() - begun)
    for thread in network_threads():
        thread.join(WAIT_S)
    say(len(network_threads()))
    os._exit(0)
    """
    out, err = run(text, embedded, name)
    took, threads = out.split()
    assert float(took) < 0.5
    assert (threads, err) == ("0", "")
    assert all_in_order(embedded, name)


def test_a_dropped_cycle(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """The garbage collector may end a producer on any thread, also the sender's own."""
    name = topic(embedded, 3)
    text = f"""
    class Service:
        def __init__(self):
            self.producer = make(linger_ms=60_000, batch_size=1000)
        def told(self, report):
            gc.collect()
    gc.collect()
    gc.freeze()  # else each of so many collections walks through all that was imported
    service = Service()
    for value in values({COUNT}):
        service.producer.send(topic, value, on_delivery=service.told)
    del service
    gc.collect()
    while network_threads():
        gc.collect()
        time.sleep(0.02)
    say(len(network_threads()))
    os._exit(0)
    """
    # The callbacks of what is on its way hold the service: it is dropped once batches are full and acknowledged,
    # so linger has to let the last ones go.
    out, err = run(text.replace("60_000", "50"), embedded, name)
    assert (out.strip(), err) == ("0", "")
    assert all_in_order(embedded, name)


@pytest.mark.parametrize("ending", ["pass", "raise ValueError('of the block')"], ids=["end", "error"])
def test_with(embedded: EmbeddedBroker, topic: TopicFactory, ending: str) -> None:
    name = topic(embedded, 3)
    text = f"""
    try:
        with make(linger_ms=60_000, batch_size=1000) as producer:
            for value in values({COUNT}):
                producer.send(topic, value)
            {ending}
    except ValueError as error:
        say(error)
    say(len(network_threads()))
    os._exit(0)
    """
    out, err = run(text, embedded, name)
    assert (out, err) == ("0\n" if ending == "pass" else "of the block\n0\n", "")
    assert all_in_order(embedded, name)


def test_many_producers_at_exit(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded, 3)
    text = """
    producers = [make(linger_ms=60_000) for _ in range(10)]
    for number, value in enumerate(values(1000)):
        producers[number % 10].send(topic, value)
    del producers[:5]
    """
    run(text, embedded, name)
    assert sorted(map(int, stored(embedded, name))) == list(range(COUNT))


# -- what cannot be delivered is counted ----------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "del producer"], ids=["exit", "del"])
def test_exit_when_the_broker_has_gone(embedded: EmbeddedBroker, topic: TopicFactory, ending: str) -> None:
    name = topic(embedded, 3)
    text = f"""
    producer = make(linger_ms=0, delivery_timeout_ms={within_ms(2000)}, request_timeout_ms={within_ms(1000)})
    producer.send(topic, b"first").result(WAIT_S)
    until_told()
    for number, value in enumerate(values(37)):
        producer.send(topic, value, partition=number % 3)
    {ending}
    """
    with Program(text, embedded.bootstrap_servers, name) as program:
        program.until_ready()
        embedded.node_down()
        begun = time.monotonic()
        program.go()
        _, err = program.end()
        took = time.monotonic() - begun
    assert 1.5 < took < within(5)
    assert "The producer ended with 37 record(s) not acknowledged" in err
    assert "Expiring" in err and "refused" in err


@pytest.mark.parametrize("ending", ["", "del producer", "sys.exit(3)"], ids=["exit", "del", "sys.exit"])
def test_exit_while_messages_are_held_for_their_topic(
    embedded: EmbeddedBroker, topic: TopicFactory, ending: str
) -> None:
    """The class for programs of confluent-kafka takes a message before its topic is known, and returns at once."""
    name = topic(embedded, 3)
    text = f"""
    from forebay.compat.confluent_kafka import Producer
    producer = Producer({{"bootstrap.servers": bootstrap, "linger.ms": 1000}})
    for value in values({COUNT}):
        producer.produce(topic, value)
    {ending}
    """
    _, err = run(text, embedded, name, 3 if ending == "sys.exit(3)" else 0)
    assert all_in_order(embedded, name) and err == ""


def test_exit_while_messages_are_held_and_there_is_no_broker() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        text = """
        from forebay.compat.confluent_kafka import Producer
        producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 60_000})
        import forebay
        forebay.end_on_sigterm(1.0)
        for value in values(37):
            producer.produce(topic, value)
        signal.raise_signal(signal.SIGTERM)
        """
        begun = time.monotonic()
        with Program(text, f"127.0.0.1:{taken.getsockname()[1]}", "t") as program:
            _, err = program.end(143)
    assert "37 message(s) were not sent: The process ends before the topic is known" in err
    assert "did not end within" not in err and time.monotonic() - begun < within(20)


def test_exit_when_there_never_was_a_broker() -> None:
    """Nothing was accepted, so nothing is waited for."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        text = """
        producer = make(max_block_ms=300)
        error = producer.send(topic, b"v").exception(0)
        say(type(error).__name__, error.phase if hasattr(error, "phase") else error.context["phase"])
        """
        begun = time.monotonic()
        with Program(text, f"127.0.0.1:{taken.getsockname()[1]}", "t") as program:
            out, err = program.end()
    assert out.strip() == "KafkaTimeoutError waiting for metadata"
    assert time.monotonic() - begun < within(10)
    assert "not acknowledged" not in err


def test_ctrl_c_at_exit(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """Who does not want to wait for the last records is told how many there were."""
    name = topic(embedded)
    text = """
    import atexit
    atexit.register(until_told)
    producer = make(linger_ms=0)
    producer.send(topic, b"first").result(WAIT_S)
    until_told()
    for value in values(23):
        producer.send(topic, value)
    """
    # The handler of the program was registered later than the package's, so it runs before it.
    with Program(text, embedded.bootstrap_servers, name) as program:
        program.until_ready()
        embedded.node_down()
        program.go()
        program.until_ready()
        program.go()
        time.sleep(within(0.5))
        begun = time.monotonic()
        program.interrupt()
        _, err = program.end()
    assert time.monotonic() - begun < within(8)
    assert "23 record(s) not acknowledged" in err


def test_exit_beside_callbacks_that_do_not_return(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    """Three producers take no longer than one, and the log tells what was acknowledged from what was not."""
    name = topic(embedded, 3)
    text = f"""
    held = []
    def hold(report):
        held.append(report.metadata)
        threading.Event().wait()
    for _ in range(3):
        producer = make(linger_ms=0, delivery_timeout_ms={within_ms(1000)}, request_timeout_ms={within_ms(500)})
        producer.send(topic, b"first", on_delivery=hold)
    while len(held) < 3:
        time.sleep(0.01)
    producer.send(topic, b"second", partition=0)
    """
    begun = time.monotonic()
    with Program(text, embedded.bootstrap_servers, name) as program:
        _, err = program.end()
    assert time.monotonic() - begun < within(15), "each has 1.5 s to end and 5 s to end by force"
    assert err.count("1 record(s) were acknowledged, 0 record(s) were not and failed") == 2
    assert err.count("1 record(s) were acknowledged, 1 record(s) were not and failed") == 1


def test_close_with_a_time_limit(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    producer = KafkaProducer({"bootstrap.servers": embedded.bootstrap_servers, "linger.ms": 0})
    producer.send(name, b"first").result(WAIT_S)
    embedded.node_down()
    futures = [producer.send(name, value) for value in expected(12)]
    begun = time.monotonic()
    with pytest.raises(forebay.errors.KafkaTimeoutError, match=r"12 record\(s\) were not acknowledged within 0.3 s"):
        producer.close(0.3)
    assert time.monotonic() - begun < within(3)
    errors = [future.exception(0) for future in futures]
    assert {str(error) for error in errors} == {"Producer is closed forcefully."}
