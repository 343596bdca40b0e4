"""MESSAGE_TOO_LARGE through the whole producer: every record and callback once, in order, at its own offset."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from forebay._delivery.future import RecordFuture
from forebay.errors import InvalidRecordError, KafkaError, KafkaTimeoutError, RecordTooLargeError
from tests.fakes.produce import Answer
from tests.fakes.world import Told, World
from tests.support.pace import HANG_S, within

TOO_LARGE = 10


def limited(limit: int, **options: Any) -> World:
    """A producer before brokers that take batches of at most ``limit`` bytes."""
    world = World(**{"batch_size": 4096, "linger_ms": 10, **options})
    world.cluster.max_batch_size = limit
    return world


def send_all(world: World, count: int, size: int = 50, **more: Any) -> list[RecordFuture]:
    return [world.send(b"%04d" % number + bytes(size), **more) for number in range(count)]


def numbers(world: World) -> list[int]:
    return [int(value[:4]) for value in world.values() if value is not None]


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("codec", ["none", "lz4", "gzip"])
@pytest.mark.parametrize("batch_size", [300, 4096])
def test_it_goes_on_in_parts(idempotent: bool, codec: str, batch_size: int) -> None:
    """22.3: with batch.size above the broker's limit too, where the 3.x client splits for ever."""
    # Without sequences more than one request in flight may change the order, as with every retry.
    one = {} if idempotent else {"max_in_flight_requests_per_connection": 1}
    world = limited(200, idempotent=idempotent, compression_type=codec, batch_size=batch_size, **one)
    told = Told()
    futures = send_all(world, 30, on_delivery=told)
    world.run(500)
    assert [future.result(0).offset for future in futures] == list(range(30))
    assert numbers(world) == list(range(30))
    assert [(metadata.offset, error) for metadata, error in told] == [(number, None) for number in range(30)]
    assert world.pool.available() == world.pool.total
    assert codec != "none" or world.metric("batch-split-total") > 0
    assert world.metric("record-retry-total") == 0


@pytest.mark.parametrize("idempotent", [True, False])
def test_an_import_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch, idempotent: bool) -> None:
    """No descriptor was left to read the module that splits: the batch waits for another attempt, and is split then."""
    world = limited(200, idempotent=idempotent, max_in_flight_requests_per_connection=1)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "forebay._accumulator.split", None)
        futures = send_all(world, 5)
        world.run(200)
        assert not any(future.done() for future in futures)
        assert world.metric("batch-split-total") == 0
    world.run(500)
    assert [future.result(0).offset for future in futures] == list(range(5))
    assert numbers(world) == list(range(5))


def test_what_follows_stays_behind() -> None:
    """Batches in flight behind the one that is split are refused out of order, and come after its parts."""
    world = limited(1 << 20, idempotent=True, batch_size=300)
    send_all(world, 1)
    world.run(50)
    world.cluster.fail("test", 0, TOO_LARGE)
    futures = [world.send(b"%04d" % number + bytes(50)) for number in range(1, 30)]
    world.run(1000)
    assert numbers(world) == list(range(30))
    assert [future.result(0).offset for future in futures] == list(range(1, 30))


def test_splitting_is_no_retry() -> None:
    world = limited(200, retries=0)
    futures = send_all(world, 30)
    world.run(500)
    assert all(future.exception(0) is None for future in futures)


def test_only_the_record_that_is_too_large_fails() -> None:
    world = limited(500, idempotent=True)
    before = send_all(world, 3)
    large = world.send(b"9999" + bytes(1000))
    after = [world.send(b"%04d" % number + bytes(50)) for number in range(3, 6)]
    world.run(1000)
    assert [future.result(0).offset for future in before + after] == list(range(6))
    assert numbers(world) == list(range(6))
    error = large.exception(0)
    assert isinstance(error, RecordTooLargeError) and "A record of 1013 bytes" in error.message
    assert world.metric("record-error-total") == 1


def test_futures_that_nobody_called_back_walk_to_their_part() -> None:
    world = limited(200, idempotent=True)
    futures = send_all(world, 30)
    world.until(lambda: world.metric("batch-split-total") > 0, step=5)
    assert not any(future.done() for future in futures)
    late: list[int] = []
    for future in futures:
        future.add_done_callback(lambda future: late.append(future.result(0).offset))
    world.run(500)
    assert late == list(range(30))
    assert repr(futures[29]).startswith("<RecordFuture ")


def test_a_part_is_done_before_the_others() -> None:
    """``done`` is each record's own; flush waits for all."""
    world = limited(200, idempotent=True)
    futures = send_all(world, 12)
    (batch,) = world.accumulator.begin_flush()
    seen: set[tuple[int, ...]] = set()
    for _ in range(200):
        world.turn()
        done = tuple(number for number, future in enumerate(futures) if future.done())
        seen.add(done)
        assert batch.result.done == (len(done) == 12)
    assert len(seen) > 2 and all(done == tuple(range(len(done))) for done in seen)
    world.accumulator.end_flush()


