"""Every error code in every API of a transaction, against tests/error_matrix.py, for both generations (KIP-890).

Each case runs a transaction with one record and one offset, in which one request of the API is answered with the
code; what follows is named with a word of the matrix's legend, by what calls raise and by when requests come again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from forebay import errors
from forebay.errors import (
    ClusterAuthorizationError,
    CommitFailedError,
    GroupAuthorizationError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    TopicAuthorizationError,
)
from forebay.model import TopicPartition
from tests.error_matrix import CODES, MATRIX, differences
from tests.fakes.broker import INIT_PRODUCER_ID, METADATA, MODERN, PRODUCE, Received
from tests.fakes.produce import Answer
from tests.fakes.waiting import in_turns
from tests.fakes.world import World
from tests.support.examples import size, some_of_each
from tests.support.refusal import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    TXN_OFFSET_COMMIT,
    refusing,
)
from tests.support.rewrite import FIND_COORDINATOR

APIS = {
    "find": FIND_COORDINATOR,
    "findG": FIND_COORDINATOR,
    "initT": INIT_PRODUCER_ID,
    "addP": ADD_PARTITIONS_TO_TXN,
    "addO": ADD_OFFSETS_TO_TXN,
    "txn": PRODUCE,
    "commit": TXN_OFFSET_COMMIT,
    "end": END_TXN,
}
EARLY = ("find", "initT")
RANGES = {**MODERN, 10: (0, 6), 22: (0, 5), 24: (0, 5), 25: (0, 4), 26: (0, 5), 28: (0, 5)}
COORDINATOR_LOAD_IN_PROGRESS = 14
WAIT_S = 30
BACKOFF_MS, SOON_MS, STEP_MS = 50, 20, 10
PARTITION = TopicPartition("test", 0)


@pytest.fixture(autouse=True)
def without_logs(caplog: pytest.LogCaptureFixture) -> None:
    """A hundred producers' lines would hide the one difference that a failed test tells of."""
    caplog.set_level(logging.CRITICAL, "forebay")


class Coordinated(World):
    """A producer with a transactional.id, and a broker that agrees to everything but one request of ``api``."""

    def __init__(self, generation: int, api: int, code: int) -> None:
        super().__init__(idempotent=True, known=False, transactional_id="t", max_block_ms=5000)
        broker = self.cluster.brokers[0]
        broker.ranges = dict(RANGES)
        if generation == 2:
            broker.finalized = (1, {"transaction.version": 2})
        self.api = api
        self.code = code
        self.armed = False
        self.lasting = False
        """Once armed, it stays so."""
        self.epoch = -1
        self.asked: list[tuple[int, float]] = []
        """Each request of a transaction, Produce included, and when it came."""
        for key in APIS.values():
            if key != PRODUCE:
                broker.script[key] = self.answer
        broker.script[PRODUCE] = self.answer_produce
        broker.script[METADATA] = self.answer_metadata
        self.learn("test")

    def answer_metadata(self, request: Received) -> None:
        self.asked.append((METADATA, self.now))
        request.answer(self.cluster.metadata(request))

    def answer_produce(self, request: Received) -> None:
        self.asked.append((PRODUCE, self.now))
        if self.armed and self.api == PRODUCE:
            self.armed = False
            # With the log's start: without it UNKNOWN_PRODUCER_ID only says to ask again.
            self.cluster.fail("test", 0, Answer(self.code, log_start_offset=0))
        self.cluster.produce(request)

    def answer(self, request: Received) -> None:
        key = request.api_key
        self.asked.append((key, self.now))
        refused = self.armed and key == self.api
        self.armed = self.armed and (self.lasting or not refused)
        fields: dict[str, Any] = {}
        if not refused and key == FIND_COORDINATOR:
            node = request.broker.node
            fields = {"node_id": node.id, "host": node.host, "port": node.port}
        if not refused and key in (INIT_PRODUCER_ID, END_TXN):
            self.epoch += key == INIT_PRODUCER_ID or request.version >= 5
            fields = {"producer_id": 4711, "producer_epoch": self.epoch}
        answer = refusing(key, request.version, request.body, self.code if refused else 0)
        request.answer(with_fields(answer, fields))

    def call(self, call: Callable[[], Any]) -> KafkaError | None:
        """What ``call`` raises, on another thread, while the sender takes its turns and time passes."""

        def pass_time() -> None:
            self.settle(4)
            self.advance(STEP_MS)

        (outcome,) = in_turns(self, [call], pass_time, 1000)
        if outcome is None or isinstance(outcome, KafkaError):
            return outcome
        raise outcome

    def transact(self, *, armed: bool = False) -> KafkaError | None:
        """A transaction with two batches and an offset; what the first call raises that does.

        Args:
            armed: the code is met; by the second batch, if it is Produce's.
        """
        producer = self.producer
        self.armed = armed and self.api != PRODUCE
        if armed:
            self.asked.clear()
        steps = (
            producer.begin_transaction,
            lambda: self.send_and_wait(1),
            lambda: self.arm(armed),
            lambda: self.send_and_wait(2),
            lambda: producer.send_offsets_to_transaction({PARTITION: 5}, "g"),
            producer.commit_transaction,
        )
        error = None
        for place, step in enumerate(steps):
            error = error or (self.call(step) if place in (0, 4, 5) else _raised_by(step))
        return error

    def arm(self, armed: bool) -> None:
        if armed and self.api == PRODUCE:
            self.armed = True
            self.asked.clear()

    def send_and_wait(self, count: int) -> None:
        """A batch of so many records; refused or failed, the next call says so."""
        futures = [self.send() for _ in range(count)]
        self.run(2 * BACKOFF_MS, STEP_MS)
        assert all(future.done() for future in futures)


