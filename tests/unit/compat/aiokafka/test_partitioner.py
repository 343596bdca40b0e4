"""The default partitioner chooses as the original does."""

from __future__ import annotations

from aiokafka.partitioner import DefaultPartitioner as Original

from forebay.compat.aiokafka.partitioner import DefaultPartitioner


def test_keys_go_where_the_original_puts_them() -> None:
    ours, theirs = DefaultPartitioner(), Original()
    every = list(range(12))
    for number in range(200):
        key = b"key-%d" % number
        assert ours(key, every, [3]) == theirs(key, every, [3])


def test_without_a_key_it_takes_one_with_a_leader() -> None:
    ours = DefaultPartitioner()
    assert {ours(None, [0, 1, 2], [1, 2]) for _ in range(100)} == {1, 2}
    assert {ours(None, [0, 1], []) for _ in range(100)} == {0, 1}
