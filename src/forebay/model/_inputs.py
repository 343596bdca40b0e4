"""Values that users make and hand in, checked as they are made; their public home is ``forebay.model``.

Apart from the values that the package makes itself, because dataclasses take 5 ms to import and a producer whose
``send`` is given plain arguments needs none.  Annotations are evaluated here: who asks for a class's hints has only
``forebay.model`` to look names up in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Never

from forebay._runtime.hints import old_spelling, shown_as
from forebay._runtime.times import unix_ms
from forebay.errors import IllegalArgumentError
from forebay.model._wire import check_text, shown_record


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ProducerRecord:
    """A record as interceptors see it, before serialization; ``headers`` given as a mapping become its pairs.

    ``timestamp`` is Unix time in ms; an aware datetime becomes that.

    Raises:
        forebay.errors.IllegalArgumentError: no topic, negative partition or negative timestamp.  What is wrong with a
            topic's name arrives in the future.
    """

    topic: str
    value: Any = None
    key: Any = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None
    timestamp: int | None = None

    # By hand, because it takes more than the fields hold: other kinds of headers, and a datetime.
    def __init__(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *old: Never,
        headers: Sequence[tuple[str, bytes | None]] | Mapping[str, bytes | None] = (),
        partition: int | None = None,
        timestamp: int | datetime | None = None,
        timestamp_ms: None = None,
    ) -> None:
        if old or timestamp_ms is not None:
            raise old_spelling("ProducerRecord", timestamp_ms)
        if not isinstance(topic, str):
            raise IllegalArgumentError(f"topic must be a str, got {topic!r}")
        if partition is not None and partition < 0:
            raise IllegalArgumentError(
                f"Invalid partition: {partition}. Partition number should always be non-negative or None."
            )
        if timestamp is not None and (timestamp := unix_ms(timestamp)) < 0:
            raise IllegalArgumentError(
                f"Invalid timestamp: {timestamp}. Timestamp should always be non-negative or None."
            )
        if type(headers) is not list and isinstance(headers, Mapping):
            headers = tuple(headers.items())
        # The class is frozen, for its own constructor too.
        put = object.__setattr__
        put(self, "topic", topic)
        put(self, "value", value)
        put(self, "key", key)
        put(self, "headers", headers)
        put(self, "partition", partition)
        put(self, "timestamp", timestamp)

    def __repr__(self) -> str:
        facts = {"topic": self.topic, "partition": self.partition, "timestamp": self.timestamp}
        return shown_record("ProducerRecord", self.value, self.key, self.headers, **facts)


def _shape(
    self: ProducerRecord,
    topic: str,
    value: Any = None,
    key: Any = None,
    *,
    headers: Sequence[tuple[str, bytes | None]] | Mapping[str, bytes | None] = (),
    partition: int | None = None,
    timestamp: int | datetime | None = None,
) -> None: ...


shown_as(_shape, ProducerRecord.__init__)


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """An offset to be committed for a consumer group: the first one that was not processed.

    ``leader_epoch`` is that of the last record that was, -1 if not known; ``metadata`` is kept with the offset.

    Raises:
        forebay.errors.IllegalArgumentError: negative offset, a leader epoch below -1, or metadata that cannot be sent.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise IllegalArgumentError(f"Invalid negative offset: {self.offset}")
        if self.leader_epoch < -1:
            raise IllegalArgumentError(
                f"Invalid leader epoch: {self.leader_epoch}, it is at least 0, or -1 for unknown"
            )
        _check_texts(self, "metadata")


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadata:
    """Who commits offsets: a consumer group and, where known, the member in it (KIP-447).

    Raises:
        forebay.errors.IllegalArgumentError: no group, a generation without a member, or text that cannot be sent.
    """

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.group_id, str) or not self.group_id:
            raise IllegalArgumentError(f"group_id must be a non-empty str, got {self.group_id!r}")
        if self.generation_id > 0 and not self.member_id:
            raise IllegalArgumentError(
                f"Generation {self.generation_id} of group {self.group_id!r} was given without a member_id: "
                "pass both, or neither"
            )
        _check_texts(self, "group_id", "member_id", "group_instance_id")


def _check_texts(given: object, *names: str) -> None:
    for name in names:
        text = getattr(given, name)
        if isinstance(text, str):
            check_text(name, text)


# What tracebacks, documentation and pickles show.  Not in the classes: the decorator would look into a module that may
# not be imported yet.
for _kind in (ProducerRecord, OffsetAndMetadata, ConsumerGroupMetadata):
    _kind.__module__ = "forebay.model"
