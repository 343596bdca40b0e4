"""Reading a partition back: what committed readers see, backwards and forwards, gaps, and what goes wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._protocol.fetch import AbortedTransaction
from forebay._protocol.metadata import MetadataPartition, MetadataResponse, MetadataTopic
from forebay._protocol.versions import ApiKey
from forebay._records.decoded import ControlType
from forebay._records.reader import read_batches
from forebay.admin._tail import committed, leader_of
from forebay.errors import (
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    ProtocolError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
)
from forebay.model import Node, TailRecord, TopicPartition
from tests.fakes.broker import METADATA, Partition, Topic
from tests.unit.admin.world import AdminWorld, Log

FETCH = ApiKey.FETCH
ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT
WHERE = TopicPartition("t", 1)


def values(records: list[TailRecord]) -> list[bytes | None]:
    return [record.value for record in records]


def test_the_last_records_oldest_first() -> None:
    world = AdminWorld()
    for number in range(100):
        world.log.write(b"%d" % number)
    assert world.admin.read_tail("t") == [TailRecord(99, 1099, b"99", b"99", ())]
    assert values(world.admin.read_tail("t", max_records=3)) == [b"97", b"98", b"99"]
    assert len(world.admin.read_tail("t", max_records=1000)) == 100


def test_an_empty_partition() -> None:
    world = AdminWorld()
    assert world.admin.read_tail("t") == []
    assert list(world.admin.read_from("t")) == []
    assert not world.asked(FETCH)


def test_markers_are_no_records() -> None:
    world = AdminWorld()
    world.log.write(b"a", producer_id=5)
    world.log.mark(5, COMMIT)
    assert values(world.admin.read_tail("t")) == [b"a"]
    assert values(world.admin.read_tail("t", isolation="read_uncommitted")) == [b"a"]


def test_what_was_aborted_is_looked_past_in_growing_steps() -> None:
    world = AdminWorld()
    world.log.write(b"kept")
    for _ in range(300):
        began = world.log.end
        world.log.write(b"lost", producer_id=5)
        world.log.mark(5, ABORT, began)
    assert values(world.admin.read_tail("t")) == [b"kept"]
    assert 2 <= len(world.asked(FETCH)) <= 5
    assert values(world.admin.read_tail("t", isolation="read_uncommitted")) == [b"lost"]


def test_nothing_from_the_first_open_transaction_on() -> None:
    world = AdminWorld()
    world.log.write(b"a")
    world.log.stable = world.log.end
    world.log.write(b"open", producer_id=5)
    world.log.write(b"behind it")
    assert values(world.admin.read_tail("t", max_records=9)) == [b"a"]
    assert values(list(world.admin.read_from("t", isolation="read_uncommitted"))) == [b"a", b"open", b"behind it"]


def test_gaps_of_compaction() -> None:
    world = AdminWorld()
    world.log.write(b"a", b"b", offsets=(3, 700))
    world.log.write(b"c", offsets=(5000,))
    world.log.end = 5001
    assert values(world.admin.read_tail("t", max_records=2)) == [b"b", b"c"]
    assert [record.offset for record in world.admin.read_from("t")] == [3, 700, 5000]


def test_nothing_left_up_to_the_end_is_the_end() -> None:
    world = AdminWorld()
    world.log.write(b"a")
    world.log.end = 500
    assert values(world.admin.read_tail("t")) == [b"a"]
    assert list(world.admin.read_from("t", offset=1)) == []


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_leader_that_has_not_caught_up_is_asked_again(isolation: str) -> None:
    """A new leader shows less than the one before until its followers answer: what is missing is not at an end."""
    world = AdminWorld()
    world.log.write(b"a")
    world.log.write(b"b")
    world.log.behind.extend([1] * 20)
    assert values(world.admin.read_tail("t", isolation=isolation)) == [b"b"]
    world.log.behind.extend([1] * 20)
    assert values(list(world.admin.read_from("t", isolation=isolation))) == [b"a", b"b"]


def test_a_leader_that_never_catches_up_ends_in_an_error() -> None:
    world = AdminWorld()
    world.log.write(b"a")
    world.log.write(b"b")
    world.log.behind.extend([1] * 1000)
    with pytest.raises(KafkaTimeoutError, match=r"read_tail was not done within 1 s: .*high watermark") as caught:
        world.admin.read_tail("t", max_records=2, timeout=1)
    assert isinstance(caught.value.__cause__, KafkaError)
    assert caught.value.__cause__.name == "OFFSET_NOT_AVAILABLE"


def test_a_leader_is_looked_up_once_for_all_pieces() -> None:
    world = AdminWorld()
    world.piece = 100
    for number in range(6):
        world.log.write(b"%d" % number)
    assert len(list(world.admin.read_from("t"))) == 6
    assert len(world.asked(FETCH)) > 3
    assert len([request for request in world.asked(METADATA) if request.body.topics]) == 1


def test_a_leader_that_does_not_answer_is_looked_up_again() -> None:
    world = AdminWorld(2)
    world.log.write(b"a")
    world.cluster.topics["t"] = Topic([Partition(leader=2)])
    assert values(world.admin.read_tail("t")) == [b"a"]
    records = world.admin.read_from("t")
    world.broker(2).held.add(FETCH)
    world.broker(2).held.add(ApiKey.LIST_OFFSETS)
    world.cluster.topics["t"] = Topic([Partition(leader=1)])
    assert values(list(records)) == [b"a"]


def test_answers_cut_in_the_middle_of_a_batch() -> None:
    world = AdminWorld()
    world.piece = 200
    for number in range(60):
        world.log.write(b"%d" % number, b"+")
    assert len(list(world.admin.read_from("t"))) == 120
    assert values(world.admin.read_tail("t", max_records=4)) == [b"58", b"+", b"59", b"+"]


def test_reading_begins_and_ends_within_batches() -> None:
    world = AdminWorld()
    world.log.write(*(b"%d" % number for number in range(10)))
    world.log.stable = 8
    assert [record.offset for record in world.admin.read_from("t", offset=4)] == [4, 5, 6, 7]


def test_throttled_answers_are_no_end() -> None:
    world = AdminWorld()
    world.log.write(b"a")
    world.throttles.extend([30, 30, 30, 30, 30])
    begun = world.clock.now()
    assert values(world.admin.read_tail("t")) == [b"a"]
    assert world.clock.now() - begun >= 150


def test_offsets_that_are_not_kept_are_skipped() -> None:
    world = AdminWorld()
    world.log.write(b"old")
    world.log.write(b"new")
    world.log.start = 1
    assert values(list(world.admin.read_from("t", offset=0))) == [b"new"]
    assert values(world.admin.read_tail("t", max_records=9)) == [b"new"]


def test_a_log_that_was_cut_back_is_an_error() -> None:
    world = AdminWorld()
    world.log.write(b"a")
    world.codes[FETCH].append(1)
    with pytest.raises(KafkaError, match=r"where=t-0, offset=0") as caught:
        world.admin.read_tail("t")
    assert caught.value.name == "OFFSET_OUT_OF_RANGE"


def test_a_leader_that_moved_is_looked_up_again() -> None:
    world = AdminWorld()
    world.log.write(b"a")
    world.codes[FETCH].append(6)
    world.codes[ApiKey.LIST_OFFSETS].append(6)
    assert values(world.admin.read_tail("t")) == [b"a"]
    assert len(world.asked(FETCH)) == 2


def test_reading_makes_no_topic() -> None:
    world = AdminWorld()
    with pytest.raises(KafkaTimeoutError, match="read_tail was not done within 0.5 s") as caught:
        world.admin.read_tail("missing", timeout=0.5)
    assert isinstance(caught.value.__cause__, UnknownTopicOrPartitionError)
    named = [request for request in world.asked(METADATA) if request.body.topics]
    assert named
    assert not any(request.body.allow_auto_topic_creation for request in named)


def test_a_topic_that_is_forbidden_is_said_at_once() -> None:
    world = AdminWorld()
    world.cluster.topics["t"] = Topic(error=29)
    begun = world.clock.now()
    with pytest.raises(TopicAuthorizationError):
        world.admin.read_tail("t")
    assert world.clock.now() - begun < 100


def test_records_before_the_offset_asked_for_are_refused() -> None:
    """A broker that answers so would have us read for ever."""
    world = AdminWorld()
    world.log.write(b"a", b"b")
    world.log.write(b"c")
    world.log.batches = [(9, 9, world.log.batches[0][2])]
    world.log.end = 10
    with pytest.raises(ProtocolError, match="t-0 at offset 2 was answered with records before it"):
        list(world.admin.read_from("t", offset=2))


def test_a_batch_that_is_cut_short_alone_is_refused() -> None:
    world = AdminWorld()
    world.log.write(b"a")
    first, last, data = world.log.batches[0]
    world.log.batches = [(first, last, data[:-1])]
    with pytest.raises(ProtocolError, match="t-0 at offset 0 has a batch that is cut short"):
        world.admin.read_tail("t")


steps = st.lists(st.tuples(st.sampled_from(["plain", "write", "commit", "abort"]), st.integers(1, 3)), max_size=40)


@given(steps, st.integers(60, 400), st.integers(1, 8))
def test_a_random_log_reads_as_a_model_says(history: list[tuple[str, int]], piece: int, wanted: int) -> None:
    """Plain records and up to three transactions at a time, in any order, in answers of any size."""
    world = AdminWorld()
    world.piece = piece
    log, began = world.log, dict[int, int]()
    written: list[tuple[int, int, int]] = []  # offset, producer or -1, number of its transaction
    count: dict[int, int] = {}
    lost: set[tuple[int, int]] = set()
    for action, producer in history:
        if action == "plain":
            written.append((log.end, -1, 0))
            log.write(b"v")
        elif action == "write":
            began.setdefault(producer, log.end)
            written.append((log.end, producer, count.get(producer, 0)))
            log.write(b"v", producer_id=producer)
        elif producer in began:
            if action == "abort":
                lost.add((producer, count.get(producer, 0)))
            log.mark(producer, ABORT if action == "abort" else COMMIT, began.pop(producer))
            count[producer] = count.get(producer, 0) + 1
    log.stable = min(began.values(), default=log.end)
    expected = [at for at, producer, number in written if at < log.stable and (producer, number) not in lost]
    assert [record.offset for record in world.admin.read_from("t")] == expected
    assert [record.offset for record in world.admin.read_tail("t", max_records=wanted)] == expected[-wanted:]


def test_aborted_transactions_of_one_producer_follow_each_other() -> None:
    log = Log()
    for kind in (ABORT, COMMIT, ABORT):
        log.write(b"%d" % kind, producer_id=5)
        log.mark(5, kind)
    batches = read_batches(b"".join(data for _, _, data in log.batches))
    aborted = [AbortedTransaction(5, 4), AbortedTransaction(5, 0)]
    assert [batch.records[0].value for batch in committed(batches, aborted)] == [b"%d" % COMMIT]


def answer(error: int = 0, partition_error: int = 0, leader: int = 1) -> MetadataResponse:
    partition = MetadataPartition(partition_error, 1, leader, 0, (), (), ())
    topic = MetadataTopic(error, "t", None, False, (partition,))
    return MetadataResponse(0, (Node(1, "a", 9092),), None, 1, (topic,), 0)


def test_the_leader_as_metadata_has_it() -> None:
    assert leader_of(answer(), WHERE) == Node(1, "a", 9092)
    with pytest.raises(LeaderNotAvailableError):
        leader_of(answer(leader=-1), WHERE)
    with pytest.raises(LeaderNotAvailableError):
        leader_of(answer(partition_error=5, leader=-1), WHERE)
    with pytest.raises(UnknownTopicOrPartitionError, match="Topic t has 1 partitions, none is 4"):
        leader_of(answer(), TopicPartition("t", 4))
    with pytest.raises(UnknownTopicOrPartitionError):
        leader_of(answer(), TopicPartition("u", 1))
