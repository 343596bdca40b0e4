"""Every error code in every API of a producer without transactions, against tests/error_matrix.py.

Each case lets the broker answer once with the code, watches what the producer does, to the millisecond, and names it
with a word of the matrix's legend; whatever does not fit a word is told in words of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from forebay._network.connection_states import REFUSED_BACKOFF_MS
from forebay.errors import AuthenticationError, KafkaError, KafkaTimeoutError, ProducerFencedError, for_code
from tests.error_matrix import CODES, LEGEND, MATRIX, NAMES, differences
from tests.fakes.broker import API_VERSIONS, INIT_PRODUCER_ID, METADATA, Received, Topic
from tests.fakes.produce import Answer
from tests.fakes.waiting import meanwhile
from tests.fakes.world import World

BACKOFF_MS = 50
UNKNOWN_PRODUCER_ID = 59


@pytest.fixture(autouse=True)
def without_logs(caplog: pytest.LogCaptureFixture) -> None:
    """A hundred producers' lines would hide the one difference that a failed test tells of."""
    caplog.set_level(logging.CRITICAL, "forebay")


def kind_of(code: int) -> type[KafkaError]:
    kind = for_code(code)
    assert kind is not None
    return kind


def after_the_error(world: World, error: KafkaError, code: int) -> str:
    """The word for an error that has arrived: by its kind, and by what becomes of the next record."""
    later = world.send(b"later")
    world.run(3 * BACKOFF_MS)
    second = later.exception(0) if later.done() else None
    if later.done() and type(second) is not type(error) and second is not None:
        return f"{type(error).__name__}, then {type(second).__name__}"
    if type(error) is not kind_of(code):
        fenced = type(error) is ProducerFencedError and second is not None
        return "fence" if fenced else f"fails with {type(error).__name__}"
    if not later.done():
        return "leaves the next record without an outcome"
    if second is None:
        return "fail"
    return "fence" if type(error) is ProducerFencedError else "fatal"


# -- Produce --------------------------------------------------------------------------------------------------


def produced(code: int, **options: Any) -> str:
    """What becomes of a batch of two records that is answered with the code once."""
    world = World(**options)
    world.send(b"before")
    world.settle()
    broker, log = world.cluster.brokers[0], world.cluster.logs["test", 0]
    world.cluster.fail("test", 0, Answer(code, log_start_offset=0 if code == UNKNOWN_PRODUCER_ID else -1))
    futures = [world.send(b"a"), world.send(b"b")]
    sent, asked, epoch = len(world.cluster.requests()), len(broker.of(METADATA)), log.batches[-1].producer_epoch
    world.settle()
    if any(future.done() and future.exception(0) is not None for future in futures):
        if not all(future.done() and type(future.exception(0)) is kind_of(code) for future in futures):
            return "does not fail both"
        error = futures[0].exception(0)
        assert error is not None
        outcome = after_the_error(world, error, code)
        idempotent = bool(options["idempotent"])
        if outcome == "fail" and log.batches[-1].producer_epoch != epoch + idempotent:
            return "fails and leaves a gap in the sequences"
        return outcome
    if all(future.done() for future in futures):
        return _success_at_once(world, sent)
    return _success_after_backoff(world, sent, asked, epoch, futures)


def _success_at_once(world: World, sent: int) -> str:
    requests = len(world.cluster.requests()) - sent
    values = world.values()
    if requests == 1:
        return "done" if values == [b"before"] else "done, and written"
    sizes = [batch.count for batch in world.cluster.logs["test", 0].batches]
    return "split" if (values, sizes) == ([b"before", b"a", b"b"], [1, 1, 1]) else f"{sizes} at once"


def _success_after_backoff(world: World, sent: int, asked: int, epoch: int, futures: list[Any]) -> str:
    log = world.cluster.logs["test", 0]
    world.advance(BACKOFF_MS - 1)
    world.settle()
    if len(world.cluster.requests()) - sent != 1:
        return "sent again too early"
    world.advance(1)
    world.settle()
    if [future.done() and future.exception(0) for future in futures] != [None, None]:
        return "not sent again after retry.backoff.ms"
    if world.values() != [b"before", b"a", b"b"] or len(world.cluster.requests()) - sent != 2:
        return f"{world.values()} after {len(world.cluster.requests()) - sent} requests"
    if log.batches[-1].producer_epoch != epoch:
        anew = (log.batches[-1].producer_epoch, log.batches[-1].base_sequence) == (epoch + 1, 0)
        return "mend" if anew else f"sequence {log.batches[-1].base_sequence}"
    return "fresh" if len(world.cluster.brokers[0].of(METADATA)) > asked else "retry"


