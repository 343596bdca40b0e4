"""The client's instance id, by which brokers know a producer that pushes metrics."""

from __future__ import annotations

from forebay._transactions.result import TransactionalResult
from forebay.errors import KafkaError


class InstanceId:
    """The client's instance id, and who waits for it.  Set by the sender's thread, read by any."""

    def __init__(self) -> None:
        self.text = ""
        """22 characters, as Kafka's tools show it."""
        self.result = TransactionalResult()
        """Settled once the id is known, or will never be."""

    def known(self, text: str) -> None:
        self.text = text
        self.result.settle()

    def never(self, reason: str) -> None:
        self.result.settle(KafkaError(reason))