def _raised_by(step: Callable[[], None]) -> KafkaError | None:
    try:
        step()
    except KafkaError as error:
        return error
    return None


def with_fields(message: Any, fields: dict[str, Any]) -> Any:
    """A copy of kio's message with these fields, or those of its only entry."""
    from dataclasses import replace

    if getattr(message, "coordinators", None):
        return replace(message, coordinators=tuple(replace(entry, **fields) for entry in message.coordinators))
    return replace(message, **{name: value for name, value in fields.items() if hasattr(message, name)})


IN_OTHER_WORDS = (
    ClusterAuthorizationError,
    CommitFailedError,
    GroupAuthorizationError,
    ProducerFencedError,
    TopicAuthorizationError,
)
FATAL, ABORT, NEITHER = (True, False, False), (False, True, False), (False, False, False)


def flags_of(error: KafkaError) -> tuple[bool, bool, bool]:
    return error.fatal, error.txn_requires_abort, error.retriable


def is_caught(error: KafkaError | None, kind: type[KafkaError], flags: tuple[bool, bool, bool]) -> bool:
    """Whether ``except kind`` catches it, with these flags, and its message has the words of the code's meaning."""
    if not isinstance(error, kind) or flags_of(error) != flags:
        return False
    return kind in IN_OTHER_WORDS or kind.default_message() in str(error)


def described(*raised: KafkaError | None) -> str:
    return "; ".join(f"{error!r} {None if error is None else flags_of(error)}" for error in raised)


def went_on(world: Coordinated) -> str:
    """The word for a transaction that was committed all the same."""
    places = [place for place, (key, _) in enumerate(world.asked) if key == world.api]
    if len(places) == 1:
        return "done"
    first, second = places[:2]
    between = [key for key, _ in world.asked[first + 1 : second]]
    waited = round(world.asked[second][1] - world.asked[first][1])
    if waited == 0 and len(places) == 3:
        return "split"
    if waited == BACKOFF_MS and world.api == PRODUCE:
        return "fresh" if METADATA in between else "retry"
    if waited == BACKOFF_MS and FIND_COORDINATOR in between:
        return "look"
    return {BACKOFF_MS: "retry", SOON_MS: "soon"}.get(waited, f"again after {waited} ms, {between} between")


