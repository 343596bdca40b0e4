"""Partitions by librdkafka's rules, beside the original's own functions."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.compat._librdkafka_partitioner import PARTITIONERS, hash_partition


@given(st.binary(max_size=64), st.integers(1, 5000))
def test_hashes_are_the_originals(key: bytes, count: int) -> None:
    for name in ("consistent", "murmur2", "fnv1a"):
        assert hash_partition(PARTITIONERS[name], key, count) == getattr(confluent_kafka, name)(key, count)


@pytest.mark.parametrize(
    ("name", "null", "empty"),
    [
        ("random", -1, -1),
        ("consistent", 0, 0),
        ("consistent_random", -1, -1),
        ("murmur2", "murmur2", "murmur2"),
        ("murmur2_random", -1, "murmur2"),
        ("fnv1a", "fnv1a", "fnv1a"),
        ("fnv1a_random", -1, "fnv1a"),
    ],
)
def test_keys_that_are_null_or_empty(name: str, null: Any, empty: Any) -> None:
    """A name stands for the hash of no bytes, -1 for a random partition."""
    for key, wanted in ((None, null), (b"", empty)):
        expected = getattr(confluent_kafka, wanted)(b"", 7) if isinstance(wanted, str) else wanted
        assert hash_partition(PARTITIONERS[name], key, 7) == expected
