"""What is wrong with an argument of a Control is said before anything is asked, with its name and value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forebay.control import Control
from forebay.errors import KafkaError
from tests.unit.control.world import ControlWorld

WRONG: dict[str, tuple[Callable[[Control], Any], str]] = {
    "no id": (lambda control: control.init_producer_id(""), "transactional_id must be a non-empty str, got ''"),
    "a number for an id": (lambda control: control.describe_transaction(5), "transactional_id must be"),  # type: ignore[arg-type]
    "no time": (lambda control: control.init_producer_id("t", transaction_timeout_ms=0), "transaction_timeout_ms must"),
    "a flag for a number": (lambda control: control.create_topic("t", True), "partitions must"),
    "too many replicas": (lambda control: control.create_topic("t", 1, 1 << 15), "replication_factor must"),
    "a name that cannot be": (lambda control: control.create_topic("a b"), "a b"),
    "a number for a name": (lambda control: control.delete_topic(7), "topic must be a non-empty str, got 7"),  # type: ignore[arg-type]
    "one key for several": (lambda control: control.topic_configs("t", "cleanup.policy"), "keys must be several"),
    "a partition below 0": (lambda control: control.read_tail("t", -1), "partition must"),
    "no record": (lambda control: control.read_tail("t", max_records=0), "max_records must"),
    "another isolation": (lambda control: control.read_tail("t", isolation="none"), "isolation must be one of"),
    "an offset below 0": (lambda control: control.read_from("t", 0, -1), "offset must"),
    "a word for a flag": (lambda control: control.end_transaction("t", 1, 1, "yes", 2), "commit must be True or False"),  # type: ignore[arg-type]
    "another version": (lambda control: control.end_transaction("t", 1, 1, True, 9), "version must"),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_argument_that_is_wrong_is_named_and_nothing_is_asked(what: str) -> None:
    call, words = WRONG[what]
    world = ControlWorld()
    with pytest.raises(KafkaError) as caught:
        call(world.control)
    assert words in str(caught.value)
    assert not any(world.asked(api) for api in (19, 20, 22, 26, 32, 65))
