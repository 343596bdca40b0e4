"""What the hook makes of a Produce answer, and of all others."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.produce.v12 import response
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from tests.support.damage import RETRIABLE, Damage
from tests.support.rewrite import METADATA, PRODUCE, Answer, decode, encode


def produced() -> Answer:
    partitions = tuple(
        response.PartitionProduceResponse(
            index=i32(index), error_code=ErrorCode.none, base_offset=i64(40 + index), record_errors=()
        )
        for index in range(2)
    )
    topic = response.TopicProduceResponse(name=TopicName("t"), partition_responses=partitions)
    return Answer(PRODUCE, 12, 7, encode(response.ProduceResponse(responses=(topic,))), ("127.0.0.1", 1))


def passed(damage: Damage) -> Any:
    payload = damage(produced())
    assert payload is not None
    return decode(produced()._replace(payload=payload))


def codes(value: Any) -> list[int]:
    return [int(one.error_code.value) for one in value.responses[0].partition_responses]


def test_without_orders_an_answer_stays_as_it_is() -> None:
    damage = Damage()
    assert damage(produced()) == produced().payload
    assert damage.damaged == 0


@pytest.mark.parametrize("code", RETRIABLE)
def test_every_partition_gets_the_error_and_loses_its_offset(code: int) -> None:
    damage = Damage()
    damage.code = code
    value = passed(damage)
    assert codes(value) == [code, code]
    assert [int(one.base_offset) for one in value.responses[0].partition_responses] == [-1, -1]
    damage.stop()
    assert damage(produced()) == produced().payload
    assert damage.damaged == 1


def test_only_each_third_answer_is_changed() -> None:
    damage = Damage()
    damage.code, damage.every = 6, 3
    assert [codes(passed(damage))[0] for _ in range(6)] == [0, 0, 6, 0, 0, 6]


def test_throttling_changes_nothing_else() -> None:
    damage = Damage()
    damage.throttle_ms = 250
    value = passed(damage)
    assert value.throttle_time.total_seconds() == 0.25
    assert codes(value) == [0, 0]


def test_other_answers_pass() -> None:
    damage = Damage()
    damage.code = 6
    other = produced()._replace(api_key=METADATA, payload=b"whatever")
    assert damage(other) == b"whatever"