@pytest.mark.parametrize("outcome", ["written", "refused", "too late"])
def test_who_waits_meanwhile_goes_on_with_the_part(outcome: str) -> None:
    """One wait with one limit, over any number of splits."""
    world = limited(200, idempotent=True)  # in the order of the records
    futures = send_all(world, 30)
    heard: list[Any] = []
    begun = threading.Barrier(2)

    def wait() -> None:
        begun.wait()
        try:
            heard.append(futures[29].result(within(2) if outcome == "too late" else HANG_S).offset)
        except KafkaError as error:
            heard.append(type(error))

    thread = threading.Thread(target=wait)
    thread.start()
    begun.wait()
    thread.join(0.05)  # until it waits; should it be later, it begins at the part
    world.until(lambda: world.metric("batch-split-total") > 0, step=5)
    assert not heard
    if outcome == "too late":
        thread.join()
    elif outcome == "refused":
        world.cluster.fail("test", 0, *[Answer(87)] * 30)
    world.run(500)
    thread.join()
    expected = {"written": 29, "too late": KafkaTimeoutError}.get(outcome)
    assert heard == [expected] or (outcome == "refused" and issubclass(heard[0], KafkaError))


def test_record_errors_of_a_part_are_about_its_own_records() -> None:
    world = limited(1 << 20, idempotent=True)
    world.cluster.fail("test", 0, TOO_LARGE, Answer(87, record_errors=((0, "first"), (1, None), (77, "nobody"))))
    futures = send_all(world, 8, 100)
    world.run(500)
    errors = [future.exception(0) for future in futures]
    rest = "Failed to append record because it was part of a batch which had one more more invalid records"
    assert world.metric("batch-split-total") == 1
    # The first part has three records; of the batch as a whole their indices are the same, of the others they are not.
    assert [None if error is None else error.message for error in errors] == [
        "first",
        InvalidRecordError.default_message(),
        rest,
        *[None] * 5,
    ]
    assert [type(error) for error in errors[:3]] == [InvalidRecordError, InvalidRecordError, KafkaError]


def test_parts_keep_the_age_of_the_batch() -> None:
    world = limited(1 << 20, delivery_timeout_ms=1500, request_timeout_ms=1400)
    world.cluster.fail("test", 0, TOO_LARGE, *[6] * 1000)
    begun = world.now
    futures = [world.send(b"%d" % number) for number in range(4)]
    world.until(lambda: all(future.done() for future in futures))
    assert 1500 <= world.now - begun <= 1520
    assert all(isinstance(future.exception(0), KafkaTimeoutError) for future in futures)


def test_a_batch_that_expired_meanwhile_is_not_split() -> None:
    """F testExpiredBatchDoesNotSplitOnMessageTooLargeError: also where the answer is what shows that it is too late."""
    world = limited(1 << 20, delivery_timeout_ms=1500, request_timeout_ms=1400)
    futures = [world.send(), world.send()]
    world.cluster.brokers[0].held.add(0)
    world.run(20)
    (batch,) = world.sender.in_flight
    world.advance(1500)
    error = RecordTooLargeError()
    world.sender.complete(batch, None, error, world.now)
    assert all(isinstance(future.exception(0), KafkaTimeoutError) for future in futures)
    assert world.queue().batches == [] and world.metric("batch-split-total") == 0
    assert futures[0].exception(0).__cause__ is error  # type: ignore[union-attr]


def test_a_graceful_close_sends_the_parts() -> None:
    world = limited(200, idempotent=True)
    futures = send_all(world, 30)
    world.accumulator.close()
    world.until(lambda: not world.sender.has_work())
    assert [future.result(0).offset for future in futures] == list(range(30))


def test_a_forced_close_ends_the_parts() -> None:
    world = limited(200)
    futures = send_all(world, 30)
    world.until(lambda: world.metric("batch-split-total") > 0, step=5)
    world.sender.outcomes.fail_all(KafkaError("Producer is closed forcefully."))
    assert all(future.done() for future in futures)
    assert any(future.exception(0) is not None for future in futures)
    assert not world.accumulator.has_incomplete()


def test_nothing_is_left_of_a_split_batch() -> None:
    """F testTooLargeBatchesAreSafelyRemoved: neither in flight for its sequences nor to be expired later."""
    world = limited(1 << 20, idempotent=True)
    world.cluster.fail("test", 0, TOO_LARGE)
    futures = [world.send(), world.send()]
    world.run(500)
    assert [future.result(0).offset for future in futures] == [0, 1]
    assert world.queue().gate_state.in_flight == []
    world.advance(20_000)
    world.settle()
    assert world.metric("record-error-total") == 0


@pytest.mark.parametrize(("written", "idempotent"), [(True, True), (False, True), (True, False)])
def test_what_may_have_been_written_is_not_split(written: bool, idempotent: bool) -> None:
    """Its parts have sequences of their own, by which no broker could tell that it has the whole already."""
    world = limited(1 << 20, idempotent=idempotent)
    world.send(b"0000")
    world.run(100)
    world.cluster.lose(processed=written)
    world.cluster.fail("test", 0, *([0, TOO_LARGE] if written else [TOO_LARGE]))
    futures = [world.send(b"%04d" % number) for number in range(1, 4)]
    world.run(1000)
    if idempotent:
        assert {type(future.exception(0)) for future in futures} == {RecordTooLargeError}
        assert "may have been written: the answer to an earlier attempt was lost" in str(futures[0].exception(0))
        assert numbers(world) == ([0, 1, 2, 3] if written else [0])
    else:
        assert [future.exception(0) for future in futures] == [None] * 3
    last = world.send(b"0004")
    world.run(1000)
    assert last.exception(0) is None and numbers(world)[-1] == 4
