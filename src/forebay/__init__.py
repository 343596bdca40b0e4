"""forebay: a Kafka producer for Python and PySpark.

Names are imported when they are first asked for: Spark imports this package four times for a job, mostly in
processes that never make a producer.
"""

from importlib import import_module as _import_module

from forebay._interpreted import implementation

# Not typing's, which takes longer to import than all that is imported here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from forebay._delivery.future import RecordFuture
    from forebay._insight.advising import LiveAdvice
    from forebay._insight.values import ProducerDescription
    from forebay._runtime.version import VERSION as __version__
    from forebay.admin import AdminClient
    from forebay.config import ProducerConfig
    from forebay.errors import (
        AuthenticationError,
        AuthorizationError,
        BufferExhaustedError,
        ConfigError,
        KafkaError,
        KafkaTimeoutError,
        ProducerClosedError,
        ProducerFencedError,
        RecordTooLargeError,
        RetriableError,
        SerializationError,
        TransactionAbortedError,
    )
    from forebay.model import (
        ConsumerGroupMetadata,
        DeliveryReport,
        OffsetAndMetadata,
        ProducerRecord,
        RecordMetadata,
        TopicPartition,
        TransactionIdentity,
    )
    from forebay.producer import KafkaProducer
    from forebay.producer._columns import BatchDelivery
    from forebay.producer.aio import AsyncKafkaProducer
    from forebay.producer.process import end_on_sigterm, per_process
    from forebay.serializers.rows import rows_as_avro, rows_as_json

__all__ = [
    "AsyncKafkaProducer",
    "AuthenticationError",
    "AuthorizationError",
    "BatchDelivery",
    "BufferExhaustedError",
    "ConfigError",
    "ConsumerGroupMetadata",
    "AdminClient",
    "DeliveryReport",
    "KafkaError",
    "KafkaProducer",
    "KafkaTimeoutError",
    "LiveAdvice",
    "OffsetAndMetadata",
    "ProducerClosedError",
    "ProducerConfig",
    "ProducerDescription",
    "ProducerFencedError",
    "ProducerRecord",
    "RecordFuture",
    "RecordMetadata",
    "RecordTooLargeError",
    "RetriableError",
    "SerializationError",
    "TopicPartition",
    "TransactionAbortedError",
    "TransactionIdentity",
    "__version__",
    "end_on_sigterm",
    "implementation",
    "per_process",
    "rows_as_avro",
    "rows_as_json",
]

_HOMES = {
    "AsyncKafkaProducer": "producer.aio",
    "AuthenticationError": "errors",
    "AuthorizationError": "errors",
    "BatchDelivery": "producer._columns",
    "BufferExhaustedError": "errors",
    "ConfigError": "errors",
    "ConsumerGroupMetadata": "model",
    "AdminClient": "admin.client",
    "DeliveryReport": "model",
    "KafkaError": "errors",
    "KafkaProducer": "producer.threads",
    "KafkaTimeoutError": "errors",
    "LiveAdvice": "_insight.advising",
    "OffsetAndMetadata": "model",
    "ProducerClosedError": "errors",
    "ProducerConfig": "config",
    "ProducerDescription": "_insight.values",
    "ProducerFencedError": "errors",
    "ProducerRecord": "model",
    "RecordFuture": "_delivery.future",
    "RecordMetadata": "model",
    "RecordTooLargeError": "errors",
    "RetriableError": "errors",
    "SerializationError": "errors",
    "TopicPartition": "model",
    "TransactionAbortedError": "errors",
    "TransactionIdentity": "model",
    "end_on_sigterm": "producer.process",
    "per_process": "producer.process",
    "rows_as_avro": "serializers.rows",
    "rows_as_json": "serializers.rows",
}
_MODULES = frozenset({"aio", "config", "errors", "interceptors", "metrics", "model", "serializers"})


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    if name == "__version__":
        return _import_module(f"{__name__}._runtime.version").VERSION
    if name == "Control":
        # Of an AttributeError an import statement would not show the text.
        raise ImportError("forebay.Control is forebay.AdminClient")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
