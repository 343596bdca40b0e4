"""Which batches go out when: linger, backoff, full batches, mute, leaders, expiry, and turns among partitions."""

from __future__ import annotations

import math

import pytest

from tests.unit._accumulator.shelf import KEY, VALUE, Holding, Shelf


def test_linger() -> None:
    """B testLinger: not before linger.ms, then one batch with the record."""
    shelf = Shelf(batch_size=1024 + 61, linger=10)
    shelf.append()
    assert shelf.ready().nodes == []
    shelf.clock.advance(9.5)
    assert shelf.ready().nodes == []
    shelf.clock.advance(0.5)
    assert shelf.ready().nodes == [0]
    (batch,) = shelf.drain(0)
    assert batch.record_count == 1


def test_when_to_look_again() -> None:
    """B testNextReadyCheckDelay: the shortest wait among those that are not ready."""
    shelf = Shelf(batch_size=1025 + 61, linger=10)
    shelf.append(0, 68)
    found = shelf.ready()
    assert (found.nodes, found.next_check) == ([], 10)
    shelf.clock.advance(5)
    shelf.append(2, 68)
    found = shelf.ready()
    assert (found.nodes, found.next_check) == ([], 5)
    shelf.append(1, 69)
    found = shelf.ready()
    assert found.nodes == [0]
    assert found.next_check <= 10


def test_nothing_waits() -> None:
    found = Shelf().ready()
    assert (found.nodes, found.next_check, found.leaderless) == ([], math.inf, None)


@pytest.mark.parametrize("draw", [0.0, 0.5, 1 - 2**-53])
def test_backoff_grows(draw: float) -> None:
    """B testExponentialRetryBackoff: 100, 200, 400, 800 ms and 20 % either way; none for the first attempt."""
    shelf = Shelf(linger=2**27, jitter=lambda: draw)
    shelf.append(0)
    (batch,) = shelf.drain(0)
    for retry in range(4):
        shelf.schedule.reenqueue(batch, shelf.now, None)
        wait = min(100 * 2**retry * (0.8 + 0.4 * draw), 1000)
        found = shelf.ready()
        assert (found.nodes, shelf.drain(0)) == ([], [])
        assert found.next_check == pytest.approx(wait)
        shelf.clock.advance(wait - 1)
        assert (shelf.ready().nodes, shelf.drain(0)) == ([], [])
        shelf.clock.advance(1.001)
        assert shelf.ready().nodes == [0]
        assert shelf.drain(0) == [batch]


@pytest.mark.parametrize("draw", [0.0, 1 - 2**-53])
def test_a_leader_change_without_a_newer_epoch_does_not_skip_the_backoff(draw: float) -> None:
    """B testExponentialRetryBackoffLeaderChange: metadata without epochs; the last wait is capped at 1000."""
    shelf = Shelf(linger=2**27, jitter=lambda: draw)
    shelf.append(0)
    batch, node = shelf.drain(0)[0], 0
    for retry in range(5):
        shelf.schedule.reenqueue(batch, shelf.now, None)
        if retry == 2:
            shelf.move(0, 1)
            node = 1
        wait = min(100 * 2 ** min(retry, math.log2(10)) * (0.8 + 0.4 * draw), 1000)
        shelf.clock.advance(wait - 1)
        assert shelf.ready().nodes == []
        shelf.clock.advance(1.001)
        assert shelf.ready().nodes == [node]
        assert shelf.drain(node) == [batch]


def test_a_newer_leader_epoch_skips_the_backoff_once() -> None:
    """B testReadyAndDrainWhenABatchIsBeingRetried: epochs 100, 101, 101, 102."""
    shelf = Shelf(batch_size=10, linger=10, epoch=100, delivery=100_000)
    shelf.append()
    shelf.clock.advance(10)
    assert shelf.ready().nodes == [0]
    (batch,) = shelf.drain(0)
    assert (batch.leader_epoch, batch.attempts_when_leader_last_changed) == (100, 0)
    steps = [
        # waited, epoch in the metadata, goes?, the batch's epoch, attempts at its last change
        (1, 100, False, 100, 0),
        (0, 101, True, 101, 1),
        (2000, 101, True, 101, 1),
        (2000, 102, True, 102, 3),
    ]
    shelf.schedule.reenqueue(batch, shelf.now, None)
    for waited, epoch, goes, batch_epoch, changed_at in steps:
        shelf.clock.advance(waited)
        shelf.move(0, 0, epoch)
        assert shelf.ready().nodes == ([0] if goes else [])
        assert shelf.drain(0) == ([batch] if goes else [])
        assert (batch.leader_epoch, batch.attempts_when_leader_last_changed) == (batch_epoch, changed_at)
        if goes:
            shelf.schedule.reenqueue(batch, shelf.now, None)


