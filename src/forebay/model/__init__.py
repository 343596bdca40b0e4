"""Plain values that cross the public surface, and what judges them.

Begin with ``values``.  ``_inputs`` has those that users make; ``_arguments`` and ``_wire`` judge what they give.
``_metadata`` is what became of a record, ``_cluster`` a picture of the brokers, ``_gate`` what the accumulator asks of
transactions.  Names are imported when they are first asked for: who reads options needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forebay.model._inputs import ConsumerGroupMetadata, OffsetAndMetadata, ProducerRecord
    from forebay.model._metadata import DeliveryReport, RecordMetadata
    from forebay.model.values import (
        NO_OFFSET,
        NO_TIMESTAMP,
        UNKNOWN_PARTITION,
        ClusterDescription,
        Headers,
        Node,
        PartitionInfo,
        TailRecord,
        TopicDescription,
        TopicPartition,
        TransactionDescription,
        TransactionIdentity,
        TransactionListing,
    )
    from forebay.model.values import DeliveryCallback as DeliveryCallback
else:
    _HOMES = {
        "ConsumerGroupMetadata": "_inputs",
        "DeliveryReport": "_metadata",
        "OffsetAndMetadata": "_inputs",
        "ProducerRecord": "_inputs",
        "RecordMetadata": "_metadata",
    }

    def __getattr__(name):
        # The import system asks for other names, too, so these first.
        if name not in __all__ and name not in ("DeliveryCallback",):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'values')}"), name)
        return value


__all__ = [
    "ClusterDescription",
    "ConsumerGroupMetadata",
    "DeliveryReport",
    "Headers",
    "NO_OFFSET",
    "NO_TIMESTAMP",
    "Node",
    "OffsetAndMetadata",
    "PartitionInfo",
    "ProducerRecord",
    "RecordMetadata",
    "TailRecord",
    "TopicDescription",
    "TopicPartition",
    "TransactionDescription",
    "TransactionIdentity",
    "TransactionListing",
    "UNKNOWN_PARTITION",
]


def __dir__() -> list[str]:
    return sorted(__all__)
