"""``SerializingProducer`` of confluent-kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forebay.compat._librdkafka_errors import KafkaError, KafkaException
from forebay.compat._librdkafka_producer import Producer
from forebay.compat._librdkafka_values import SerializationContext
from forebay.config._door import door


class SerializingProducer(Producer):
    """Producer with ``key.serializer`` and ``value.serializer``: functions of an object and a context."""

    @door(KafkaException, TypeError)
    def __init__(self, conf: Mapping[str, Any]) -> None:
        own = dict(conf)
        self._key_serializer = own.pop("key.serializer", None)
        self._value_serializer = own.pop("value.serializer", None)
        super().__init__(own)

    def produce(  # type: ignore[override]
        self,
        topic: str,
        key: Any = None,
        value: Any = None,
        partition: int = -1,
        on_delivery: Any = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Serializes, then as ``Producer.produce``.

        Raises:
            KafkaException: ``_KEY_SERIALIZATION`` or ``_VALUE_SERIALIZATION``; the serializer's error is the cause.
        """
        key = self._serialized("key", self._key_serializer, key, topic, headers)
        value = self._serialized("value", self._value_serializer, value, topic, headers)
        super().produce(topic, value, key, partition, None, on_delivery, timestamp, headers)

    @staticmethod
    def _serialized(field: str, serializer: Any, given: Any, topic: str, headers: Any) -> Any:
        if serializer is None:
            return given
        try:
            return serializer(given, SerializationContext(topic, field, headers))
        except Exception as error:
            code = KafkaError._KEY_SERIALIZATION if field == "key" else KafkaError._VALUE_SERIALIZATION
            raise KafkaException(KafkaError(code, str(error))) from error
