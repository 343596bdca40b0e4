"""What a program gives as a serializer or as a partitioner, ready to be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forebay.compat.kafka.errors import KafkaConfigurationError
from forebay.compat.kafka.partitioner import DefaultPartitioner, StickyPartitioner
from forebay.model._cluster import Cluster

Chooser = Callable[[str, Any, Any, Any, Any, Cluster], int]
"""Called with the topic, the key, its bytes, the value, its bytes and the native cluster; the partition."""


class BoundSerializer:
    """What a program gave as ``key_serializer`` or ``value_serializer``; one of the two calls is not None.

    Args:
        name: of the option.
        given: None, a function of the object, an object with ``serialize(topic, headers, data)``, or one with
            ``serialize(topic, data)``, as kafka-python has it before 3.0.

    Raises:
        KafkaConfigurationError: it is none of these.
    """

    def __init__(self, name: str, given: Any) -> None:
        self.of_data: Callable[[Any], Any] | None = None
        self.of_record: Callable[[str, list[Any], Any], Any] | None = None
        self.close: Callable[[], object] = getattr(given, "close", _nothing)
        serialize = getattr(given, "serialize", None)
        if callable(serialize):
            self.of_record = serialize if _takes_headers(serialize) else _without_headers(serialize)
        elif callable(given):
            self.of_data = given
        elif given is not None:
            raise KafkaConfigurationError(
                f"{name} must be a function of the object or have serialize(topic, headers, data), got "
                f"{type(given).__name__}"
            )


def _nothing() -> None:
    """For what has nothing to close."""


def _takes_headers(serialize: Callable[..., Any]) -> bool:
    from inspect import signature  # it takes long to import, and few programs have such an object

    try:
        signature(serialize).bind("topic", [], None)
    except TypeError:
        return False
    except ValueError:
        return True  # a compiled function without a signature
    return True


def _without_headers(serialize: Callable[[str, Any], Any]) -> Callable[[str, list[Any], Any], Any]:
    return lambda topic, headers, data: serialize(topic, data)


class ClusterView:
    """What a partitioner may ask kafka-python's cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def topics(self) -> set[str]:
        """The topics that are known."""
        return set(self._cluster.topics)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """All partitions, None for a topic that is not known."""
        return set(range(self._cluster.partition_count(topic))) or None

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """Those that have a leader, None for a topic that is not known."""
        known = self._cluster.partition_count(topic) > 0
        return set(self._cluster.available_partitions(topic)) if known else None


def chooser_of(given: Any) -> Chooser | None:
    """The function that chooses for a partitioner of a program; None for the two of this module.

    Args:
        given: an object with ``partition`` as Partitioner has it, or a function of the key's bytes, all partitions and
            those with a leader, as kafka-python has it before 3.0.

    Raises:
        KafkaConfigurationError: it is neither, or wants to be told of new batches.
    """
    if type(given) in (DefaultPartitioner, StickyPartitioner):
        return None
    if hasattr(given, "on_new_batch"):
        raise KafkaConfigurationError(
            f"partitioner: on_new_batch() of {type(given).__name__} would not be called here; use StickyPartitioner of "
            "forebay.compat.kafka, or forebay.KafkaProducer, whose records without a key go to sticky partitions"
        )
    choose = None if isinstance(given, type) else getattr(given, "partition", None)
    if callable(choose):
        return lambda topic, key, key_bytes, value, value_bytes, cluster: choose(
            topic, key, key_bytes, value, value_bytes, ClusterView(cluster)
        )
    if callable(given) and not isinstance(given, type):
        return lambda topic, key, key_bytes, value, value_bytes, cluster: given(
            key_bytes, list(range(cluster.partition_count(topic))), list(cluster.available_partitions(topic))
        )
    raise KafkaConfigurationError(
        "partitioner must have partition(topic, key, serialized_key, value, serialized_value, cluster), or be a "
        f"function of (key_bytes, all_partitions, available_partitions), got {given!r}"
    )
