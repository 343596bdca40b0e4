"""UserParts: the parts of a producer that run the user's code: serializers, interceptors and the partitioner.

The application's threads call them inside ``send()``.  The sender's thread calls interceptors too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from forebay._accumulator.partitioner import (
    ConsistentRandomPartitioner,
    PartitionerAdapter,
    PartitionRandom,
    RoundRobinPartitioner,
)
from forebay.config import ProducerConfig
from forebay.interceptors._chain import ProducerInterceptors, make_interceptors
from forebay.serializers._calls import BoundSerializer, as_serializer

logger = logging.getLogger("forebay.producer")


class UserParts:
    """Closed once, by the end of the sender's thread or by the producer's ``close``."""

    __slots__ = ("_error", "_left", "interceptors", "key_serializer", "partitioner", "value_serializer")

    def __init__(
        self,
        key_serializer: BoundSerializer,
        value_serializer: BoundSerializer,
        interceptors: ProducerInterceptors,
        partitioner: Any,
    ) -> None:
        self.key_serializer = key_serializer
        self.value_serializer = value_serializer
        self.interceptors = interceptors
        self.partitioner = partitioner
        self._left = [True]
        """Empty once a thread has begun to close; popping is atomic."""
        self._error: Exception | None = None

    def close(self) -> None:
        """Closes each part, even if others fail.  At the end the first error is raised, by one call only."""
        self.close_all()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close_all(self) -> None:
        """As ``close``, but logs errors, and leaves the first one for ``close`` to raise."""
        try:
            self._left.pop()
        except IndexError:
            return
        first: Exception | None = None
        for part in (self.interceptors, self.key_serializer, self.value_serializer, self.partitioner):
            try:
                if part is not None:
                    part.close()
            except Exception as error:
                logger.error("While closing %r", part, exc_info=error)
                first = first or error
        self._error = first


def make_user_parts(
    config: ProducerConfig, seen_by_users: dict[str, Any], random: Callable[[], float], keep: Callable[[Any], Any]
) -> UserParts:
    """The parts that the configuration names.

    Args:
        seen_by_users: the configuration as ``configure`` of the user's classes gets it.
        random: in [0, 1).
        keep: called with each part as soon as it exists; it closes the part if a later one cannot be made.
    """
    key_serializer = keep(as_serializer(config["key.serializer"], is_key=True, configs=seen_by_users))
    value_serializer = keep(as_serializer(config["value.serializer"], is_key=False, configs=seen_by_users))
    interceptors = keep(make_interceptors(config["interceptor.classes"], seen_by_users))
    if interceptors:
        # They make a ProducerRecord of a row.  Imported now, because a signal handler could interrupt a later import.
        import forebay._records.reader
        import forebay.model._inputs  # noqa: F401
    partitioner = _partitioner(config, seen_by_users, random)
    if partitioner is not None:
        keep(partitioner)
    return UserParts(key_serializer, value_serializer, interceptors, partitioner)


def _partitioner(config: ProducerConfig, seen_by_users: dict[str, Any], random: Callable[[], float]) -> Any:
    chosen = config["partitioner.class"]
    if chosen is None or chosen == "builtin":
        return None
    if chosen == "consistent_random":
        return ConsistentRandomPartitioner(partition_random(random))
    if chosen == "round_robin":
        return RoundRobinPartitioner()
    if isinstance(chosen, type):
        chosen = chosen()
        if hasattr(chosen, "configure"):
            chosen.configure(seen_by_users)
    return PartitionerAdapter(chosen)


def partition_random(random: Callable[[], float]) -> PartitionRandom:
    """A generator for one partitioner."""
    return PartitionRandom(int(random() * 2**53))
