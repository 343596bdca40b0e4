"""How often a cluster is asked for metadata: once in retry.backoff.ms at most, whatever version it speaks.

Every answer takes a millisecond, so a storm is some hundred requests a second and not a loop without an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import pytest

from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay.errors import KafkaTimeoutError
from forebay.model import TopicPartition
from tests.fakes.broker import METADATA, PRODUCE, Partition, Received, Topic
from tests.fakes.produce import Answer, answer_produce, batches_of
from tests.fakes.waiting import in_turns
from tests.fakes.world import World

BACKOFF_MS, WINDOW_MS = 100, 2000
UNKNOWN, LEADER_NOT_AVAILABLE, NOT_LEADER, REBOOTSTRAP_REQUIRED = 3, 5, 6, 129


class Dialect(NamedTuple):
    """The newest Metadata version of a broker, and whether it names leader epochs."""

    version: int
    epochs: bool

    def __str__(self) -> str:
        return f"v{self.version}" + ("" if self.epochs else "-without-epochs")


OLDEST, NEWEST = max(SUPPORTED[ApiKey.METADATA][0], 1), SUPPORTED[ApiKey.METADATA][1]
DIALECTS = [Dialect(version, epochs) for version in range(OLDEST, NEWEST + 1) for epochs in (True, False)]
EDGES = [dialect for dialect in DIALECTS if dialect.version in (OLDEST, 8, 9, NEWEST)]
every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=str)
chosen_dialects = pytest.mark.parametrize("dialect", EDGES, ids=str)


class Asked(NamedTuple):
    at: float
    topics: frozenset[str]
    version: int


class Counted(World):
    """A producer whose metadata requests are kept with their times.

    Attributes:
        refuse: what the brokers do instead of answering, if anything.
    """

    def __init__(self, dialect: Dialect, **options: Any) -> None:
        self.dialect = dialect
        self.asked: list[Asked] = []
        self.heard: frozenset[str] = frozenset()
        self.refuse: Callable[[Received], bool] = lambda request: False
        config = {"retry_backoff_ms": BACKOFF_MS, "retry_backoff_max_ms": 1000, "max_block_ms": WINDOW_MS}
        super().__init__(known=False, **{**config, **options})
        for broker in self.cluster.brokers.values():
            broker.ranges[METADATA] = (0, dialect.version)
            broker.delay_ms = 1
            broker.script[METADATA] = self._answer
        for name in self.cluster.topics:
            self.adapt(name)

    def adapt(self, name: str) -> None:
        """Takes the leader epochs away if the brokers name none."""
        if not self.dialect.epochs:
            for part in self.cluster.topics[name].partitions:
                part.epoch = -1

    def know(self) -> None:
        """The topics so far are known, and nothing waits for the backoff of that any more."""
        for topic in self.cluster.topics:
            self.metadata.add_topic(topic, self.now)
        self.let_pass(500)
        self.heard = frozenset(self.cluster.topics)
        self.asked.clear()

    def _answer(self, request: Received) -> None:
        self.asked.append(
            Asked(self.now, frozenset(topic.name for topic in request.body.topics or ()), request.version)
        )
        if not self.refuse(request):
            request.answer(self.cluster.metadata(request), 1)

    def judge(self, least: int = 2) -> None:
        """Some requests, in the newest version of the brokers, and no two within the back-off.

        A topic that was never asked for before may be asked for at once.
        """
        assert least <= len(self.asked), self.asked
        assert {asked.version for asked in self.asked} == {self.dialect.version}
        heard = set(self.heard)
        early = []
        for before, after in zip(self.asked, self.asked[1:], strict=False):
            heard |= before.topics
            if after.at - before.at < BACKOFF_MS and after.topics <= heard:
                early.append((before, after))
        assert not early, f"{len(early)} of {len(self.asked)} came too early: {early[:3]}"


def together(world: World, calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """All calls on threads of their own, while the sender takes its turns here; what they returned or raised."""
    return in_turns(world, calls, lambda: world.let_pass(1), 2 * WINDOW_MS)


@every_dialect
def test_a_partition_without_a_leader(dialect: Dialect) -> None:
    """An idle producer goes on asking, ever more rarely."""
    world = Counted(dialect)
    world.know()
    world.cluster.topics["test"].partitions[1] = Partition(
        -1, 101 if dialect.epochs else -1, error=LEADER_NOT_AVAILABLE
    )
    world.metadata.request_update(False)
    world.let_pass(WINDOW_MS)
    world.judge(4)
    assert len(world.asked) <= 6, world.asked


@chosen_dialects
def test_a_topic_that_does_not_exist(dialect: Dialect) -> None:
    world = Counted(dialect)
    world.know()
    (future,) = together(world, [lambda: world.producer.send("nowhere", b"v")])
    assert isinstance(future.exception(0), KafkaTimeoutError)
    world.judge(4)
    assert len(world.asked) <= 6, world.asked


@chosen_dialects
@pytest.mark.parametrize("partitions", [0, 3])
def test_a_topic_that_gets_no_leaders(dialect: Dialect, partitions: int) -> None:
    """LEADER_NOT_AVAILABLE of the topic, or of each of its partitions."""
    world = Counted(dialect)
    world.know()
    missing = [Partition(-1, 0, (0,), (0,), error=LEADER_NOT_AVAILABLE) for _ in range(partitions)]
    world.cluster.topics["new"] = Topic(missing, error=0 if partitions else LEADER_NOT_AVAILABLE)
    world.adapt("new")
    together(world, [lambda: world.producer.send("new", b"v", partition=0)])
    world.let_pass(WINDOW_MS)
    world.judge(4)


@every_dialect
def test_refused_by_a_broker_that_metadata_goes_on_naming(dialect: Dialect) -> None:
    """Each refused batch asks for metadata; batches of 20 partitions come back at 20 different times."""
    world = Counted(dialect, topics={"test": 20}, retry_backoff_max_ms=100)
    world.know()

    def refuse(request: Received) -> None:
        answer_produce(request, {where: Answer(NOT_LEADER) for where in batches_of(request)}, delay_ms=1)

    world.cluster.brokers[0].script[PRODUCE] = refuse
    for partition in range(20):
        world.send(partition=partition)
        world.let_pass(5)
    world.let_pass(WINDOW_MS)
    world.judge(4)
    assert 4 * 20 <= len(world.cluster.requests()) <= 21 * 20


@chosen_dialects
def test_many_threads_that_wait_for_many_topics(dialect: Dialect) -> None:
    """One request for each topic at most, and beside those one in the back-off."""
    world = Counted(dialect)
    world.know()
    names = [f"missing-{number}" for number in range(5)]
    futures = together(world, [partial(world.producer.send, name, b"v") for name in names for _ in range(3)])
    assert all(isinstance(future.exception(0), KafkaTimeoutError) for future in futures)
    world.judge(4)
    assert len(world.asked) <= 6 + len(names), world.asked


@chosen_dialects
def test_calls_that_do_not_wait(dialect: Dialect) -> None:
    """A loop that asks every millisecond for what is not there asks the cluster no more often than one that waits."""
    world = Counted(dialect)
    world.know()
    for _ in range(WINDOW_MS):
        with pytest.raises(KafkaTimeoutError):
            world.producer.send_nowait("nowhere", b"v")
        world.settle(2)
        world.advance(1)
    world.judge(4)


@chosen_dialects
def test_answers_that_leave_out_what_was_asked_for(dialect: Dialect) -> None:
    world = Counted(dialect)
    world.know()

    def leave_out(request: Received) -> bool:
        request.answer(world.cluster.metadata(request, names=()), 1)
        return True

    world.refuse = leave_out
    together(world, [partial(world.producer.send, f"new-{number}", b"v") for number in range(3)])
    world.judge(4)


@chosen_dialects
def test_answers_without_brokers(dialect: Dialect) -> None:
    world = Counted(dialect)
    world.know()

    def empty(request: Received) -> bool:
        brokers, world.cluster.brokers = world.cluster.brokers, {}
        request.answer(world.cluster.metadata(request), 1)
        world.cluster.brokers = brokers
        return True

    world.refuse = empty
    together(world, [lambda: world.producer.send("new", b"v") for _ in range(3)])
    world.judge(4)


@pytest.mark.parametrize("version", range(9, NEWEST + 1))
def test_answers_of_a_broker_that_is_behind(version: int) -> None:
    """Its leader epochs are older than those known, and what it says of the leaders is not believed."""
    world = Counted(Dialect(version, True))
    world.know()
    for part in world.cluster.topics["test"].partitions:
        part.epoch -= 1
        part.error = LEADER_NOT_AVAILABLE
    world.metadata.request_update(False)
    world.let_pass(WINDOW_MS)
    world.judge(4)
    assert world.metadata.seen_epoch(TopicPartition("test", 0)) == 100
    assert len(world.asked) <= 6, world.asked


@chosen_dialects
@pytest.mark.parametrize("waiting", [False, True])
def test_connections_that_are_lost_with_the_request(dialect: Dialect, waiting: bool) -> None:
    world = Counted(dialect, nodes=2)
    world.know()

    def hang_up(request: Received) -> bool:
        request.link.reset()
        return True

    world.refuse = hang_up
    if waiting:
        together(world, [lambda: world.producer.send("new", b"v") for _ in range(3)])
    else:
        world.metadata.request_update(False)
        world.let_pass(WINDOW_MS)
    world.judge(3)


@every_dialect
def test_connections_that_are_lost_otherwise(dialect: Dialect) -> None:
    """Leaders that hang up on each batch: each loss asks for metadata, which brings nothing new."""
    options: dict[str, Any] = {"reconnect_backoff_ms": 1, "reconnect_backoff_max_ms": 1, "delivery_timeout_ms": 60_000}
    world = Counted(dialect, nodes=6, topics={"test": 6}, retry_backoff_max_ms=100, **options)
    world.know()
    for node_id in range(1, 6):
        world.cluster.brokers[node_id].script[PRODUCE] = lambda request: request.link.reset()
    for partition in range(1, 6):
        world.send(partition=partition)
        world.let_pass(15)
    world.let_pass(WINDOW_MS)
    world.judge(4)


def test_a_broker_that_always_asks_to_start_over() -> None:
    """REBOOTSTRAP_REQUIRED: a failed update, however often it comes (KIP-1102)."""
    world = Counted(Dialect(NEWEST, True), reconnect_backoff_ms=1, reconnect_backoff_max_ms=1)
    world.know()
    world.cluster.error = REBOOTSTRAP_REQUIRED
    world.metadata.request_update(False)
    world.let_pass(WINDOW_MS)
    world.judge(4)
    world.cluster.error = 0
    world.let_pass(1000)
    assert not world.metadata.is_bootstrap


@every_dialect
def test_starting_over_and_over(dialect: Dialect) -> None:
    """No known broker can be reached, only the bootstrap server, and it names the same again."""
    world = Counted(dialect, reconnect_backoff_ms=500, reconnect_backoff_max_ms=500)
    world.know()
    gone = world.cluster.add(7)
    world.cluster.down(7)
    (known,) = [broker for broker in world.cluster.brokers.values() if broker is not gone]

    def name_another(request: Received) -> bool:
        world.cluster.brokers = {7: gone}
        request.answer(world.cluster.metadata(request), 1)
        world.cluster.brokers = {0: known}
        return True

    world.refuse = name_another
    for _ in range(40):
        world.metadata.request_update(False)
        world.let_pass(WINDOW_MS / 40)
    world.judge(2)


@every_dialect
def test_a_new_topic_is_asked_for_at_once(dialect: Dialect) -> None:
    """While another is missing, right behind another answer, and while a request is under way."""
    world = Counted(dialect)
    world.know()
    world.metadata.add_topic("missing", world.now)
    world.let_pass(1000)
    for name in ("one", "two", "three"):
        world.cluster.create(name, 1)
        world.adapt(name)
    world.metadata.add_topic("one", world.now)
    world.let_pass(0.5)
    world.metadata.add_topic("two", world.now)  # meanwhile the answer about the first is on its way
    world.let_pass(5)
    world.metadata.add_topic("three", world.now)
    world.let_pass(2.5)
    assert {"one", "two", "three"} <= world.metadata.cluster().topics
    world.judge(4)


@chosen_dialects
def test_a_topic_that_is_just_being_created(dialect: Dialect) -> None:
    """Auto creation: what the first answer says is not there yet is asked for after one back-off, not later."""
    world = Counted(dialect)
    world.know()
    created = world.now + 50
    world.cluster.topics["new"] = Topic(error=LEADER_NOT_AVAILABLE)

    def create() -> None:
        world.cluster.create("new", 1)
        world.adapt("new")

    world.selector.call_at(created, create)
    begun = world.now
    (future,) = together(world, [lambda: world.producer.send("new", b"v")])
    world.let_pass(10)
    assert future.result(0).offset == 0
    world.judge(2)
    assert [len(world.asked), world.asked[-1].at - begun < BACKOFF_MS + 10] == [2, True]
