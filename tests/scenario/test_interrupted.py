"""Public calls, interrupted at each instruction by a handler that makes public calls, and that waits for the sender.

A handler of signals, and a finaliser, run on the thread that they interrupt.  So no lock may be held there that the
same thread takes again, and none that the sender's thread needs while the handler waits for it: such a wait is refused
in words.  ``tests/integration/test_signals.py`` has real signals and real threads.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from forebay._delivery.sender_lock import may_wait
from forebay._runtime.owner import change_owner
from forebay.errors import KafkaError
from forebay.model import TopicPartition
from tests.fakes.coordinator import TransactionalWorld
from tests.fakes.steps import at_step, each_step, within_time
from tests.fakes.world import World

Call = Callable[[World], object]
LARGE = b"x" * 2_000_000
DOES_NOT_COMPRESS = bytes(range(256)) * 8
UNKNOWN = TopicPartition("t", 0)


class Failing:
    """An interceptor that raises in each of its methods."""

    def on_send(self, record: object) -> object:
        raise ValueError("of on_send")

    def on_acknowledgement(self, metadata: object, error: object) -> None:
        raise ValueError("of on_acknowledgement")


def plain() -> World:
    return World(topics={"test": 2}, linger_ms=1000)


def compressing() -> World:
    return World(topics={"test": 2}, linger_ms=1000, compression_type="lz4", batch_size=1000)


def intercepting() -> World:
    return World(topics={"test": 2}, linger_ms=1000, interceptor_classes=[Failing()])


def transactional() -> World:
    world = TransactionalWorld(2)
    world.begin()
    return world


def fill(world: World) -> object:
    """Closes a batch, and compresses it, with each call."""
    return [world.producer.send("test", DOES_NOT_COMPRESS[:1500], partition=0) for _ in range(2)]


def ask_for_another_topic(world: World) -> object:
    name = f"another-{len(world.metadata.topics)}"
    return world.producer.send_nowait(name, b"v")


def restart_transaction(world: World) -> object:
    session = world.parts.session
    assert session is not None
    session.note_failed_send(KafkaError("of a test"))
    return CALLS["abort_transaction"](world)


CALLS: dict[str, Call] = {
    "send": lambda world: world.producer.send("test", b"v", key=b"k", headers=[("a", b"b")]),
    "send too large": lambda world: world.producer.send("test", LARGE).exception(0),
    "send to a new topic": ask_for_another_topic,
    "fill": fill,
    "send_batch": lambda world: world.producer.send_batch("test", [b"v"] * 50, partition=0).done(),
    "purge": lambda world: world.producer.purge(blocking=False),
    "flush": lambda world: world.producer.flush(0),
    "metrics": lambda world: world.producer.metrics(),
    "partitions_for": lambda world: world.producer.partitions_for("test"),
    "result": lambda world: world.producer.send("test", b"v").result(0),
    "add_done_callback": lambda world: world.producer.send("test", b"v").add_done_callback(print),
    "begin_transaction": lambda world: world.producer.begin_transaction(),
    "send_offsets": lambda world: world.producer.send_offsets_to_transaction({UNKNOWN: 1}, "group", 0),
    "commit_transaction": lambda world: world.producer.commit_transaction(0),
    "abort_transaction": lambda world: world.producer.abort_transaction(0),
    "restart_transaction": restart_transaction,
    "detach_transaction": lambda world: world.producer.detach_transaction(),
    "set_transactional_id": lambda world: world.producer.set_transactional_id("foobar"),
}
ORDINARY = (
    "send",
    "send too large",
    "send to a new topic",
    "send_batch",
    "purge",
    "flush",
    "metrics",
    "partitions_for",
)
MOREOVER = ("result", "add_done_callback")
INTERRUPTED: list[tuple[str, Callable[[], World]]] = [
    *((name, plain) for name in (*ORDINARY, *MOREOVER)),
    ("fill", compressing),
    ("send", intercepting),
    *((name, transactional) for name in CALLS if "transaction" in name or name == "send_offsets"),
]


def attempt(world: World, *names: str) -> None:
    """Makes the calls; what they refuse is their right."""
    for name in names:
        try:
            CALLS[name](world)
        except (KafkaError, TypeError):
            pass


def sender_side(world: World) -> None:
    """What the sender's thread may do at any moment, as far as it takes a lock."""
    world.metadata.request_update(False)
    world.parts.metrics.record_errors.record(0)
    world.parts.metrics.roll(world.now + 1e6)
    world.parts.report(ValueError("of a test"), TopicPartition("test", 0))
    # Each turn here has a thread of its own, which ends before the next.
    for part in (world.sender, world.accumulator.schedule, world.accumulator.drain, world.parts.client):
        change_owner(part)
    world.turn()


@pytest.mark.parametrize(("name", "make"), INTERRUPTED, ids=lambda value: getattr(value, "__name__", value))
def test_a_handler_may_make_calls_and_wait_for_the_sender(name: str, make: Callable[[], World]) -> None:
    others = ["send", "metrics", "send to a new topic", "send too large", "flush"]
    if make is transactional:
        others += ["commit_transaction", "abort_transaction", "begin_transaction"]
    # Each transactional call is another one once the one before has come to something.
    world = None if make is transactional else make()

    def interrupted(number: int) -> bool:
        here = world or make()

        def handler() -> None:
            attempt(here, name, others[number % len(others)])
            if may_wait():
                within_time(lambda: sender_side(here), "the sender's turn, while a handler waits for it,")

        return at_step(number, lambda: attempt(here, name), handler)

    assert each_step(interrupted, name) > 0
