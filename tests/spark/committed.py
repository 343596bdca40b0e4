"""What a ``read_committed`` consumer that is not ours sees of a topic, every row by key and a hash of its value."""

from __future__ import annotations

import hashlib
import time
from collections import Counter

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.support.pace import HANG_S


def digest(value: bytes) -> str:
    return hashlib.blake2b(value, digest_size=8).hexdigest()


def committed_rows(servers: str, topic: str) -> Counter[tuple[bytes, str]]:
    """How often each (key, hash of the value) is there; waits for transactions that are open to end."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    found: Counter[tuple[bytes, str]] = Counter()
    try:
        partitions = consumer.list_topics(topic, timeout=HANG_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        left = set(partitions)
        limit = time.monotonic() + HANG_S
        while left:
            assert time.monotonic() < limit, f"no end of {topic} after {HANG_S:g} s, partitions {sorted(left)}"
            for message in consumer.consume(1000, 0.5):
                error = message.error()
                if error is None:
                    found[message.key() or b"", digest(message.value() or b"")] += 1
                    continue
                assert error.code() == KafkaError._PARTITION_EOF, error
                left.discard(message.partition())
    finally:
        consumer.close()
    return found


def assert_exactly(servers: str, topic: str, expected: Counter[tuple[bytes, str]]) -> None:
    """Every row is there once, and nothing else."""
    found = committed_rows(servers, topic)
    missing, more = expected - found, found - expected
    assert not missing and not more, (
        f"{sum(missing.values())} rows are missing and {sum(more.values())} are too many of "
        f"{sum(expected.values())}: {list(missing)[:3]}, {list(more)[:3]}"
    )
