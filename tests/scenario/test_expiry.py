"""delivery.timeout.ms wherever a record spends it: the error says where, for how long and why; others go on."""

from __future__ import annotations

from typing import Any

from forebay.errors import DisconnectError, KafkaTimeoutError, NotEnoughReplicasError
from tests.fakes.broker import INIT_PRODUCER_ID, PRODUCE
from tests.fakes.world import World

NODE = 1


def three(**options: Any) -> World:
    return World(
        nodes=3,
        topics={"test": 3},
        **{"delivery_timeout_ms": 3000, "request_timeout_ms": 2900, "retry_backoff_max_ms": 400, **options},
    )


def expired(future: Any) -> KafkaTimeoutError:
    error = future.exception(0)
    assert isinstance(error, KafkaTimeoutError)
    return error


def test_a_node_that_is_never_ready() -> None:
    """22.4: its records expire by the clock and name it; those of the other nodes are written meanwhile."""
    world = three()
    world.cluster.down(NODE)
    world.run(100)
    begun = world.now
    lost = [world.send(b"lost", partition=NODE) for _ in range(3)]
    for number in range(20):
        others = [world.send(b"%d" % number, partition=partition) for partition in (0, 2)]
        world.run(100)
        assert [future.result(0).offset for future in others] == [number, number]
    world.until(lambda: lost[0].done())
    assert 3000 <= world.now - begun <= 3020
    for future in lost:
        error = expired(future)
        assert error.message == "Expiring 3 record(s) for test-1:3000 ms has passed since batch creation"
        assert {name: error.context[name] for name in ("node", "attempts", "age_ms")} == {
            "node": NODE,
            "attempts": 0,
            "age_ms": 3000,
        }
        assert isinstance(error.__cause__, DisconnectError)
        assert error.context["phase"] == f"queued (node 1 not ready: {error.__cause__.message})"
        assert "refused" in error.__cause__.message and "127.0.0.1:9001" in error.__cause__.message
    assert world.pool.available() == world.pool.total


def test_a_node_that_stops_answering() -> None:
    world = three(max_in_flight_requests_per_connection=1, request_timeout_ms=2990)
    world.cluster.brokers[NODE].held.add(PRODUCE)
    first = world.send(b"1", partition=NODE)
    world.run(100)
    other = world.send(b"2", partition=0)
    world.run(2950)
    assert other.result(0).offset == 0
    assert (expired(first).context["phase"], expired(first).context["node"]) == ("in flight", NODE)


def test_backing_off() -> None:
    world = three(retry_backoff_ms=2000, retry_backoff_max_ms=2000)
    world.cluster.fail("test", 0, 19, 19, 19)
    future = world.send(partition=0)
    world.run(3100)
    error = expired(future)
    assert error.context["phase"] == "backing off" and error.context["attempts"] == 2
    assert isinstance(error.__cause__, NotEnoughReplicasError)
    assert "last_error=NotEnoughReplicasError" in str(error)


def test_without_a_leader() -> None:
    world = three()
    world.cluster.move("test", NODE, -1)
    world.metadata.request_update(True)
    world.run(200)
    future = world.send(partition=NODE)
    world.run(3100)
    assert (expired(future).context["phase"], expired(future).context["node"]) == ("no leader known", "unknown")


def test_muted_behind_a_batch_in_flight() -> None:
    world = three(max_in_flight_requests_per_connection=1, request_timeout_ms=2900)
    world.cluster.brokers[0].held.add(PRODUCE)
    world.send(b"1", partition=0)
    world.settle()
    later = world.send(b"2", partition=0)
    world.advance(3000)
    world.turn()
    assert expired(later).context["phase"] == "muted behind a batch in flight"


def test_held_back_for_order() -> None:
    """With sequences, what follows a batch in doubt waits until that is settled."""
    world = three(idempotent=True, batch_size=0)
    world.cluster.brokers[0].held.add(PRODUCE)
    futures = [world.send(b"%d" % number, partition=0) for number in range(2)]
    world.settle()
    world.advance(3000)
    world.turn()
    assert expired(futures[0]).context["phase"] == "in flight"
    assert expired(futures[1]).context["phase"] == "held back until the batches before it are settled"


def test_waiting_for_a_producer_id() -> None:
    world = World(idempotent=True, known=False, delivery_timeout_ms=3000, request_timeout_ms=2900)
    world.cluster.brokers[0].held.add(INIT_PRODUCER_ID)
    world.learn("test")
    future = world.send()
    world.run(3100)
    assert expired(future).context["phase"] == "waiting for a producer id"


def test_a_throttled_node() -> None:
    world = three()
    world.cluster.throttles.append(10_000)
    world.send(partition=0)
    world.settle()
    future = world.send(partition=0)
    world.run(3100)
    assert str(expired(future).context["phase"]).startswith("queued (node 0 not ready: throttled for another ")


def test_what_a_callback_sends_again_expires_too() -> None:
    """To the same partition, which had nothing left at that moment."""
    world = three()
    world.cluster.down(NODE)
    world.run(100)
    ends: list[float] = []

    def again(report: Any) -> None:
        assert isinstance(report.error, KafkaTimeoutError)
        ends.append(world.now)
        if len(ends) < 3:
            world.send(partition=NODE, on_delivery=again)

    begun = world.now
    world.send(partition=NODE, on_delivery=again)
    world.run(10_000, 20)
    assert [round(end - begun, -2) for end in ends] == [3000, 6000, 9000]
    assert world.pool.available() == world.pool.total
