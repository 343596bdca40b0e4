"""metrics._exported: which producers are read, and under which names."""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from forebay._metrics import names
from forebay._metrics.registry import Kind, MetricName
from forebay._sender import lifecycle
from forebay.metrics import readings
from forebay.metrics._exported import Watched, in_base_unit, prometheus_name, tags_of
from forebay.producer._path import FORKED
from tests.fakes.world import World
from tests.support.pace import HANG_S


class Known(World):
    """Its producer is known to the process, as one with a thread is."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        lifecycle._producers.add(self.producer)

    def end(self) -> None:
        """What the end of the sender's thread does."""
        self.parts.metrics.close()


def test_readings_are_metrics_with_more() -> None:
    world = World()
    world.send(b"v")
    world.settle()
    found = {reading.name: reading for reading in readings(world.producer)}
    snapshot = world.producer.metrics()
    assert set(snapshot) == {name for name in found if name.kind is not Kind.HISTOGRAM}
    (acks,) = [reading for name, reading in found.items() if name.kind is Kind.HISTOGRAM]
    assert (acks.value, acks.number, sum(acks.buckets)) == (1, 1, 1)
    assert list(readings(SimpleNamespace(_producer=world.producer)))


def test_a_copy_in_a_forked_child_has_nothing_to_tell() -> None:
    world = Known()
    assert [name for name, _ in Watched([world.producer]).producers()] == [world.producer.client_id]
    world.producer._set_state(FORKED)
    assert list(readings(world.producer)) == []
    assert Watched([world.producer]).producers() == []


def test_a_fork_while_another_thread_reads_leaves_no_lock_behind() -> None:
    watched = Watched([])
    assert watched in lifecycle.producers()
    with watched._lock:
        watched._after_fork_in_child()
        assert watched.producers() == []


def test_what_is_no_producer() -> None:
    for wrong in (5, SimpleNamespace(_producer=5)):
        with pytest.raises(TypeError, match="a KafkaProducer or an AsyncKafkaProducer is wanted, got "):
            Watched([wrong])


def test_each_has_a_name_of_its_own_and_keeps_it() -> None:
    one, two, three = (Known(client_id=name) for name in ("a", "a", "b"))
    watched = Watched([one.producer, two.producer, three.producer])
    assert watched.producers() == [("a", one.producer), ("a#2", two.producer), ("b", three.producer)]
    one.end()
    assert watched.producers() == [("a#2", two.producer), ("b", three.producer)]


def test_a_reading_that_interrupts_a_reading_waits_for_nothing() -> None:
    """As in a signal handler: the same thread holds the lock."""
    one = Known(client_id="read twice")
    watched = Watched([one.producer])
    found: list[object] = []

    def read() -> None:
        with watched._lock:
            found.append(watched.producers())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(HANG_S)
    assert found == [[("read twice", one.producer)]]


def test_the_name_of_one_that_ended_is_free_at_once() -> None:
    watched = Watched()
    one = Known(client_id="restarted")
    assert ("restarted", one.producer) in watched.producers()
    one.end()
    two = Known(client_id="restarted")
    assert ("restarted", two.producer) in watched.producers()


def test_all_of_the_process_if_none_is_chosen_and_none_is_kept_alive() -> None:
    watched = Watched()
    first = Known(client_id="first")
    assert ("first", first.producer) in watched.producers()
    later = Known(client_id="later")
    assert ("later", later.producer) in watched.producers()
    del later
    gc.collect()
    assert "later" not in [name for name, _ in watched.producers()]


ROWS = [
    *((names.PRODUCER, row) for row in names.PRODUCER_ROWS),
    *((names.TOPIC, row) for row in (*names.TOPIC_ROWS, names.TOPIC_HISTOGRAM)),
    *((names.NODE, row) for row in names.NODE_ROWS),
]


@pytest.mark.parametrize(
    ("group", "name", "expected"),
    [
        (names.PRODUCER, "record-send-total", "forebay_record_send"),
        (names.PRODUCER, "outgoing-byte-total", "forebay_outgoing_bytes"),
        (names.PRODUCER, "bufferpool-wait-time-ns-total", "forebay_bufferpool_wait_time_seconds"),
        (names.PRODUCER, "bufferpool-wait-time-total", ""),
        (names.PRODUCER, "request-latency-avg", "forebay_request_latency_seconds"),
        (names.PRODUCER, "request-latency-max", "forebay_request_latency_max_seconds"),
        (names.PRODUCER, "io-wait-time-ns-avg", ""),
        (names.PRODUCER, "record-send-rate", ""),
        (names.TOPIC, "byte-total", "forebay_topic_bytes"),
        (names.TOPIC, "compression-rate", "forebay_topic_compression_rate"),
        (names.TOPIC, "record-ack-time", "forebay_topic_record_ack_time_seconds"),
        (names.NODE, "request-size-max", "forebay_node_request_size_max_bytes"),
    ],
)
def test_names_in_prometheus(group: str, name: str, expected: str) -> None:
    (row,) = [row for of, row in ROWS if of == group and row.name == name]
    assert prometheus_name(MetricName(name, group, "", (), row.kind, row.unit)) == expected


def test_no_two_metrics_have_one_name_in_prometheus() -> None:
    found = [prometheus_name(MetricName(row.name, group, "", (), row.kind, row.unit)) for group, row in ROWS]
    found += [prometheus_name(MetricName(name, names.PRODUCER, "", (), Kind.GAUGE, each.unit))
              for name, each in names.GAUGES.items()]  # fmt: skip
    named = [name for name in found if name]
    assert len(named) == len(set(named))


def test_units_and_tags() -> None:
    latency = MetricName("x-avg", names.NODE, "", (("client-id", "c"), ("node-id", "node--1")), Kind.AVG, "ms")
    assert in_base_unit(latency, 250) == 0.25
    assert in_base_unit(latency._replace(unit=""), 250) == 250
    assert tags_of(latency) == {"node": "-1"}
    assert tags_of(latency._replace(tags=(("client-id", "c"), ("topic", "t")))) == {"topic": "t"}
