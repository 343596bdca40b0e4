"""The brokers that integration tests run against; see tests/support/fixtures.py."""

from __future__ import annotations

from tests.support.fixtures import any_broker, embedded, kafka, legacy_kafka, proxied, read_back, strict_kafka, topic
from tests.support.three import three, three_brokers, three_kafka

__all__ = [
    "any_broker",
    "embedded",
    "kafka",
    "legacy_kafka",
    "proxied",
    "read_back",
    "strict_kafka",
    "three",
    "three_brokers",
    "three_kafka",
    "topic",
]
