"""InitProducerId: the request for a producer id, when it is due, and the errors of its answer.

It is the only request of this package that a producer without transactions makes too.  The others are in ``requests``,
which such a producer never imports.
"""

from __future__ import annotations

from enum import IntEnum
from math import inf
from typing import TYPE_CHECKING, ClassVar, NamedTuple

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
from forebay.errors import (
    ClusterAuthorizationError,
    InvalidProducerEpochError,
    KafkaError,
    ProducerFencedError,
    ProtocolError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    UnsupportedVersionError,
    error_for,
)

if TYPE_CHECKING:
    from forebay._runtime.backoff import ExponentialBackoff

PASSING = (ClusterAuthorizationError, TransactionalIdAuthorizationError, TransactionAbortableError)
"""InitProducerId refused with one of these fails the batches at hand; later batches are worth another request."""


class Priority(IntEnum):
    """Which request goes first."""

    FIND_COORDINATOR = 0
    INIT_PRODUCER_ID = 1
    ADD_PARTITIONS_OR_OFFSETS = 2
    END_TXN = 3
    EPOCH_BUMP = 4


class Coordinator(NamedTuple):
    """The coordinator that a request goes to: that of a transactional id or of a group."""

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

    # A named tuple, not a dataclass like the other calls, because every start would pay for the decorator.
    __slots__ = ()

    api_key: ClassVar[int] = ApiKey.INIT_PRODUCER_ID
    max_version: ClassVar[int] = SUPPORTED[ApiKey.INIT_PRODUCER_ID][1]

    @property
    def min_version(self) -> int:
        """The oldest version that has the fields of this request."""
        return 3 if self.producer_id != NO_PRODUCER_ID else SUPPORTED[ApiKey.INIT_PRODUCER_ID][0]

    @property
    def priority(self) -> Priority:
        """A new epoch is asked for after the end of the transaction that made it necessary."""
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
            ProtocolError: the bytes are no valid answer.
        """
        return decode_init_producer_id(version, payload)


class InitAttempts:
    """When an idempotent producer's next request for an id is due.  Sender's thread only.

    Args:
        backoff: between the requests (``retry.backoff.ms``, ``retry.backoff.max.ms``).
    """

    def __init__(self, backoff: ExponentialBackoff) -> None:
        self._backoff = backoff
        self._failures = 0
        self._retry_at = -inf
        self._awaited = False
        self._refused = False

    def delay(self, now: float, has_undrained: bool) -> float:
        """Ms until the next request; inf while one is under way, and after a refusal until records wait."""
        if self._awaited or (self._refused and not has_undrained):
            return inf
        return max(self._retry_at - now, 0.0)

    def begin(self) -> None:
        """A request is sent."""
        self._awaited = True

    def end(self) -> None:
        """Its answer came, or an error in place of an answer."""
        self._awaited = False

    def put_off(self, now: float) -> None:
        """The request failed and is sent again after its backoff."""
        self._retry_at = now + self._backoff.delay(self._failures)
        self._failures += 1

    def refuse(self, now: float) -> None:
        """The broker gives this producer no id now."""
        self._refused = True
        self.put_off(now)

    def succeed(self) -> None:
        """An id is there."""
        self._failures = 0
        self._refused = False

    def hurry(self) -> None:
        """Another id is needed at once."""
        self._retry_at = -inf


def init_error(answer: InitProducerIdResponse | KafkaError, node: str) -> KafkaError | None:
    """What is wrong with the answer of ``node`` to InitProducerId; None if it has an id."""
    if isinstance(answer, UnsupportedVersionError):
        return UnsupportedVersionError(
            f"The broker {node} is too old for idempotence, which needs InitProducerId (Kafka 0.11 and later);"
            f" set enable.idempotence=false to write to it: {answer}"
        )
    if isinstance(answer, KafkaError):
        return answer
    if answer.error_code == 0 and answer.producer_id < 0:
        return ProtocolError(f"The broker {node} answered InitProducerId with the producer id {answer.producer_id}")
    if answer.error_code == InvalidProducerEpochError.code:
        return ProducerFencedError(node=node)  # by its older name
    error = error_for(answer.error_code, node=node)
    return init_error(error, node) if isinstance(error, UnsupportedVersionError) else error
