"""``SerializingProducer`` of confluent-kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic

from forebay.compat._librdkafka_errors import KafkaException
from forebay.compat._librdkafka_path import CLOSED
from forebay.compat._librdkafka_producer import Producer
from forebay.compat._librdkafka_values import plain_topic
from forebay.compat.confluent_kafka.error import KeySerializationError, ValueSerializationError
from forebay.compat.confluent_kafka.serialization import MessageField, SerializationContext
from forebay.config._door import door

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar

    K, V = TypeVar("K"), TypeVar("V")


class SerializingProducer(Producer, Generic[K, V]):
    """Producer with ``key.serializer`` and ``value.serializer``: functions of an object and a context.

    ``key.serializer.builder`` and ``value.serializer.builder`` make them of the configuration; what they made is closed
    with the producer.

    Raises:
        ValueError: a serializer and its builder were given, or a builder gives something else than a pair.
    """

    # Not wrapped: what makes a serializer gets the options as the user wrote them.
    @door(KafkaException, TypeError, wrap=False)
    def __init__(self, conf: Mapping[str, Any]) -> None:
        left = dict(conf)
        self._made: list[Any] = []
        given = [_taken(left, f"{field}.serializer") for field in ("key", "value")]
        shared = dict(left)
        try:
            made = [self._serializer(each, shared, left, at == 0) for at, each in enumerate(given)]
            self._key_serializer, self._value_serializer = made
            super().__init__(left)
        except BaseException:
            self._close_made()
            raise
        for serializer in made:
            if hasattr(serializer, "set_cluster_id_resolver"):
                serializer.set_cluster_id_resolver(self.cluster_id)

    def _serializer(self, given: tuple[Any, Any], shared: dict[str, Any], left: dict[str, Any], is_key: bool) -> Any:
        serializer, builder = given
        if builder is None:
            return serializer
        built = builder.build(dict(shared), is_key)
        if not isinstance(built, tuple) or len(built) != 2 or not isinstance(built[1], dict):
            raise ValueError(f"build() of {type(builder).__name__} must give a serializer and a dict, got {built!r}")
        self._made.append(built[0])
        for name in shared.keys() - built[1].keys():
            left.pop(name, None)  # an option of the serializer's
        return built[0]

    def _close_made(self) -> None:
        while self._made:
            close = getattr(self._made.pop(), "close", None)
            if close is not None:
                close()

    def close(self, timeout: float = -1) -> bool:
        """As ``Producer.close``; then closes the serializers that builders made."""
        closed = super().close(timeout)
        self._close_made()
        return closed

    def produce(  # type: ignore[override]
        self,
        topic: str,
        key: K | None = None,
        value: V | None = None,
        partition: int = -1,
        on_delivery: Any = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Serializes, then as ``Producer.produce``.

        Raises:
            KeySerializationError, ValueSerializationError: a serializer raised; its error is the cause.
        """
        if not self._open:
            raise RuntimeError(CLOSED)  # before serializers, which may register a schema
        context = SerializationContext(plain_topic(topic), MessageField.KEY, headers)
        key_bytes: Any = key
        value_bytes: Any = value
        if self._key_serializer is not None:
            try:
                key_bytes = self._key_serializer(key, context)
            except Exception as error:
                raise KeySerializationError(error) from error
        context.field = MessageField.VALUE
        if self._value_serializer is not None:
            try:
                value_bytes = self._value_serializer(value, context)
            except Exception as error:
                raise ValueSerializationError(error) from error
        super().produce(topic, value_bytes, key_bytes, partition, None, on_delivery, timestamp, headers)


def _taken(left: dict[str, Any], name: str) -> tuple[Any, Any]:
    serializer, builder = left.pop(name, None), left.pop(f"{name}.builder", None)
    if serializer is not None and builder is not None:
        raise ValueError(f"{name} and {name}.builder cannot both be given")
    return serializer, builder
