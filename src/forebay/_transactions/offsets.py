"""The arguments of ``send_offsets_to_transaction``, offsets and group, as the values that are sent.

Values of other clients' consumers are read by their shape, because none of these packages is imported here:

- confluent-kafka: a list of TopicPartition (``consumer.position(consumer.assignment())``), and the bytes of
  ``consumer.consumer_group_metadata()``;
- kafka-python (3.0 and later): a dict of TopicPartition and OffsetAndMetadata, and ``consumer.group_metadata()``;
- aiokafka: the same dict, and the consumer itself, which has no public form of its membership.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from forebay.errors import CommitFailedError, IllegalArgumentError
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from forebay.model._wire import shown, topic_fault

LIBRDKAFKA_MAGIC = b"CGMDv2:"
"""The first bytes of librdkafka's serialized group metadata, in versions 1.6 and later."""

LIBRDKAFKA_NO_POSITION = -1001
"""librdkafka's RD_KAFKA_OFFSET_INVALID: an assigned partition from which nothing was read yet."""

_GROUPS = (
    "a ConsumerGroupMetadata or a group id; or consumer.consumer_group_metadata() of confluent-kafka, "
    "consumer.group_metadata() of kafka-python 3.0 and later, or an AIOKafkaConsumer"
)


# ---- the group


def checked_group(group: object) -> ConsumerGroupMetadata:
    """The group, and the member if known, that commits.

    Raises:
        IllegalArgumentError: the value names no group, or has bytes of an unknown version.
        CommitFailedError: an AIOKafkaConsumer that is no member of its group now.
    """
    if isinstance(group, ConsumerGroupMetadata):
        return group
    if isinstance(group, str):
        return ConsumerGroupMetadata(group)
    if isinstance(group, (bytes, bytearray, memoryview)):
        return _of_librdkafka(bytes(group))
    coordinator = getattr(group, "_coordinator", None)
    if coordinator is not None and hasattr(coordinator, "generation"):
        return _of_aiokafka(coordinator, group)
    fields = (getattr(group, name, None) for name in ("group_id", "generation_id", "member_id", "group_instance_id"))
    return _group(group, *fields)


def _group(
    given: object, group_id: object, generation: object, member: object, instance: object
) -> ConsumerGroupMetadata:
    if not isinstance(group_id, str) or not isinstance(generation, int) or not isinstance(member, str):
        raise IllegalArgumentError(f"Consumer group metadata must be {_GROUPS}; got {given!r}")
    if instance is not None and not isinstance(instance, str):
        raise IllegalArgumentError(f"group_instance_id of {given!r} must be a str or None, got {instance!r}")
    return ConsumerGroupMetadata(group_id, generation, member, instance)


def _of_librdkafka(data: bytes) -> ConsumerGroupMetadata:
    """Parses the bytes after the magic: the generation (an int32 in this machine's byte order), and three strings.

    Each string ends in a zero byte.  They are the group's id, the member's id, and, unless the byte before it is 1, the
    group.instance.id.
    """
    if not data.startswith(LIBRDKAFKA_MAGIC):
        raise IllegalArgumentError(
            f"Consumer group metadata of an unknown version: it begins with {data[:7]!r}, and {LIBRDKAFKA_MAGIC!r} "
            "(librdkafka 1.6 and later) is what is known; the group's id as a str works with every version, but does "
            "not keep a member that was expelled from committing"
        )
    body = data[len(LIBRDKAFKA_MAGIC) :]
    try:
        (generation,) = struct.unpack_from("=i", body)
        group_id, member, rest = body[4:].split(b"\0", 2)
        instance: str | None = None
        if rest != b"\1":
            flag, instance_id, end = rest[:1], rest[1:-1], rest[-1:]
            if flag != b"\0" or end != b"\0" or len(rest) < 2 or b"\0" in instance_id:
                raise ValueError(f"{rest!r} in place of the group.instance.id")
            instance = instance_id.decode()
        return ConsumerGroupMetadata(group_id.decode(), generation, member.decode(), instance)
    except (struct.error, ValueError) as error:
        raise IllegalArgumentError(f"Consumer group metadata that makes no sense ({error}): {data!r}") from error


def _of_aiokafka(coordinator: Any, consumer: object) -> ConsumerGroupMetadata:
    group_id = getattr(coordinator, "group_id", None)
    member = _group(
        consumer,
        group_id,
        coordinator.generation,
        getattr(coordinator, "member_id", None),
        getattr(coordinator, "_group_instance_id", None),
    )
    if member.generation_id < 0:
        # With these values the broker would not check whether the member may commit.
        raise CommitFailedError(
            f"The consumer is no member of its group {group_id!r} now: it was expelled or has stopped. If it has its "
            "partitions by assign(), pass the group's id"
        )
    return member


# ---- the offsets


def checked_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """The offsets to commit by partition, from a mapping or from a consumer's own objects.

    A partition without a position in librdkafka is left out, as by its own producer.

    Raises:
        IllegalArgumentError: a partition or an offset that cannot be.
    """
    if isinstance(offsets, Mapping):
        return {where: _checked_offset(where, offset) for where, offset in _pairs(offsets.items())}
    if not isinstance(offsets, Iterable) or isinstance(offsets, (str, bytes)):
        raise IllegalArgumentError(
            "Offsets must be a mapping of partitions to offsets, or objects with topic, partition and offset; "
            f"got {offsets!r}"
        )
    checked: dict[TopicPartition, OffsetAndMetadata] = {}
    for where, item in _pairs((item, item) for item in offsets):
        error = getattr(item, "error", None)
        if error is not None:
            raise IllegalArgumentError(f"The offset of {where} has an error: {error}")
        if getattr(item, "offset", None) != LIBRDKAFKA_NO_POSITION:
            checked[where] = _checked_offset(where, item)
    return checked


def _pairs(items: Iterable[tuple[Any, Any]]) -> Iterable[tuple[TopicPartition, Any]]:
    for key, value in items:
        topic, partition = getattr(key, "topic", None), getattr(key, "partition", None)
        if isinstance(key, tuple) and len(key) == 2:
            topic, partition = key
        if not isinstance(topic, str) or not isinstance(partition, int) or isinstance(partition, bool):
            raise IllegalArgumentError(f"A partition has a topic (str) and a number (int), got {key!r}")
        fault = topic_fault(topic)
        if fault is not None:
            raise IllegalArgumentError(f"No topic can be named '{shown(topic)}', as a partition's is: {fault}")
        if partition < 0:
            raise IllegalArgumentError(f"A partition has a number at least 0, got {key!r}")
        yield TopicPartition(topic, partition), value


def _checked_offset(where: TopicPartition, given: Any) -> OffsetAndMetadata:
    if isinstance(given, OffsetAndMetadata):
        return given
    offset, epoch, metadata = given, None, None
    if hasattr(given, "offset"):
        offset = given.offset
        epoch, metadata = getattr(given, "leader_epoch", None), getattr(given, "metadata", None)
    elif isinstance(given, tuple) and len(given) == 2:
        offset, metadata = given
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise IllegalArgumentError(f"The offset of {where} must be an int or an OffsetAndMetadata, got {offset!r}")
    if metadata is not None and not isinstance(metadata, str):
        raise IllegalArgumentError(f"The metadata of {where}'s offset must be a str, got {metadata!r}")
    if offset < 0:
        raise IllegalArgumentError(f"The offset of {where} must be at least 0, got {offset}")
    return OffsetAndMetadata(offset, -1 if epoch is None else epoch, metadata or "")
