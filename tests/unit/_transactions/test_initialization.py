"""The pair of build and parse for InitProducerId."""

from __future__ import annotations

import pytest

from forebay._protocol.init_producer_id import encode_init_producer_id
from forebay._protocol.versions import ApiKey
from forebay._transactions.initialization import InitProducerIdCall


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
