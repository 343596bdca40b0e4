"""InitProducerId: the pair of build and parse, when it is asked, and errors in its answer."""

from __future__ import annotations

from math import inf

import pytest

from forebay._protocol.init_producer_id import InitProducerIdResponse, encode_init_producer_id
from forebay._protocol.versions import ApiKey
from forebay._runtime.backoff import ExponentialBackoff
from forebay._transactions.initialization import InitAttempts, InitProducerIdCall, init_error
from forebay.errors import (
    ClusterAuthorizationError,
    KafkaError,
    ProducerFencedError,
    ProtocolError,
    UnsupportedVersionError,
)


@pytest.mark.parametrize("version", range(7))
def test_without_transactions(version: int) -> None:
    """F testInitProducerIdRequest: no transactional id, the longest timeout."""
    call = InitProducerIdCall()
    assert (call.api_key, call.min_version) == (ApiKey.INIT_PRODUCER_ID, 0) and call.max_version >= 6
    assert call.build(version) == encode_init_producer_id(version, None, 2**31 - 1)


def test_the_next_epoch_needs_version_3() -> None:
    call = InitProducerIdCall("id", 1121, producer_id=7, producer_epoch=3)
    assert call.min_version == 3
    assert call.build(4) == encode_init_producer_id(4, "id", 1121, producer_id=7, producer_epoch=3)


def test_parse() -> None:
    payload = bytes.fromhex("00000005 0000 0000000000053d8a 0002")
    answer = InitProducerIdCall().parse(1, payload)
    assert (answer.throttle_time_ms, answer.error_code, answer.producer_id, answer.producer_epoch) == (5, 0, 343434, 2)


def test_one_request_at_a_time_and_the_next_after_its_backoff() -> None:
    attempts = InitAttempts(ExponentialBackoff(50, 50, lambda: 0.5))
    assert attempts.delay(0, True) == 0
    attempts.begin()
    assert attempts.delay(1000, True) == inf
    attempts.end()
    attempts.put_off(1000)
    assert (attempts.delay(1000, True), attempts.delay(1020, True), attempts.delay(1060, True)) == (50, 30, 0)
    attempts.hurry()
    assert attempts.delay(1000, True) == 0


def test_after_a_refusal_only_waiting_records_make_a_request() -> None:
    attempts = InitAttempts(ExponentialBackoff(50, 50, lambda: 0.5))
    attempts.refuse(0)
    assert (attempts.delay(10, False), attempts.delay(10, True)) == (inf, 40)
    attempts.succeed()
    assert attempts.delay(100, False) == 0


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (InitProducerIdResponse(0, 0, 7, 3), None),
        (InitProducerIdResponse(0, 0, -1, 3), ProtocolError),
        (InitProducerIdResponse(0, 47, -1, -1), ProducerFencedError),
        (InitProducerIdResponse(0, 31, -1, -1), ClusterAuthorizationError),
        (UnsupportedVersionError("v9"), UnsupportedVersionError),
    ],
)
def test_errors_in_answers(answer: InitProducerIdResponse | KafkaError, kind: type[KafkaError] | None) -> None:
    error = init_error(answer, "broker 0")
    assert (None if error is None else type(error)) is kind
    assert error is None or "broker 0" in str(error)
