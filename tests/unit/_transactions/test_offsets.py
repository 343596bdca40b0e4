"""Offsets and groups, in every form that consumers have them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from forebay._transactions.offsets import checked_group, checked_offsets
from forebay.errors import IllegalArgumentError
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

WHERE = TopicPartition("test", 3)


def test_a_mapping_may_hold_numbers_and_whole_values_and_any_pair_as_its_key() -> None:
    assert checked_offsets({("test", 3): 7}) == {WHERE: OffsetAndMetadata(7)}
    assert checked_offsets({WHERE: OffsetAndMetadata(7, 2, "text")}) == {WHERE: OffsetAndMetadata(7, 2, "text")}


def test_another_client_s_objects_are_read_by_their_attributes() -> None:
    plain = SimpleNamespace(topic="test", partition=3, offset=7)
    full = SimpleNamespace(topic="test", partition=4, offset=8, leader_epoch=5, metadata="text")
    empty = SimpleNamespace(topic="test", partition=5, offset=9, leader_epoch=None, metadata=None)
    assert checked_offsets([plain, full, empty]) == {
        WHERE: OffsetAndMetadata(7),
        TopicPartition("test", 4): OffsetAndMetadata(8, 5, "text"),
        TopicPartition("test", 5): OffsetAndMetadata(9),
    }


@pytest.mark.parametrize("offset", [True, 1.0, "7", None])
def test_an_offset_is_a_whole_number(offset: Any) -> None:
    with pytest.raises(IllegalArgumentError, match="offset of test-3 must be an int"):
        checked_offsets({WHERE: offset})
    with pytest.raises(IllegalArgumentError, match="offset of test-3 must be an int"):
        checked_offsets([SimpleNamespace(topic="test", partition=3, offset=offset)])


def test_a_group_is_its_id_or_its_metadata() -> None:
    group = ConsumerGroupMetadata("group", 3, "member")
    assert checked_group(group) is group
    assert checked_group("group") == ConsumerGroupMetadata("group")
    with pytest.raises(IllegalArgumentError, match="or a group id, got 7"):
        checked_group(7)  # type: ignore[arg-type]
