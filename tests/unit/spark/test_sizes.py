"""Sizes of batches: large ones where there is memory for each partition, and the word of the user above all."""

from __future__ import annotations

import pytest

from forebay.config import ProducerConfig
from forebay.spark import sizes


def test_tables_get_large_batches_and_time_to_fill_them() -> None:
    assert sizes.configured({"acks": "1"}) == {"acks": "1", "linger.ms": "100", "batch.size": "131072"}


@pytest.mark.parametrize("name", sizes.TIMEOUTS)
def test_a_timeout_of_the_user_leaves_no_room_for_a_longer_linger(name: str) -> None:
    assert sizes.configured({name: "1000"}) == {name: "1000", "batch.size": "131072"}
    tight = {"bootstrap.servers": "b:1", "request.timeout.ms": "1000", "delivery.timeout.ms": "1005"}
    ProducerConfig(sizes.configured(tight))


@pytest.mark.parametrize("name", sizes.OF_THE_USER)
def test_whoever_says_something_of_sizes_gets_kafkas_own(name: str) -> None:
    given = {name: "70000", "linger.ms": "5"}
    assert sizes.configured(given) == given
    assert not sizes.chooses(given)


@pytest.mark.parametrize(
    ("partitions", "kib"), [(1, 128), (128, 128), (129, 64), (256, 64), (257, 32), (512, 32), (513, 16), (10_000, 16)]
)
def test_each_partition_has_memory_for_a_batch(partitions: int, kib: int) -> None:
    assert sizes.size_for(partitions) == kib << 10


def test_kafkas_defaults_are_those_that_are_counted_with() -> None:
    config = ProducerConfig({"bootstrap.servers": "b:1"})
    assert (config["batch.size"], config["buffer.memory"]) == (sizes.SMALLEST, sizes.MEMORY)