def after_an_error(world: Coordinated, error: KafkaError, epoch: int) -> str:
    """The word for what the calls after the one that raised ``error`` say, each of which has to be of its class."""
    producer = world.producer
    kind = errors.for_code(world.code)
    assert kind is not None
    repeated = world.call(producer.commit_transaction)
    aborted = world.call(producer.abort_transaction)
    stopped = aborted or world.transact()
    if stopped is not None:
        said = (error, repeated, stopped)
        if type(error) is ProducerFencedError and all(is_caught(each, ProducerFencedError, FATAL) for each in said):
            return "fence"
        return "fatal" if all(is_caught(each, kind, FATAL) for each in said) else described(*said)
    if all(is_caught(each, CommitFailedError, ABORT) for each in (error, repeated)):
        return "gone"
    if not all(is_caught(each, kind, ABORT) for each in (error, repeated)):
        return f"abort with {described(error, repeated)}"
    # Before there was an epoch there is none to be newer than.
    return "bump" if world.epoch > epoch >= 0 else "abort"


def outcome(column: str, generation: int, code: int) -> str:
    """What happens to a transaction that meets the code once."""
    world = Coordinated(generation, APIS[column], code)
    producer = world.producer
    world.armed = column in EARLY
    error = world.call(producer.init_transactions)
    if error is not None and type(error) is errors.for_code(code) and world.call(producer.init_transactions) is None:
        return "init" if flags_of(error) == NEITHER else described(error)
    epoch = world.epoch
    error = error or world.transact(armed=column not in EARLY)
    assert not world.armed, "the request was never made"
    return went_on(world) if error is None else after_an_error(world, error, epoch)


def expected(column: str, generation: int) -> dict[int, str]:
    """The matrix, but that in the second generation every transaction ends in a newer epoch."""
    newer = generation == 2 and column not in EARLY
    return {code: "bump" if newer and word == "abort" else word for code, word in MATRIX[column].items()}


def tried(column: str) -> Iterable[int]:
    """The codes of this run: all of them, or some of each word."""
    return CODES if size() != "small" else some_of_each(CODES, MATRIX[column].__getitem__)


@pytest.mark.sized
@pytest.mark.parametrize(
    ("generation", "column"), [*((1, column) for column in APIS), *((2, c) for c in APIS if not c.startswith("add"))]
)
def test_every_code(generation: int, column: str) -> None:
    found = {code: outcome(column, generation, code) for code in tried(column)}
    assert differences(column, found, expected(column, generation)) == []


@pytest.mark.parametrize(
    ("generation", "column"),
    [(1, column) for column in APIS if column != "txn"]
    + [(2, column) for column in ("find", "initT", "commit", "end")],
)
def test_what_passes_does_not_pass_for_ever(generation: int, column: str) -> None:
    """The call ends by its own timeout; none but its repetition is allowed then, and that ends well."""
    world = Coordinated(generation, APIS[column], COORDINATOR_LOAD_IN_PROGRESS)
    producer = world.producer
    offsets = {PARTITION: 5}

    # The wait is the application's own, so it takes real time, unlike everything that the sender does meanwhile.
    def call(timeout: float = WAIT_S) -> KafkaError | None:
        if column in EARLY:
            return world.call(lambda: producer.init_transactions(timeout))
        if column in ("addP", "end"):
            return world.call(lambda: producer.commit_transaction(timeout))
        return world.call(lambda: producer.send_offsets_to_transaction(offsets, "g", timeout))

    if column not in EARLY:
        assert world.call(producer.init_transactions) is None
        producer.begin_transaction()
        world.asked.clear()
    world.lasting = world.armed = True
    if column not in EARLY:
        world.send()
    assert type(call(0.2)) is KafkaTimeoutError
    other = producer.abort_transaction if column in ("addP", "end") else producer.commit_transaction
    refusal = world.call(other)
    assert isinstance(refusal, IllegalStateError)
    assert "timed out and must be retried" in str(refusal)
    world.armed = False
    assert call() is None
    assert len([key for key, _ in world.asked if key == world.api]) >= 2
