"""The offsets and the group that ``send_offsets_to_transaction`` is given, as the values that are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay.errors import IllegalArgumentError
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition


def checked_group(group: ConsumerGroupMetadata | str) -> ConsumerGroupMetadata:
    """Who commits; a group's id alone will do.

    Raises:
        IllegalArgumentError: neither an id nor a group's metadata.
    """
    if isinstance(group, ConsumerGroupMetadata):
        return group
    if isinstance(group, str):
        return ConsumerGroupMetadata(group)
    raise IllegalArgumentError(f"Consumer group metadata must be a ConsumerGroupMetadata or a group id, got {group!r}")


def checked_offsets(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """By partition what is committed, from a mapping or from a consumer's own objects.

    Raises:
        IllegalArgumentError: an offset that cannot be.
    """
    if isinstance(offsets, Mapping):
        return {TopicPartition(*where): _checked_offset(where, offset) for where, offset in offsets.items()}
    checked: dict[TopicPartition, OffsetAndMetadata] = {}
    for item in offsets:
        where = TopicPartition(item.topic, item.partition)
        epoch, metadata = getattr(item, "leader_epoch", None), getattr(item, "metadata", None)
        _checked_offset(where, item.offset)
        checked[where] = OffsetAndMetadata(item.offset, -1 if epoch is None else epoch, metadata or "")
    return checked


def _checked_offset(where: Any, offset: int | OffsetAndMetadata) -> OffsetAndMetadata:
    if isinstance(offset, OffsetAndMetadata):
        return offset
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise IllegalArgumentError(f"The offset of {where} must be an int or an OffsetAndMetadata, got {offset!r}")
    return OffsetAndMetadata(offset)