@pytest.mark.parametrize("delivery", [3200, 2**31 - 1])
def test_expiry_of_one_batch(delivery: float) -> None:
    """B testExpiredBatchSingle, testExpiredBatchSingleMaxValue: muted or not."""
    shelf = Shelf(linger=300, delivery=delivery)
    for muted in (False, True):
        shelf.append()
        assert shelf.ready().nodes == []
        shelf.clock.advance(300)
        assert shelf.ready().nodes == [0]
        assert shelf.schedule.expired(shelf.now) == []
        assert shelf.schedule.next_expiry_at() == shelf.now - 300 + delivery
        shelf.clock.advance(delivery - 300)
        shelf.queue().muted = muted
        assert [batch.record_count for batch in shelf.schedule.expired(shelf.now)] == [1]
        assert shelf.ready().nodes == []
        shelf.queue().muted = False


def test_only_age_expires() -> None:
    """B testExpiredBatches: not the request timeout, nor a retry's wait."""
    shelf = Shelf(batch_size=1025 + 61, linger=30)
    shelf.append(0, 69)
    assert shelf.ready().nodes == [0]
    shelf.clock.advance(3201)
    shelf.queue().muted = True
    assert len(shelf.schedule.expired(shelf.now)) == 2
    shelf.queue().muted = False
    assert shelf.schedule.expired(shelf.now) == [] and shelf.ready().nodes == []
    shelf.append()
    shelf.clock.advance(30)
    (batch,) = shelf.drain(0)
    shelf.clock.advance(1000)
    shelf.schedule.reenqueue(batch, shelf.now, None)
    for wait in (160, 1):
        shelf.clock.advance(wait)
        for muted in (True, False):
            shelf.queue().muted = muted
            assert shelf.schedule.expired(shelf.now) == []
    assert shelf.drain(0) == [batch]
    shelf.append()
    shelf.clock.advance(91)
    for muted in (True, False):
        shelf.queue().muted = muted
        assert shelf.schedule.expired(shelf.now) == []
    shelf.clock.advance(100)
    assert shelf.ready().nodes == [0]


def test_what_comes_after_all_expired_is_known_to_expire() -> None:
    shelf = Shelf(leaders=(-1, 0))
    for partition in (0, 1):
        shelf.append(partition)
        shelf.clock.advance(3200)
        assert len(shelf.schedule.expired(shelf.now)) == 1
        shelf.append(partition)  # before the lines are read again
        begun = shelf.now
        shelf.clock.advance(10)
        assert shelf.schedule.expired(shelf.now) == []
        assert shelf.schedule.next_expiry_at() == begun + 3200
        shelf.clock.advance(3190)
        assert len(shelf.schedule.expired(shelf.now)) == 1


def test_soon_to_expire() -> None:
    """B testSoonToExpireBatchesArePickedUpForExpiry: when the next expiry is due is known of all that waits."""
    shelf = Shelf(linger=500)
    shelf.append(0)
    assert shelf.ready().nodes == []
    begun = shelf.now
    assert shelf.schedule.next_expiry_at() == begun + 3200
    shelf.clock.advance(501)
    assert [batch.partition for batch in shelf.drain(0)] == [0]
    shelf.append(1)
    shelf.clock.advance(2000)
    assert shelf.schedule.expired(shelf.now) == []
    assert [batch.partition for batch in shelf.drain(0)] == [1]


def test_send_all_does_not_linger() -> None:
    """B testRecordsDrainedWhenTransactionCompleting: linger does not count when everything is to be sent."""
    shelf = Shelf(linger=10)
    shelf.append(0, 2)
    assert shelf.ready().nodes == []
    assert shelf.ready(send_all=True).nodes == [0]
    assert [batch.record_count for batch in shelf.drain(0)] == [2]


def test_send_all_does_not_skip_a_backoff() -> None:
    shelf = Shelf()
    shelf.append()
    (batch,) = shelf.drain(0)
    shelf.schedule.reenqueue(batch, shelf.now, None)
    assert shelf.ready(send_all=True).nodes == []
    assert shelf.ready(send_all=True).next_check == 100


def test_topics_without_a_leader_are_named() -> None:
    shelf = Shelf(leaders=(-1, 0))
    shelf.append(0)
    shelf.append(1)
    found = shelf.ready()
    assert (found.nodes, found.leaderless) == ([0], {"test"})
    shelf.move(0, 1, 5)
    assert sorted(shelf.ready().nodes) == [0, 1]
    assert shelf.ready().leaderless is None
    assert [batch.partition for batch in shelf.drain(1)] == [0]