@pytest.mark.parametrize(
    ("column", "options"),
    [
        ("idem", {"idempotent": True}),
        ("plain", {"idempotent": False}),
        ("plain", {"idempotent": False, "acks": 1}),
    ],
    ids=["idempotent", "acks all", "acks 1"],
)
def test_produce(column: str, options: dict[str, Any]) -> None:
    found = {code: produced(code, **options) for code in CODES}
    assert differences(column, found) == []


def test_produce_with_acks_0_hears_of_nothing() -> None:
    assert {produced(code, idempotent=False, acks=0) for code in CODES} == {"done"}


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_a_single_record_that_is_too_large_fails(idempotent: bool) -> None:
    world = World(idempotent=idempotent)
    world.cluster.fail("test", 0, 10)
    future = world.send()
    world.settle()
    assert type(future.exception(0)) is kind_of(10)
    assert len(world.cluster.requests()) == 1


def test_unknown_producer_id_without_the_logs_start_is_only_tried_again() -> None:
    """The partition may have moved to a broker that has not read it yet; its epoch stays."""
    world = World(idempotent=True)
    world.send(b"before")
    world.settle()
    world.cluster.fail("test", 0, Answer(UNKNOWN_PRODUCER_ID))
    future = world.send()
    world.run(2 * BACKOFF_MS)
    assert future.result(0).offset == 1
    assert [batch.producer_epoch for batch in world.cluster.logs["test", 0].batches] == [0, 0]


@pytest.mark.parametrize("column", ["idem", "plain"])
def test_produce_retries_end_with_the_last_error(column: str) -> None:
    """Where the matrix says to send again: not more often than ``retries``, then the code's own error."""
    codes = [code for code, outcome in MATRIX[column].items() if outcome in ("retry", "fresh")]
    found = {}
    for code in codes:
        world = World(idempotent=column == "idem", retries=2)
        world.cluster.fail("test", 0, code, code, code, 0)
        future = world.send()
        world.run(4 * BACKOFF_MS)
        error = future.exception(0) if future.done() else None
        found[code] = (type(error), len(world.cluster.requests()))
    assert found == {code: (kind_of(code), 3) for code in codes}


# -- InitProducerId -------------------------------------------------------------------------------------------


def initialised(code: int) -> str:
    """What becomes of records that wait for a producer id, when the first request for it is answered so."""
    world = World(idempotent=True, known=False)
    broker = world.cluster.brokers[0]
    broker.held.add(INIT_PRODUCER_ID)
    world.learn("test")
    futures = [world.send(partition=partition) for partition in (0, 1)]
    world.settle()
    (request,) = broker.waiting
    broker.held.clear()
    world.cluster.init_producer_id(request, code)
    world.settle()
    if all(future.done() for future in futures):
        first, second = (future.exception(0) for future in futures)
        if first is None or type(first) is not type(second):
            return f"{first!r}, {second!r}"
        return after_the_error(world, first, code)
    world.advance(BACKOFF_MS - 1)
    world.settle()
    if len(broker.of(INIT_PRODUCER_ID)) != 1:
        return "asked again too early"
    world.advance(1)
    world.settle()
    if [future.done() and future.exception(0) for future in futures] != [None, None]:
        return "not asked again after retry.backoff.ms"
    return "retry"


def test_init_producer_id() -> None:
    assert differences("init", {code: initialised(code) for code in CODES}) == []


# -- Metadata -------------------------------------------------------------------------------------------------


def metadata_answered(code: int) -> str:
    """What follows a metadata answer with this top-level error (v13), while a record waits for its leader."""
    world = World()
    broker = world.cluster.brokers[0]
    asked, version, links = len(broker.of(METADATA)), world.metadata.version, list(world.selector.links)
    world.cluster.error = code
    world.advance(BACKOFF_MS)  # since the last answer
    world.metadata.request_update(True)
    world.settle()
    anew = not links[-1].open
    world.cluster.error = 0
    if not anew:
        if len(broker.of(METADATA)) != asked + 1 or world.metadata.version != version:
            return f"{len(broker.of(METADATA)) - asked} requests, version {version} to {world.metadata.version}"
        world.advance(BACKOFF_MS - 1)
        world.settle()
        if len(broker.of(METADATA)) != asked + 1:
            return "asked again too early"
        world.advance(1)
    world.run(3 * BACKOFF_MS)
    future = world.send()
    world.run(BACKOFF_MS)
    if world.metadata.version == version or not future.done() or future.exception(0) is not None:
        return "never comes back"
    return "boot" if anew else "again"


def test_metadata() -> None:
    assert differences("meta", {code: metadata_answered(code) for code in CODES}) == []


def test_without_rebootstrap_its_request_is_an_error_like_another() -> None:
    world = World(metadata_recovery_strategy="none")
    links = len(world.selector.links)
    world.cluster.error = 129
    world.metadata.request_update(True)
    world.settle()
    assert len(world.selector.links) == links
    world.cluster.error = 0
    world.run(3 * BACKOFF_MS)
    future = world.send()
    world.settle()
    assert future.result(0).offset == 0


