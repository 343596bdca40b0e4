"""The requests of this package, each a pair of ``build`` and ``parse`` for the sender to wrap and send.

They know the protocol, not the network: the sender chooses the connection.  They are sent in the order of ``Priority``,
and within one priority in the order in which they were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from forebay._protocol.add_offsets_to_txn import (
    AddOffsetsToTxnResponse,
    decode_add_offsets_to_txn,
    encode_add_offsets_to_txn,
)
from forebay._protocol.add_partitions_to_txn import (
    AddPartitionsToTxnResponse,
    decode_add_partitions_to_txn,
    encode_add_partitions_to_txn,
)
from forebay._protocol.end_txn import EndTxnResponse, decode_end_txn, encode_end_txn
from forebay._protocol.find_coordinator import (
    GROUP,
    TRANSACTION,
    FindCoordinatorResponse,
    decode_find_coordinator,
    encode_find_coordinator,
)
from forebay._protocol.txn_offset_commit import (
    TxnOffsetCommitResponse,
    decode_txn_offset_commit,
    encode_txn_offset_commit,
)
from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay._transactions.initialization import Coordinator, InitProducerIdCall, Priority
from forebay.model import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

FIRST_OF_V2 = 2
"""The transaction version from which the broker adds partitions by itself (KIP-890)."""


class Identity(NamedTuple):
    """The identity that a request carries."""

    transactional_id: str
    producer_id: int
    producer_epoch: int

    @property
    def coordinator(self) -> Coordinator:
        return Coordinator(TRANSACTION, self.transactional_id)


@dataclass(frozen=True, slots=True)
class FindCoordinatorCall:
    """Asks any broker for the coordinator of ``wanted``."""

    wanted: Coordinator

    api_key: ClassVar[int] = ApiKey.FIND_COORDINATOR
    max_version: ClassVar[int] = SUPPORTED[ApiKey.FIND_COORDINATOR][1]
    priority: ClassVar[Priority] = Priority.FIND_COORDINATOR
    coordinator: ClassVar[Coordinator | None] = None

    @property
    def min_version(self) -> int:
        """v0 knows groups only."""
        return 0 if self.wanted.kind == GROUP else 1

    def build(self, version: int) -> list[bytes]:
        """The body for ``version``."""
        return encode_find_coordinator(version, self.wanted.key, self.wanted.kind)

    def parse(self, version: int, payload: bytes | memoryview) -> FindCoordinatorResponse:
        """The answer to ``build(version)``."""
        return decode_find_coordinator(version, payload)


@dataclass(frozen=True, slots=True)
class AddPartitionsCall:
    """Makes partitions part of the transaction, before anything is written to them (transaction version below 2)."""

    who: Identity
    partitions: tuple[TopicPartition, ...]

    api_key: ClassVar[int] = ApiKey.ADD_PARTITIONS_TO_TXN
    min_version: ClassVar[int] = 0
    max_version: ClassVar[int] = SUPPORTED[ApiKey.ADD_PARTITIONS_TO_TXN][1]
    priority: ClassVar[Priority] = Priority.ADD_PARTITIONS_OR_OFFSETS

    @property
    def coordinator(self) -> Coordinator:
        """The transaction's."""
        return self.who.coordinator

    def build(self, version: int) -> list[bytes]:
        """The body for ``version``."""
        return encode_add_partitions_to_txn(version, *self.who, self.partitions)

    def parse(self, version: int, payload: bytes | memoryview) -> AddPartitionsToTxnResponse:
        """The answer to ``build(version)``."""
        return decode_add_partitions_to_txn(version, payload)


@dataclass(frozen=True, slots=True)
class AddOffsetsCall:
    """Makes a group's offsets part of the transaction (transaction version below 2); their commit follows."""

    who: Identity
    commit: TxnOffsetCommitCall

    api_key: ClassVar[int] = ApiKey.ADD_OFFSETS_TO_TXN
    min_version: ClassVar[int] = 0
    max_version: ClassVar[int] = SUPPORTED[ApiKey.ADD_OFFSETS_TO_TXN][1]
    priority: ClassVar[Priority] = Priority.ADD_PARTITIONS_OR_OFFSETS

    @property
    def coordinator(self) -> Coordinator:
        """The transaction's."""
        return self.who.coordinator

    def build(self, version: int) -> list[bytes]:
        """The body for ``version``."""
        return encode_add_offsets_to_txn(version, *self.who, self.commit.group.group_id)

    def parse(self, version: int, payload: bytes | memoryview) -> AddOffsetsToTxnResponse:
        """The answer to ``build(version)``."""
        return decode_add_offsets_to_txn(version, payload)


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitCall:
    """Commits a group's offsets together with the transaction; goes to the group's coordinator."""

    who: Identity
    group: ConsumerGroupMetadata
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    transaction_version: int

    api_key: ClassVar[int] = ApiKey.TXN_OFFSET_COMMIT
    priority: ClassVar[Priority] = Priority.ADD_PARTITIONS_OR_OFFSETS

    @property
    def min_version(self) -> int:
        """v5 adds the group to the transaction by itself, v3 is the first that can name the member."""
        if self.transaction_version >= FIRST_OF_V2:
            return 5
        named = self.group.member_id or self.group.generation_id >= 0 or self.group.group_instance_id is not None
        return 3 if named else 0

    @property
    def max_version(self) -> int:
        """v5 is for transactions of version 2 only."""
        return SUPPORTED[ApiKey.TXN_OFFSET_COMMIT][1] if self.transaction_version >= FIRST_OF_V2 else 4

    @property
    def coordinator(self) -> Coordinator:
        """The group's."""
        return Coordinator(GROUP, self.group.group_id)

    def build(self, version: int) -> list[bytes]:
        """The body for ``version``."""
        who = self.who
        return encode_txn_offset_commit(
            version, who.transactional_id, self.group, who.producer_id, who.producer_epoch, self.offsets
        )

    def parse(self, version: int, payload: bytes | memoryview) -> TxnOffsetCommitResponse:
        """The answer to ``build(version)``."""
        return decode_txn_offset_commit(version, payload)


@dataclass(frozen=True, slots=True)
class EndTxnCall:
    """Commits or aborts."""

    who: Identity
    commit: bool
    transaction_version: int

    api_key: ClassVar[int] = ApiKey.END_TXN
    priority: ClassVar[Priority] = Priority.END_TXN

    @property
    def min_version(self) -> int:
        """From v5 on the answer has the next epoch."""
        return 5 if self.transaction_version >= FIRST_OF_V2 else 0

    @property
    def max_version(self) -> int:
        """v5 is for transactions of version 2 only."""
        return SUPPORTED[ApiKey.END_TXN][1] if self.transaction_version >= FIRST_OF_V2 else 4

    @property
    def coordinator(self) -> Coordinator:
        """The transaction's."""
        return self.who.coordinator

    def build(self, version: int) -> list[bytes]:
        """The body for ``version``."""
        return encode_end_txn(version, *self.who, self.commit)

    def parse(self, version: int, payload: bytes | memoryview) -> EndTxnResponse:
        """The answer to ``build(version)``."""
        return decode_end_txn(version, payload)


Call = InitProducerIdCall | FindCoordinatorCall | AddPartitionsCall | AddOffsetsCall | TxnOffsetCommitCall | EndTxnCall
