"""InitProducerIdCall: the one request of this package that a producer without transactions has, too.

The others are in ``requests``, which such a producer never imports.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar, NamedTuple

from forebay._protocol.find_coordinator import TRANSACTION
from forebay._protocol.init_producer_id import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT,
    InitProducerIdResponse,
    decode_init_producer_id,
    encode_init_producer_id,
)
from forebay._protocol.versions import SUPPORTED, ApiKey


class Priority(IntEnum):
    """Which request goes first."""

    FIND_COORDINATOR = 0
    INIT_PRODUCER_ID = 1
    ADD_PARTITIONS_OR_OFFSETS = 2
    END_TXN = 3
    EPOCH_BUMP = 4


class Coordinator(NamedTuple):
    """Whom a request goes to: the coordinator of a transactional id or of a group."""

    kind: int
    key: str


class _Asked(NamedTuple):
    transactional_id: str | None = None
    transaction_timeout_ms: int = NO_TIMEOUT
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class InitProducerIdCall(_Asked):
    """Asks for a producer id; the defaults are those of a producer without transactions.

    ``transaction_timeout_ms`` is ``transaction.timeout.ms``; ``producer_id`` and ``producer_epoch`` ask for the
    next epoch of that id (v3 and later, KIP-360).
    """

    # Fields of a named tuple, not of a dataclass like the other calls: each start would pay for the decorator.
    __slots__ = ()

    api_key: ClassVar[int] = ApiKey.INIT_PRODUCER_ID
    max_version: ClassVar[int] = SUPPORTED[ApiKey.INIT_PRODUCER_ID][1]

    @property
    def min_version(self) -> int:
        """The oldest version that can carry what is asked."""
        return 3 if self.producer_id != NO_PRODUCER_ID else SUPPORTED[ApiKey.INIT_PRODUCER_ID][0]

    @property
    def priority(self) -> Priority:
        """A bump follows the end of the transaction that made it necessary."""
        return Priority.EPOCH_BUMP if self.producer_id != NO_PRODUCER_ID else Priority.INIT_PRODUCER_ID

    @property
    def coordinator(self) -> Coordinator | None:
        """Any broker will do for a producer without transactions."""
        return None if self.transactional_id is None else Coordinator(TRANSACTION, self.transactional_id)

    def build(self, version: int) -> list[bytes]:
        """The body for ``version``, header excluded."""
        return encode_init_producer_id(
            version,
            self.transactional_id,
            self.transaction_timeout_ms,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
        )

    def parse(self, version: int, payload: bytes | memoryview) -> InitProducerIdResponse:
        """The answer to ``build(version)``.

        Raises:
            ProtocolError: the bytes make no sense.
        """
        return decode_init_producer_id(version, payload)
