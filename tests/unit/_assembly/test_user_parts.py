"""The parts that run the user's code: which are made, and how they are closed."""

from __future__ import annotations

from typing import Any

import pytest

from forebay._accumulator.partitioner import ConsistentRandomPartitioner, PartitionerAdapter, RoundRobinPartitioner
from forebay._assembly.user_parts import UserParts, make_user_parts
from forebay.config import ProducerConfig
from tests.unit.producer.test_threads import Part


def made(kept: list[Any], **options: Any) -> UserParts:
    """The parts for options by Kafka's names; ``kept`` gets those that need to be closed."""

    def keep(part: Any) -> Any:
        kept.append(part)
        return part

    config = ProducerConfig(bootstrap_servers="127.0.0.1:9092", **options)
    return make_user_parts(config, {**config}, lambda: 0.5, keep)


@pytest.mark.parametrize(
    ("chosen", "kind"),
    [
        (None, type(None)),
        ("builtin", type(None)),
        ("consistent_random", ConsistentRandomPartitioner),
        ("round_robin", RoundRobinPartitioner),
        (Part, PartitionerAdapter),
        (lambda *_: 0, PartitionerAdapter),
    ],
)
def test_partitioners(chosen: Any, kind: type) -> None:
    assert type(made([], partitioner_class=chosen).partitioner) is kind


def test_each_part_is_kept_as_soon_as_it_is_there() -> None:
    kept: list[Any] = []
    parts = made(kept, partitioner_class="round_robin")
    assert kept == [parts.key_serializer, parts.value_serializer, parts.interceptors, parts.partitioner]


class Failing(Part):
    """One whose end fails."""

    def close(self) -> None:
        super().close()
        raise ValueError("of close")


def test_all_are_closed_once_and_the_first_error_is_raised_once() -> None:
    ends: list[Any] = [Failing(), Part(), Failing(), Part()]
    parts = UserParts(*ends)
    with pytest.raises(ValueError, match="of close"):
        parts.close()
    parts.close()
    assert [part.closed for part in ends] == [1] * 4


def test_an_error_of_the_threads_end_is_left_to_the_owner() -> None:
    parts = UserParts(Failing(), Part(), Part(), None)  # type: ignore[arg-type]
    parts.close_all()
    with pytest.raises(ValueError, match="of close"):
        parts.close()
