"""forebay: a Kafka producer for Python and PySpark.

Names are imported when they are first asked for: Spark imports this package four times for a job, mostly in
processes that never make a producer.
"""

from importlib import import_module as _import_module

from forebay._interpreted import implementation

# Not typing's, which takes longer to import than all that is imported here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from forebay._columnar import BatchDelivery
    from forebay._delivery.future import RecordFuture
    from forebay._description.values import ProducerDescription
    from forebay._version import VERSION as __version__
    from forebay.aio import AsyncKafkaProducer
    from forebay.config import ProducerConfig
    from forebay.control import Control
    from forebay.errors import KafkaError
    from forebay.model import (
        ConsumerGroupMetadata,
        OffsetAndMetadata,
        ProducerRecord,
        RecordMetadata,
        TopicPartition,
        TransactionIdentity,
    )
    from forebay.process import end_on_sigterm, per_process
    from forebay.producer import KafkaProducer
    from forebay.rows import rows_as_avro, rows_as_json

__all__ = [
    "AsyncKafkaProducer",
    "BatchDelivery",
    "ConsumerGroupMetadata",
    "Control",
    "KafkaError",
    "KafkaProducer",
    "OffsetAndMetadata",
    "ProducerConfig",
    "ProducerDescription",
    "ProducerRecord",
    "RecordFuture",
    "RecordMetadata",
    "TopicPartition",
    "TransactionIdentity",
    "__version__",
    "end_on_sigterm",
    "implementation",
    "per_process",
    "rows_as_avro",
    "rows_as_json",
]

_HOMES = {
    "AsyncKafkaProducer": "aio",
    "BatchDelivery": "_columnar",
    "ConsumerGroupMetadata": "model",
    "Control": "control",
    "KafkaError": "errors",
    "KafkaProducer": "producer",
    "OffsetAndMetadata": "model",
    "ProducerConfig": "config",
    "ProducerDescription": "_description.values",
    "ProducerRecord": "model",
    "RecordFuture": "_delivery.future",
    "RecordMetadata": "model",
    "TopicPartition": "model",
    "TransactionIdentity": "model",
    "end_on_sigterm": "process",
    "per_process": "process",
    "rows_as_avro": "rows",
    "rows_as_json": "rows",
}
_MODULES = frozenset({"aio", "config", "errors", "interceptors", "metrics", "model", "serializers"})


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    if name == "__version__":
        return _import_module(f"{__name__}._version").VERSION
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