def topic_answered(code: int) -> str:
    """What becomes of a record whose topic is answered with this error at first."""
    world = World()
    broker = world.cluster.brokers[0]
    world.cluster.topics["late"] = Topic(error=code)
    asked = len(broker.of(METADATA))

    def answer(request: Received) -> None:
        if len(broker.of(METADATA)) > asked + 1:
            world.cluster.create("late", 1)
        request.answer(world.cluster.metadata(request))

    broker.script[METADATA] = answer
    future = meanwhile(world, lambda: world.send(topic="late"), step=25)
    world.run(BACKOFF_MS)
    requests = len(broker.of(METADATA)) - asked
    error = future.exception(0)
    if error is None:
        return "again" if requests > 1 else "known at once"
    return "fail" if type(error) is kind_of(code) and requests == 1 else f"{error!r} after {requests} requests"


def test_errors_of_a_topic() -> None:
    assert differences("topic", {code: topic_answered(code) for code in CODES}) == []


def topic_never_answered(code: int) -> str:
    """How a record fails whose topic is answered with this error for ever."""
    world = World(max_block_ms=60)
    world.cluster.topics["late"] = Topic(error=code)
    error = meanwhile(world, lambda: world.send(topic="late"), step=30).exception(0)
    if type(error) is kind_of(code):
        return "fail"
    if type(error) is not KafkaTimeoutError or not error.message.startswith(
        "Topic late not present in metadata after 60 ms"
    ):
        return repr(error)
    return "again" if type(error.__cause__) is kind_of(code) else f"cause {error.__cause__!r}"


def test_a_topic_that_stays_away_fails_with_its_error_as_the_cause() -> None:
    found = {code: topic_never_answered(code) for code in CODES}
    # REQUEST_TIMED_OUT is both the kind of the failure and of its cause.
    found[7] = "again" if found[7] == "fail" else found[7]
    assert differences("topic", found) == []


def partition_answered(code: int) -> str:
    """Whether metadata is asked for again while a partition that has a leader is answered with this error."""
    world = World()
    broker = world.cluster.brokers[0]
    world.cluster.topics["test"].partitions[0].error = code
    asked = len(broker.of(METADATA))
    world.metadata.request_update(True)
    world.run(3 * BACKOFF_MS)
    future = world.send(partition=0)
    world.settle()
    if not future.done() or future.exception(0) is not None:
        return "keeps the partition from being written to"
    return "again" if len(broker.of(METADATA)) > asked + 1 else "done"


def test_errors_of_a_partition() -> None:
    assert differences("part", {code: partition_answered(code) for code in CODES}) == []


# -- ApiVersions ----------------------------------------------------------------------------------------------


def versions_answered(code: int) -> str:
    """What follows a first connection whose version check is answered with this error."""
    world = World(known=False)
    broker = world.cluster.brokers[0]

    def answer(request: Received) -> None:
        broker.answer_versions(request, error=code if len(broker.of(API_VERSIONS)) == 1 else 0)

    broker.script[API_VERSIONS] = answer
    world.metadata.add_topic("test", world.now)
    told = _told(world, lambda: world.settle(4))
    # 50 ms is the default of reconnect.backoff.ms.
    world.advance(49)
    world.settle()
    same = len(world.selector.links[0].channel.peer) > 0 and world.selector.links[0].open
    early = len(world.selector.links) > 1 and not same
    world.run(REFUSED_BACKOFF_MS if issubclass(kind_of(code), AuthenticationError) else 200)
    future = world.send()
    world.settle()
    if early or not future.done() or future.exception(0) is not None or _told(world, world.turn) is not None:
        return "never comes back" if not early else "connects again too early"
    if same:
        first, second = broker.of(API_VERSIONS)[:2]
        return "lower" if second.link is first.link and second.version < first.version else "goes on"
    if told is not None:
        return "auth" if isinstance(told, AuthenticationError) and type(told) is kind_of(code) else repr(told)
    return "anew"


def _told(world: World, action: Callable[[], None]) -> KafkaError | None:
    """What whoever waits for metadata is told after ``action``."""
    action()
    try:
        world.metadata.raise_if_failed()
    except KafkaError as error:
        return error
    return None


def test_api_versions() -> None:
    assert differences("api", {code: versions_answered(code) for code in CODES}) == []


# -- the matrix itself ----------------------------------------------------------------------------------------


def test_the_matrix_is_complete() -> None:
    words = {outcome for column in MATRIX.values() for outcome in column.values()}
    assert words <= set(LEGEND)
    assert all(tuple(column) == CODES for column in MATRIX.values())
    assert set(CODES) >= set(range(-1, 134)) - {0}
    unnamed = {code for code in CODES if kind_of(code).name != NAMES[code]}
    assert unnamed == {code for code in CODES if NAMES[code] == "(unknown)"}
