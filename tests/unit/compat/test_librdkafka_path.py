"""Partitions by librdkafka's rules, beside the original's own functions; what a message is made of."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.compat._librdkafka_path import PARTITIONERS, Message, hash_partition, plain_bytes, plain_headers


@given(st.binary(max_size=64), st.integers(1, 5000))
def test_hashes_are_the_originals(key: bytes, count: int) -> None:
    for name in ("consistent", "murmur2", "fnv1a"):
        assert hash_partition(PARTITIONERS[name], key, count) == getattr(confluent_kafka, name)(key, count)


@pytest.mark.parametrize(
    ("name", "null", "empty"),
    [
        ("random", None, None),
        ("consistent", 0, 0),
        ("consistent_random", None, None),
        ("murmur2", "murmur2", "murmur2"),
        ("murmur2_random", None, "murmur2"),
        ("fnv1a", "fnv1a", "fnv1a"),
        ("fnv1a_random", None, "fnv1a"),
    ],
)
def test_keys_that_are_null_or_empty(name: str, null: Any, empty: Any) -> None:
    """A name stands for the hash of no bytes."""
    for key, wanted in ((None, null), (b"", empty)):
        expected = getattr(confluent_kafka, wanted)(b"", 7) if isinstance(wanted, str) else wanted
        assert hash_partition(PARTITIONERS[name], key, 7) == expected


def test_values() -> None:
    assert plain_bytes("value", "ä") == "ä".encode()
    assert plain_bytes("value", bytearray(b"x")) == plain_bytes("value", memoryview(b"x")) == b"x"
    with pytest.raises(TypeError, match="key must be bytes, str or None, got int"):
        plain_bytes("key", 1)


def test_headers() -> None:
    assert plain_headers({"a": "ä", "b": None}) == [("a", "ä".encode()), ("b", None)]
    assert plain_headers([("a", b"1"), ("a", "")]) == [("a", b"1"), ("a", b"")]
    for wrong in (("a", "b"), ["a"], {"a": 1}, [("a", "b", "c")], "ab", [(b"a", b"b")]):
        with pytest.raises(TypeError):
            plain_headers(wrong)


def test_a_message_is_made_by_produce_alone() -> None:
    with pytest.raises(TypeError, match=r"Producer.produce\(\) alone"):
        Message()
