"""What a program may give as a serializer or as a partitioner."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.compat.kafka._user_functions import BoundSerializer, ClusterView, chooser_of
from forebay.compat.kafka.errors import KafkaConfigurationError
from forebay.compat.kafka.partitioner import DefaultPartitioner, Partitioner, StickyPartitioner
from forebay.compat.kafka.serializer import Serializer
from tests.unit.compat.kafka.test_partitioner import CLUSTER


class Old:
    closed = 0

    def serialize(self, topic: str, data: Any) -> bytes:
        return f"{topic}:{data}".encode()

    def close(self) -> None:
        self.closed += 1


class New(Serializer):
    def serialize(self, topic: str, headers: list[tuple[str, bytes]], data: Any) -> Any:
        headers.append(("by", b"new"))
        return data


def test_each_kind_is_called_as_it_expects() -> None:
    function, old, new, none = (
        BoundSerializer("value_serializer", given) for given in (str.encode, Old(), New(), None)
    )
    assert function.of_data is not None and function.of_data("x") == b"x" and function.of_record is None
    assert old.of_record is not None and old.of_record("t", [], 5) == b"t:5" and old.of_data is None
    headers: list[tuple[str, bytes]] = []
    assert new.of_record is not None and new.of_record("t", headers, b"v") == b"v" and headers == [("by", b"new")]
    assert none.of_data is None and none.of_record is None


def test_a_close_is_called() -> None:
    given = Old()
    BoundSerializer("key_serializer", given).close()
    assert given.closed == 1
    BoundSerializer("key_serializer", str.encode).close()


def test_anything_else_is_refused() -> None:
    with pytest.raises(KafkaConfigurationError, match="key_serializer must be a function of the object .* got int"):
        BoundSerializer("key_serializer", 5)


def test_what_is_seen_of_the_cluster() -> None:
    view = ClusterView(CLUSTER)
    assert view.topics() == {"t"}
    assert (view.partitions_for_topic("t"), view.partitions_for_topic("x")) == ({0, 1, 2, 3, 4}, None)
    assert (view.available_partitions_for_topic("t"), view.available_partitions_for_topic("x")) == ({1, 2, 3, 4}, None)


class Own(Partitioner):
    seen: tuple[Any, ...] = ()

    def partition(
        self, topic: str, key: Any, serialized_key: Any, value: Any, serialized_value: Any, cluster: Any
    ) -> int:
        self.seen = (topic, key, serialized_key, value, serialized_value)
        every: set[int] = cluster.partitions_for_topic(topic)
        return max(every)


def test_a_programs_own_partitioner() -> None:
    own = Own()
    choose = chooser_of(own)
    assert choose is not None and choose("t", "k", b"k", 5, b"5", CLUSTER) == 4
    assert own.seen == ("t", "k", b"k", 5, b"5")


def test_a_function_as_before_3_0() -> None:
    seen: list[Any] = []

    def choose(key: Any, every: list[int], available: list[int]) -> int:
        seen.append((key, every, available))
        return 2

    chooser = chooser_of(choose)
    assert chooser is not None and chooser("t", "k", b"k", 5, b"5", CLUSTER) == 2
    assert seen == [(b"k", [0, 1, 2, 3, 4], [1, 2, 3, 4])]


def test_the_two_of_this_module_need_no_call() -> None:
    assert chooser_of(DefaultPartitioner()) is None and chooser_of(StickyPartitioner()) is None


class Told(Own):
    def on_new_batch(self, topic: str, cluster: Any, previous: int) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("given", "said"), [(Told(), r"on_new_batch\(\) of Told would not be called"), (5, "got 5"), (Own, "must have")]
)
def test_what_is_refused(given: Any, said: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=said):
        chooser_of(given)
