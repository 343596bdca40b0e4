"""The error codes that brokers send to a transaction's requests, in front of a real broker.

The proxy refuses one request of an API with each code in turn; the transaction must end as tests/error_matrix.py
says, and readers must see what was committed and nothing else.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from forebay import KafkaProducer, errors
from forebay.errors import CommitFailedError, KafkaError, ProducerFencedError
from forebay.model import TopicPartition
from tests.error_matrix import LEGEND, MATRIX, NAMES, RETURNED
from tests.integration.transactions import attempt, committed_values, transactional
from tests.support.fixtures import ProxyFactory, TopicFactory
from tests.support.proxy import KafkaProxy, refused, told
from tests.support.refusal import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT,
)
from tests.support.rewrite import FIND_COORDINATOR, PRODUCE, without_features
from tools.kafka import RealKafka

APIS = {
    "find": FIND_COORDINATOR,
    "initT": INIT_PRODUCER_ID,
    "addP": ADD_PARTITIONS_TO_TXN,
    "addO": ADD_OFFSETS_TO_TXN,
    "txn": PRODUCE,
    "commit": TXN_OFFSET_COMMIT,
    "end": END_TXN,
}
EARLY = ("find", "initT")
UNKNOWN_PRODUCER_ID = 59
REPEATED = ("retry", "fresh", "look", "soon")


@pytest.fixture(autouse=True)
def without_logs(caplog: pytest.LogCaptureFixture) -> None:
    """A hundred producers' lines would hide the one difference that a failed test tells of."""
    caplog.set_level(logging.CRITICAL, "forebay")


def initialised(ours: KafkaProducer) -> KafkaError | None:
    try:
        ours.init_transactions()
    except KafkaError as error:
        return error
    return None


def recovered(ours: KafkaProducer, where: TopicPartition) -> KafkaError | None:
    """What stands in the way of another transaction, after an abort."""
    try:
        ours.abort_transaction()
    except KafkaError as error:
        return error
    return attempt(ours, where, b"next", group=where.topic)


def word_for(code: int, error: KafkaError | None, next_error: KafkaError | None) -> str:
    """What happened, as a word of the legend as far as calls can tell."""
    if error is None:
        return "goes on"
    wanted = errors.for_code(code)
    assert wanted is not None
    if next_error is None:
        if error.fatal or not error.txn_requires_abort:
            return f"abort after {error!r} with the wrong flags"
        if isinstance(error, CommitFailedError):
            return "gone"
        return "abort" if isinstance(error, wanted) else f"abort with {error!r}"
    if not (error.fatal and next_error.fatal):
        return f"{error!r}, then {next_error!r}, and not both are fatal"
    if type(error) is type(next_error) is ProducerFencedError:
        return "fence"
    both = isinstance(error, wanted) and isinstance(next_error, wanted)
    return "fatal" if both else f"{error!r}, then {next_error!r} of {next_error.__cause__!r}"


def outcome(proxy: KafkaProxy, column: str, fault: Any, code: int, where: TopicPartition) -> str:
    """How a transaction ends whose API meets the code once."""
    with transactional(proxy, f"{where.topic}-{where.partition}") as ours:
        if column in EARLY:
            proxy.plan(APIS[column], fault)
        error = initialised(ours)
        if error is not None and MATRIX[column][code] == "init":
            return "init" if type(error) is errors.for_code(code) and initialised(ours) is None else repr(error)
        if column not in EARLY:
            proxy.plan(APIS[column], fault)
        if error is None:
            error = attempt(ours, where, b"met it", group=where.topic)
        return word_for(code, error, None if error is None else recovered(ours, where))


def expected(column: str, code: int) -> str:
    word = MATRIX[column][code]
    # The proxy's refusals do not tell where the log begins, and then UNKNOWN_PRODUCER_ID says only to ask again.
    if word in REPEATED or word == "done" or (column, code) == ("txn", UNKNOWN_PRODUCER_ID):
        return "goes on"
    # A record alone in its batch cannot be split.
    return {"bump": "abort", "split": "abort"}.get(word, word)


def compare(
    kafka: RealKafka, proxy: KafkaProxy, topic: TopicFactory, column: str, codes: list[int], *, arrives: bool
) -> None:
    """Each code in a partition of its own, because a transaction that is left open stops its partition's readers."""
    name = topic(kafka, len(codes))
    found, wrong = {}, []
    for partition, code in enumerate(codes):
        fault = told(code) if arrives else refused(code)
        found[partition] = outcome(proxy, column, fault, code, TopicPartition(name, partition))
        assert proxy.planned() == 0, NAMES[code]
        if found[partition] != expected(column, code):
            meaning = MATRIX[column][code]
            wrong.append(
                f"{column} {code} {NAMES[code]}: expected {meaning} ({LEGEND[meaning]}), got {found[partition]}"
            )
    assert wrong == []
    seen = {"goes on": [b"met it"], "abort": [b"next"], "gone": [b"next"]}
    values = committed_values(kafka, name)
    assert values == {partition: seen[word] for partition, word in found.items() if word in seen}


@pytest.mark.parametrize("column", ["find", "initT", "txn", "commit", "end"])
def test_the_second_generation(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, column: str) -> None:
    compare(kafka, proxied(kafka), topic, column, list(RETURNED[column]), arrives=False)


@pytest.mark.parametrize("column", ["addP", "addO"])
def test_the_first_generation(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, column: str) -> None:
    compare(kafka, proxied(kafka, hooks=[without_features]), topic, column, list(RETURNED[column]), arrives=False)


@pytest.mark.parametrize(
    ("generation", "column"), [(2, "initT"), (2, "txn"), (2, "commit"), (2, "end"), (1, "commit"), (1, "end")]
)
def test_what_was_done_is_not_done_twice(
    kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory, generation: int, column: str
) -> None:
    """The broker did the work, and the answer says to try again."""
    proxy = proxied(kafka, hooks=[without_features] if generation == 1 else [])
    codes = [code for code in RETURNED[column] if MATRIX[column][code] in REPEATED]
    compare(kafka, proxy, topic, column, codes, arrives=True)


def test_what_was_written_and_refused_is_aborted(kafka: RealKafka, topic: TopicFactory, proxied: ProxyFactory) -> None:
    """The broker wrote the records, and the answer says that it did not: nobody sees them."""
    codes = [code for code in RETURNED["txn"] if MATRIX["txn"][code] in ("bump", "fatal", "fence", "split")]
    compare(kafka, proxied(kafka), topic, "txn", codes, arrives=True)
