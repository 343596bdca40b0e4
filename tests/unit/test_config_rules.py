"""Options that depend on each other: what is refused, adjusted, and said."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from forebay.errors import ConfigError

from .configs import config, with_all

IDEMPOTENCE = [
    # given, idempotence after it (None: refused), what else
    ({}, True, {"acks": -1}),
    ({"acks": "0", "enable.idempotence": False}, False, {"acks": 0}),
    ({"transactional.id": "t"}, True, {"acks": -1, "retries": 2147483647}),
    ({"acks": "all", "enable.idempotence": False}, False, {"acks": -1}),
    ({"acks": "0"}, False, {"acks": 0}),
    ({"acks": "1"}, False, {"acks": 1}),
    ({"acks": "0", "enable.idempotence": False, "transactional.id": "t"}, None, {}),
    ({"acks": "1", "enable.idempotence": True}, None, {}),
    ({"acks": "0", "transactional.id": "t"}, None, {}),
    ({"retries": 0, "enable.idempotence": False}, False, {"retries": 0}),
    ({"retries": 0}, False, {"retries": 0}),
    ({"retries": 0, "enable.idempotence": False, "transactional.id": "t"}, None, {}),
    ({"retries": 0, "enable.idempotence": True}, None, {}),
    ({"retries": 0, "transactional.id": "t"}, None, {}),
    ({"max.in.flight.requests.per.connection": 6, "enable.idempotence": False}, False, {}),
    ({"max.in.flight.requests.per.connection": 6}, False, {"max.in.flight.requests.per.connection": 6}),
    ({"max.in.flight.requests.per.connection": 5, "enable.idempotence": False, "transactional.id": "t"}, None, {}),
    ({"max.in.flight.requests.per.connection": 6, "enable.idempotence": True}, None, {}),
    ({"max.in.flight.requests.per.connection": 6, "transactional.id": "t"}, None, {}),
]


@pytest.mark.parametrize(("values", "idempotent", "more"), IDEMPOTENCE)
def test_idempotence(values: dict[str, Any], idempotent: bool | None, more: dict[str, Any]) -> None:
    """H testOverwriteAcksAndRetriesForIdempotentProducers, testAcksAndIdempotenceForIdempotentProducers,
    testRetriesAndIdempotenceForIdempotentProducers, testInflightRequestsAndIdempotenceForIdempotentProducers.
    """
    if idempotent is None:
        with pytest.raises(ConfigError, match="idempotence"):
            with_all(values)
        return
    made = with_all(values)
    assert made["enable.idempotence"] is idempotent
    assert {name: made[name] for name in more} == more


def test_idempotence_switched_off_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="forebay"):
        config(acks=1)
    assert [record.getMessage() for record in caplog.records] == [
        "Idempotence is switched off, since acks is 1 and would have to be all"
    ]


@pytest.mark.parametrize(
    ("values", "delivery"),
    [
        ({"delivery.timeout.ms": 1000, "linger.ms": 1000, "request.timeout.ms": 1}, None),
        ({"delivery.timeout.ms": 1000, "linger.ms": 999, "request.timeout.ms": 1}, 1000),
        ({"linger.ms": 100000, "request.timeout.ms": 30000}, 130000),
        ({"request.timeout.ms": 2**31 - 1, "linger.ms": 2**40}, 2**31 - 1),
        ({"linger.ms": 2**40, "delivery.timeout.ms": 2**31 - 1}, 2**31 - 1),
    ],
)
def test_delivery_timeout(values: dict[str, Any], delivery: int | None) -> None:
    """H testDeliveryTimeoutAndLingerMsConfig, and the silent raise where it was not given."""
    if delivery is None:
        with pytest.raises(ConfigError, match=r"delivery\.timeout\.ms is 1000: must be at least .*1001"):
            config(values)
        return
    made = config(values)
    assert made["delivery.timeout.ms"] == delivery
    assert bool(made.notes) == ("delivery.timeout.ms" not in values)


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        ({}, 1000),
        ({"reconnect.backoff.ms": 200}, 200),
        ({"reconnect.backoff.ms": 5000}, 5000),
        ({"reconnect.backoff.ms": 200, "reconnect.backoff.max.ms": 900}, 900),
        ({"reconnect.backoff.max.ms": 900}, 900),
    ],
)
def test_reconnect_backoff_max_follows(values: dict[str, int], limit: int) -> None:
    assert config(values)["reconnect.backoff.max.ms"] == limit


def test_retry_backoff_above_its_maximum_is_said() -> None:
    made = config(retry_backoff_ms=5000)
    assert [note.text for note in made.notes if "retry.backoff.ms (5000) is above" in note.text]
    assert (made["retry.backoff.ms"], made["retry.backoff.max.ms"]) == (5000, 1000)


def test_sasl_needs_a_mechanism() -> None:
    with pytest.raises(ConfigError, match="for option sasl.mechanism: must be one of"):
        with_all({"security.protocol": "SASL_SSL", "sasl.mechanism": ""})


def test_custom_partitioner_makes_the_builtins_options_idle() -> None:
    made = config({"partitioner.class": "round_robin", "partitioner.ignore.keys": True})
    assert [note.text for note in made.notes] == [
        "partitioner.ignore.keys has no effect: it is for the built-in partitioner"
    ]


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        ({}, None),
        ({"buffer.memory.max.node.share": "0.5"}, None),
        ({"buffer.memory.max.node.share": 0.03}, "max.request.size"),
        ({"buffer.memory.max.node.share": 0.03, "max.request.size": 16384}, None),
        ({"buffer.memory.max.node.share": 0.03, "max.request.size": 100, "batch.size": 2_000_000}, "batch.size"),
        ({"buffer.memory.max.node.share": 0}, "batch.size"),
        # A record is never larger than buffer.memory, whatever max.request.size says.
        ({"buffer.memory.max.node.share": 0.99, "buffer.memory": 1000, "batch.size": 10}, "max.request.size"),
        ({"buffer.memory.max.node.share": 1, "buffer.memory": 1000}, None),
    ],
)
def test_a_share_must_hold_a_batch_and_a_record(values: dict[str, Any], refused: str | None) -> None:
    if refused is None:
        assert config(values)["buffer.memory.max.node.share"] <= 1
        return
    with pytest.raises(ConfigError) as caught:
        config(values)
    text = str(caught.value)
    assert "buffer.memory.max.node.share is" in text and f"at least {refused} (" in text
