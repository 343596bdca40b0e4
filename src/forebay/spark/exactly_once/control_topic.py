"""What the driver's side asks of Kafka: its identity, the control topic's last record, and ends of transactions.

Used in Spark's planner and commit processes on the driver's host.  Both are used again for later writes, so the
connections are kept; a forked child makes its own.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from forebay.errors import (
    InvalidPidMappingError,
    InvalidTxnStateError,
    ProducerFencedError,
)
from forebay.model import TransactionDescription, TransactionIdentity
from forebay.spark import kept_topic, secrets
from forebay.spark.exactly_once import protocol
from forebay.spark.exactly_once.protocol import State
from forebay.spark.exactly_once.settings import Settings

if TYPE_CHECKING:
    from forebay.admin import AdminClient
    from forebay.producer import KafkaProducer

logger: logging.Logger = logging.getLogger("forebay.spark")

DRIVERS_TIMEOUT_MS = 60_000
"""``transaction.timeout.ms`` of the decision's transaction, which lasts as long as writing one record."""

SHAPE = {
    "acks": "all",
    "enable.idempotence": "true",
    "compression.type": "gzip",
    "linger.ms": "0",
    "batch.size": "16384",
    "buffer.memory": "33554432",
    "max.request.size": "16777216",
    "transaction.timeout.ms": str(DRIVERS_TIMEOUT_MS),
}
"""Options of the producer that writes decisions; the others are the user's."""

TOPIC_CONFIG = {"cleanup.policy": "compact", "max.message.bytes": "8388608"}
"""Of a control topic that is made here: a decision has a line a task."""


class ControlTopic(Protocol):
    """What the protocol needs of the world."""

    def claim(self) -> TransactionIdentity:
        """Takes the driver's transactional.id: an older driver cannot write any more, its open decision is gone."""
        ...

    def read(self) -> State:
        """The last committed record."""
        ...

    def write(self, driver: TransactionIdentity, state: State) -> TransactionIdentity:
        """Writes a record in a transaction; gives the identity for the next one.

        Raises:
            ProducerFencedError: a newer driver has claimed.
        """
        ...

    def end(self, identity: TransactionIdentity, commit: bool) -> bool:
        """Commits or aborts a task's transaction; False if the coordinator refuses, which does not say why."""
        ...

    def describe(self, ids: Iterable[str], *, settled: bool = False) -> Mapping[str, TransactionDescription | None]:
        """What the coordinators know of each id; with ``settled`` once no end of it is under way."""
        ...

    def ongoing(self, prefix: str) -> list[str]:
        """The transactional.ids with an open transaction that begin so."""
        ...

    def fence(self, transactional_id: str) -> None:
        """Aborts what is open under the id, and gives it another epoch."""
        ...


class KafkaControlTopic:
    """A ``ControlTopic`` in Kafka.

    Args:
        admin: asks the coordinators, and reads the topic.
        open_producer: makes the transactional producer that writes decisions; it is kept until one fails.
        settings: of the write.
    """

    def __init__(self, admin: AdminClient, open_producer: Callable[[], KafkaProducer], settings: Settings) -> None:
        self._prefix = settings.prefix
        self._topic = settings.control_topic
        self._admin = admin
        self._open_producer = open_producer
        self._producer: KafkaProducer | None = None
        self._there = False
        self._claims = 0

    def claim(self) -> TransactionIdentity:
        """InitProducerId of the driver's transactional.id."""
        driver = protocol.driver_id(self._prefix)
        claimed = self._admin.init_producer_id(driver, transaction_timeout_ms=DRIVERS_TIMEOUT_MS)
        self._claims = claimed.producer_epoch
        return claimed

    def read(self) -> State:
        """The last record, read_committed; the topic is made if it is not there."""
        if not self._there:
            # Read before it is known to be there, a topic costs max.block.ms.
            made = self._admin.create_topic(self._topic, configs=TOPIC_CONFIG)
            if not made:
                kept_topic.check(self._admin, self._topic)
            elif self._claims:
                logger.warning(kept_topic.ANEW, self._topic, self._prefix)
            self._there = True
        last = self._admin.read_tail(self._topic, 0, max_records=1, isolation="read_committed")
        return kept_topic.of_prefix(self._topic, self._prefix, last[-1]) if last else State()

    def write(self, driver: TransactionIdentity, state: State) -> TransactionIdentity:
        """One record in a transaction of the identity that was given."""
        producer = self._producer_for(driver.transactional_id)
        try:
            producer.init_transactions(identity=driver)
            producer.begin_transaction()
            sent = producer.send(self._topic, protocol.encode(state), self._prefix.encode(), partition=0)
            producer.flush()
            sent.result()
            producer.commit_transaction()
            return driver._replace(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)
        except BaseException:
            # Its transaction may be open, or half ended: the next driver's claim finds out.
            self._producer = None
            producer.close(0)
            raise

    def _producer_for(self, transactional_id: str) -> KafkaProducer:
        if self._producer is None:
            self._producer = self._open_producer()
        else:
            self._producer.set_transactional_id(transactional_id)
        return self._producer

    def end(self, identity: TransactionIdentity, commit: bool) -> bool:
        """EndTxn in the name of a task's producer."""
        try:
            self._admin.end_transaction(identity, commit=commit)
        except (InvalidTxnStateError, ProducerFencedError, InvalidPidMappingError):
            return False
        return True

    def describe(self, ids: Iterable[str], *, settled: bool = False) -> Mapping[str, TransactionDescription | None]:
        """DescribeTransactions."""
        return self._admin.describe_transactions(ids, settled=settled)

    def ongoing(self, prefix: str) -> list[str]:
        """ListTransactions of every broker."""
        found = self._admin.list_transactions(states=[protocol.ONGOING], prefix=prefix)
        return [one.transactional_id for one in found]

    def fence(self, transactional_id: str) -> None:
        """InitProducerId, which aborts."""
        self._admin.init_producer_id(transactional_id, transaction_timeout_ms=DRIVERS_TIMEOUT_MS)

    def close(self) -> None:
        """Ends the connections."""
        self._admin.close()
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(0)


_kept: dict[tuple[int, tuple[tuple[str, str], ...], str, str], KafkaControlTopic] = {}
"""Of this process, by its id: what a forked child inherits is not used."""


def connect(producer: tuple[tuple[str, str], ...], settings: Settings) -> KafkaControlTopic:
    """The control topic of a sink, on connections that are kept for the next write."""
    key = (os.getpid(), producer, settings.prefix, settings.control_topic)
    topic = _kept.pop(key, None)
    if topic is None:
        for other in [other for other in _kept if other[0] == key[0]]:
            _kept.pop(other).close()
        topic = open_topic(secrets.in_task(dict(producer)), settings)
    _kept[key] = topic
    return topic


def open_topic(producer: Mapping[str, str], settings: Settings) -> KafkaControlTopic:
    """A control topic on connections of its own."""
    # Spark imports this package in many processes, most of which need neither.
    from forebay.admin import AdminClient
    from forebay.producer import KafkaProducer

    options = {**producer, **SHAPE, "transactional.id": protocol.driver_id(settings.prefix)}
    return KafkaControlTopic(AdminClient(producer), lambda: KafkaProducer(options), settings)
