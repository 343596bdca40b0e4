"""The requests of this package, each a pair of ``build`` and ``parse`` for the sender to wrap and send.

They know the protocol and not the network: which connection carries them is the sender's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forebay._protocol.init_producer_id import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMEOUT,
    InitProducerIdResponse,
    decode_init_producer_id,
    encode_init_producer_id,
)
from forebay._protocol.versions import SUPPORTED, ApiKey


@dataclass(frozen=True, slots=True)
class InitProducerIdCall:
    """Asks for a producer id; the defaults are those of a producer without transactions.

    ``transaction_timeout_ms`` is ``transaction.timeout.ms``; ``producer_id`` and ``producer_epoch`` ask for the
    next epoch of that id (v3 and later, KIP-360).
    """

    transactional_id: str | None = None
    transaction_timeout_ms: int = NO_TIMEOUT
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH

    api_key: ClassVar[int] = ApiKey.INIT_PRODUCER_ID
    max_version: ClassVar[int] = SUPPORTED[ApiKey.INIT_PRODUCER_ID][1]

    @property
    def min_version(self) -> int:
        """The oldest version that can carry what is asked."""
        return 3 if self.producer_id != NO_PRODUCER_ID else SUPPORTED[ApiKey.INIT_PRODUCER_ID][0]

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
