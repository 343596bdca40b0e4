"""What is wrong with an argument of an AdminClient is said before anything is asked, with its name and value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forebay.admin import AdminClient
from forebay.errors import KafkaError
from forebay.model import TransactionIdentity
from tests.unit.admin.world import AdminWorld

WRONG: dict[str, tuple[Callable[[AdminClient], Any], str]] = {
    "no id": (lambda admin: admin.init_producer_id(""), "transactional_id must be a non-empty str, got ''"),
    "a number for an id": (lambda admin: admin.describe_transaction(5), "transactional_id must be"),  # type: ignore[arg-type]
    "no time": (lambda admin: admin.init_producer_id("t", transaction_timeout_ms=0), "transaction_timeout_ms must"),
    "a flag for a number": (lambda admin: admin.create_topic("t", partitions=True), "partitions must"),
    "too many replicas": (lambda admin: admin.create_topic("t", replication_factor=1 << 15), "replication_factor must"),
    "a name that cannot be": (lambda admin: admin.create_topic("a b"), "a b"),
    "a number for a name": (lambda admin: admin.delete_topic(7), "topic must be a non-empty str, got 7"),  # type: ignore[arg-type]
    "one key for several": (lambda admin: admin.topic_configs("t", "cleanup.policy"), "keys must be several"),
    "a partition below 0": (lambda admin: admin.read_tail("t", -1), "partition must"),
    "no record": (lambda admin: admin.read_tail("t", max_records=0), "max_records must"),
    "another isolation": (lambda admin: admin.read_tail("t", isolation="none"), "isolation must be one of"),
    "an offset below 0": (lambda admin: admin.read_from("t", 0, offset=-1), "offset must"),
    "a word for a flag": (
        lambda admin: admin.end_transaction(TransactionIdentity("t", 1, 1, 2), commit="yes"),  # type: ignore[arg-type]
        "commit must be True or False",
    ),
    "another version": (
        lambda admin: admin.end_transaction(TransactionIdentity("t", 1, 1, 9), commit=True),
        "version must",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_argument_that_is_wrong_is_named_and_nothing_is_asked(what: str) -> None:
    call, words = WRONG[what]
    world = AdminWorld()
    with pytest.raises(KafkaError) as caught:
        call(world.admin)
    assert words in str(caught.value)
    assert not any(world.asked(api) for api in (19, 20, 22, 26, 32, 65))