def test_batches_follow_their_leader() -> None:
    shelf = Shelf(leaders=(0, 0, 0))
    shelf.append(0)
    shelf.append(1)
    shelf.move(1, 1)
    assert sorted(shelf.ready().nodes) == [0, 1]
    assert [batch.partition for batch in shelf.drain(1)] == [1]
    assert [batch.partition for batch in shelf.drain(0)] == [0]


def test_a_retry_goes_to_the_head() -> None:
    shelf = Shelf(delivery=100_000)
    shelf.append()
    (first,) = shelf.drain(0)
    shelf.append(0, 2)
    shelf.schedule.reenqueue(first, shelf.now, None)
    assert [batch.record_count for batch in shelf.batches()] == [1, 2]
    assert first.attempts == 1
    shelf.clock.advance(100)
    assert shelf.drain(0) == [first]


def test_retries_stand_in_order_of_sequence() -> None:
    gate = Holding()
    shelf = Shelf(batch_size=61 + 15)
    shelf.append(0, 4)
    batches = []
    for sequence in range(3):
        (batch,) = shelf.drain(0, gate=gate)
        batch.set_producer_state(1, 0, sequence, False)
        batches.append(batch)
    for batch in (batches[1], batches[2], batches[0]):
        shelf.schedule.reenqueue(batch, shelf.now, gate)
    assert [batch.base_sequence for batch in shelf.batches()] == [0, 1, 2, -1]


def test_the_jitter_is_drawn_once_a_failure() -> None:
    """Drawn anew at each look, as in Java, the shortest of many draws would decide."""
    draws = iter([1 - 2**-53] + [0.0] * 100)
    shelf = Shelf(jitter=lambda: next(draws))
    shelf.append()
    (batch,) = shelf.drain(0)
    shelf.schedule.reenqueue(batch, shelf.now, None)
    shelf.clock.advance(110)
    for _ in range(50):
        assert shelf.ready().nodes == []
    shelf.clock.advance(10)
    assert shelf.ready().nodes == [0]


def test_weights_follow_the_queues() -> None:
    """D adaptivePartitionsTest, from the schedule's side: long queues get fewer new records."""
    shelf = Shelf(batch_size=61 + 20, leaders=(0, 0, 0), adaptive=True)
    shelf.append(1, 9, VALUE, KEY)
    shelf.ready()
    chosen = []
    for _ in range(60):
        shelf.append(-1, 1, bytes(20), None)
        chosen.append(
            max(
                range(3),
                key=lambda partition: shelf.queue(partition).batches[-1].created if shelf.batches(partition) else -1,
            )
        )
        shelf.clock.advance(1)
    counts = [sum(batch.record_count for batch in shelf.batches(partition)) for partition in range(3)]
    assert counts[1] - 9 < counts[0] and counts[1] - 9 < counts[2]


def test_a_broker_that_takes_nothing_is_left_out() -> None:
    shelf = Shelf(batch_size=61 + 20, leaders=(0, 1), adaptive=True, availability=50)
    shelf.append(0, 4)
    shelf.append(1, 4)
    shelf.schedule.loads.update_node_latency(0, shelf.now, True)
    shelf.schedule.loads.update_node_latency(1, shelf.now, True)
    shelf.clock.advance(100)
    shelf.schedule.loads.update_node_latency(0, shelf.now, True)
    shelf.schedule.loads.update_node_latency(1, shelf.now, False)
    shelf.ready()
    shelf.append(-1, 20, bytes(20), None)
    counts = [sum(batch.record_count for batch in shelf.batches(partition)) for partition in range(2)]
    assert counts[1] <= 5
    assert counts[0] >= 23


def test_retries_without_sequences_keep_their_order() -> None:
    """In whatever order they come back, again and again; what was never sent stays behind them."""
    shelf = Shelf(batch_size=61 + 15, delivery=100_000)
    shelf.append(0, 4)
    *sent, _ = waiting = shelf.batches()
    for order in ((0, 1, 2), (2, 0, 1)):
        assert [shelf.drain(0)[0] for _ in range(3)] == sent
        for at in order:
            shelf.schedule.reenqueue(sent[at], shelf.now, None)
        assert shelf.batches() == waiting
        shelf.clock.advance(10_000)


def test_each_look_finds_for_itself() -> None:
    shelf = Shelf(linger=0)
    shelf.append(0)
    first, second = shelf.ready(), shelf.ready()
    first.nodes.append(7)
    assert (second.nodes, second.next_check) == ([0], math.inf)
    assert second.leaderless is None
