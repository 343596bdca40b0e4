"""AdminClient: what a producer's owner asks the cluster for besides producing.

Topics, producer ids, ends of transactions that another process began, and reading back the last records of a
partition: all that a commit coordinator such as the Spark sink's driver needs.  It has connections of its own, no
thread that works between calls, and does its waiting in the caller's thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from forebay._assembly import Surroundings, system_surroundings
from forebay._delivery.sender_lock import Hold
from forebay._runtime.times import seconds
from forebay._sender import lifecycle
from forebay.admin import _topics as topics
from forebay.admin import _transactions as transactions
from forebay.admin._arguments import (
    MAX_INT16,
    MAX_INT32,
    MAX_INT64,
    require_configs,
    require_identity,
    require_isolation,
    require_number,
    require_place,
    require_text,
    require_topic,
)
from forebay.admin._assembly import assemble_admin
from forebay.admin._session import AdminSession, Deadline
from forebay.admin._tail import PartitionReader
from forebay.config import ProducerConfig
from forebay.config._door import door
from forebay.errors import IllegalArgumentError, IllegalStateError, TransactionalIdNotFoundError
from forebay.model import (
    ClusterDescription,
    TailRecord,
    TopicPartition,
    TransactionDescription,
    TransactionIdentity,
    TransactionListing,
)

if TYPE_CHECKING:
    from forebay._runtime.times import Seconds
    from forebay.config._typed import ProducerOptions

__all__ = ["AdminClient"]


def __dir__() -> list[str]:
    return sorted(__all__)


class AdminClient:
    """A small synchronous client for the owner of producers.

    Every call takes ``timeout`` in seconds (None: ``max.block.ms``), repeats what failed in a way that passes until
    then, and raises TimeoutError with the last error as its cause.  Calls of several threads take turns.  After a
    fork the child's copy makes connections of its own.

    Args:
        config: a producer's options by Kafka's names; those that are about records are not used.
        options: the same as keywords (``bootstrap_servers=...``).

    Raises:
        ConfigError: an unknown option, or a value that cannot be.
    """

    @door()
    def __init__(self, config: Mapping[str, Any] | None = None, /, **options: Unpack[ProducerOptions]) -> None:
        self._start(ProducerConfig(config, **options), system_surroundings())

    @classmethod
    def _with(cls, surroundings: Surroundings, config: Mapping[str, Any] | None = None, /, **options: Any) -> Self:
        """An AdminClient with another clock or network than the machine's, for tests."""
        admin = cls.__new__(cls)
        admin._start(ProducerConfig(config, **options), surroundings)
        return admin

    def _start(self, config: ProducerConfig, surroundings: Surroundings) -> None:
        self._config = config
        self._surroundings = surroundings
        # Held for the length of a call; guards what follows.  Re-entrant, because a signal handler or a finaliser may
        # come in the middle of a call, on the thread that makes it, and waiting for that would be for ever.
        self._lock = threading.RLock()
        self._calling = False
        self._session: AdminSession | None = None
        self._closed = False
        lifecycle.watch_forks(self)

    # Transactions

    def transaction_version(self, *, timeout: Seconds | None = None) -> int:
        """The version that transactions have in this cluster: 0, 1, or 2 (KIP-890)."""
        with self._call("transaction_version", timeout) as (session, deadline):
            return transactions.transaction_version(session, deadline)

    def init_producer_id(
        self, transactional_id: str, *, transaction_timeout_ms: int = 60_000, timeout: Seconds | None = None
    ) -> TransactionIdentity:
        """A producer id and a new epoch for ``transactional_id``.

        A transaction that is open under this id is aborted, and whoever has it is fenced.

        Args:
            transaction_timeout_ms: after which the coordinator aborts a transaction (``transaction.timeout.ms``).

        Raises:
            InvalidTxnTimeoutError: over the broker's ``transaction.max.timeout.ms``.
        """
        require_text("transactional_id", transactional_id)
        require_number("transaction_timeout_ms", transaction_timeout_ms, 1, MAX_INT32)
        with self._call("init_producer_id", timeout) as (session, deadline):
            return transactions.init_producer_id(session, transactional_id, transaction_timeout_ms, deadline)

    def end_transaction(self, identity: TransactionIdentity, *, commit: bool, timeout: Seconds | None = None) -> None:
        """Commits or aborts a transaction that some producer, perhaps in another process, has left open.

        Repeating it with the same arguments does no harm: a lost answer is asked for again, and so may a caller who
        was restarted.

        Args:
            identity: what ``detach_transaction`` gave, or a TransactionIdentity of what ``describe_transaction`` found.
            commit: False aborts.

        Raises:
            InvalidTxnStateError: it was ended the other way before, was never begun, or (version 2) timed out.
            ProducerFencedError: a newer producer has the id, or (below version 2) the transaction timed out.
            InvalidPidMappingError: the coordinator knows no such id, or not with this producer id.
            UnsupportedVersionError: version 2 on a broker that does not have it.
        """
        require_identity(identity)
        if not isinstance(commit, bool):
            raise IllegalArgumentError(f"commit must be True or False, got {commit!r}")
        with self._call("end_transaction", timeout) as (session, deadline):
            transactions.end_transaction(session, identity, commit, deadline)

    def describe_transaction(self, transactional_id: str, *, timeout: Seconds | None = None) -> TransactionDescription:
        """What the coordinator knows of one id.

        Raises:
            TransactionalIdNotFoundError: nothing.
        """
        found = self.describe_transactions([transactional_id], timeout=timeout)[transactional_id]
        if found is None:
            raise TransactionalIdNotFoundError(transactional_id=transactional_id)
        return found

    def describe_transactions(
        self, transactional_ids: Iterable[str], *, settled: bool = False, timeout: Seconds | None = None
    ) -> dict[str, TransactionDescription | None]:
        """What the coordinators know of many ids, in the order given; None for an id they do not know.

        Args:
            settled: waits for ends that are under way, so that no state is ``PrepareCommit`` or ``PrepareAbort``.
        """
        if isinstance(transactional_ids, str):
            raise IllegalArgumentError(f"transactional_ids must be several, got the str {transactional_ids!r}")
        ids = list(dict.fromkeys(transactional_ids))
        for transactional_id in ids:
            require_text("transactional_id", transactional_id)
        with self._call("describe_transactions", timeout) as (session, deadline):
            return transactions.describe(session, ids, deadline, settled=settled)

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        prefix: str | None = None,
        timeout: Seconds | None = None,
    ) -> list[TransactionListing]:
        """The transactional ids that any coordinator of the cluster knows, sorted; all brokers are asked.

        Args:
            states: only these, such as ``Ongoing``.
            producer_ids: only of these.
            prefix: only ids that begin so.

        Raises:
            IllegalArgumentError: a state that the brokers have never heard of.
            TimeoutError: a broker did not answer: a list without its share is not given.
        """
        if isinstance(states, str):
            raise IllegalArgumentError(f"states must be several, got the str {states!r}")
        wanted, numbers = list(states), list(producer_ids)
        for state in wanted:
            require_text("state", state)
        for number in numbers:
            require_number("producer_id", number, 0, MAX_INT64)
        with self._call("list_transactions", timeout) as (session, deadline):
            found = transactions.list_all(session, wanted, numbers, deadline)
        return [one for one in found if prefix is None or one.transactional_id.startswith(prefix)]

    # Topics and what is in them

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int = -1,
        configs: Mapping[str, Any] | None = None,
        timeout: Seconds | None = None,
    ) -> bool:
        """Makes a topic.

        Args:
            partitions: or -1 for the broker's default, as ``replication_factor``.
            configs: of the topic, by Kafka's names; None as a value for the broker's default.

        Returns:
            True if it was made, False if there is one of that name; also False if a lost answer made us ask twice.

        Raises:
            InvalidTopicError: Kafka forbids the name.
            KafkaError: the controller's, such as PolicyViolationError.
        """
        require_topic(name)
        require_number("partitions", partitions, 1, MAX_INT32, default=-1)
        require_number("replication_factor", replication_factor, 1, MAX_INT16, default=-1)
        given = require_configs(configs)
        with self._call("create_topic", timeout) as (session, deadline):
            return topics.create_topic(session, name, partitions, replication_factor, configs=given, deadline=deadline)

    def delete_topic(self, name: str, *, timeout: Seconds | None = None) -> bool:
        """Deletes a topic and all its records.

        Returns:
            True if it was deleted, False if there is none of that name; also False if a lost answer made us ask twice.

        Raises:
            InvalidTopicError: Kafka forbids the name.
            TopicAuthorizationError: Delete is not allowed.
            KafkaError: the controller's, such as TopicDeletionDisabledError.
        """
        require_topic(name)
        with self._call("delete_topic", timeout) as (session, deadline):
            return topics.delete_topic(session, name, deadline)

    def topic_configs(self, name: str, keys: Iterable[str], *, timeout: Seconds | None = None) -> dict[str, str | None]:
        """Some keys of a topic's configuration, by Kafka's names; one that the broker does not have is left out.

        Raises:
            TopicAuthorizationError: DescribeConfigs is not allowed.
            UnsupportedVersionError: the broker cannot tell.
        """
        require_topic(name)
        if isinstance(keys, str):
            raise IllegalArgumentError(f"keys must be several, got the str {keys!r}")
        wanted = list(keys)
        for key in wanted:
            require_text("key", key)
        with self._call("topic_configs", timeout) as (session, deadline):
            return topics.topic_configs(session, name, wanted, deadline)

    def describe_cluster(self, topic: str | None = None, *, timeout: Seconds | None = None) -> ClusterDescription:
        """The brokers, and one topic or (None) all topics, as any broker has them.  No topic is made.

        Returns:
            If there is no such topic, it has an ``error`` and no partitions.  A topic that is named tells its
            ``operations``.
        """
        if topic is not None:
            require_text("topic", topic)
        with self._call("describe_cluster", timeout) as (session, deadline):
            return topics.described(topics.describe_topics(session, topic, deadline, create=False))

    def read_tail(
        self,
        topic: str,
        partition: int = 0,
        *,
        max_records: int = 1,
        isolation: str = "read_committed",
        timeout: Seconds | None = None,
    ) -> list[TailRecord]:
        """The last records of a partition, oldest first; fewer than ``max_records`` if it has no more.

        Args:
            isolation: ``read_committed`` leaves out what was aborted, and everything from the first open transaction
                on; ``read_uncommitted`` does not.

        Raises:
            TimeoutError: also for a topic that nobody has made yet (its error is the cause).
        """
        where = require_place(topic, partition)
        require_number("max_records", max_records, 1, MAX_INT32)
        level = require_isolation(isolation)
        with self._call("read_tail", timeout) as (session, deadline):
            return PartitionReader(session, where, level).tail(max_records, deadline)

    def read_from(
        self,
        topic: str,
        partition: int = 0,
        *,
        offset: int = 0,
        isolation: str = "read_committed",
        timeout: Seconds | None = None,
    ) -> Iterator[TailRecord]:
        """The records from ``offset`` on, up to the end as it was at the first of them.

        Args:
            offset: if it is not kept any more, reading begins at the first that is.
            isolation: as in ``read_tail``.
            timeout: of each request for more.
        """
        where = require_place(topic, partition)
        require_number("offset", offset, 0, MAX_INT64)
        return self._read(where, offset, require_isolation(isolation), timeout)

    def _read(self, where: TopicPartition, offset: int, level: int, timeout: Seconds | None) -> Iterator[TailRecord]:
        with self._call("read_from", timeout) as (session, deadline):
            reader = PartitionReader(session, where, level)
            end = reader.end(deadline)
        while offset < end:
            with self._call("read_from", timeout) as (session, deadline):
                if reader.session is not session:
                    # After an interrupt or a fork.
                    reader = PartitionReader(session, where, level)
                records, offset = reader.step(offset, end, deadline)
            yield from records

    # Life

    def close(self) -> None:
        """Ends the connections; repeating it does no harm.

        Waits for a call that is under way in another thread.  One of this thread (a signal handler interrupted it) goes
        on, and ends the connections when it is done.
        """
        with self._lock:
            self._closed = True
            if not self._calling:
                self._drop_session()

    def __enter__(self) -> Self:
        if self._closed:
            raise IllegalStateError("This AdminClient was closed")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # Nobody else can be in a call: that would hold a reference.
        if getattr(self, "_session", None) is not None:
            self._drop_session()

    @contextlib.contextmanager
    def _call(self, what: str, timeout: Seconds | None) -> Iterator[tuple[AdminSession, Deadline]]:
        """The session for one call, and its deadline; the time spent waiting for another thread's call counts."""
        timeout_ms = self._config["max.block.ms"] if timeout is None else seconds(timeout) * 1000
        begun = self._surroundings.clock.now()
        # It keeps the lock, for a fork in the middle of a call gives the child's copy another one.
        with Hold(self._lock, timeout_ms / 1000) as held:
            if not held:
                raise Deadline(begun, what, timeout_ms).error(IllegalStateError("Another thread's call is under way"))
            if self._calling:
                raise IllegalStateError(f"{what}: this thread is in the middle of another call of this AdminClient")
            if self._closed:
                raise IllegalStateError(f"{what}: this AdminClient was closed")
            self._calling = True
            try:
                if self._session is None:
                    self._session = assemble_admin(self._config, self._surroundings)
                yield from self._with_session(self._session, Deadline(begun + timeout_ms, what, timeout_ms))
            finally:
                self._calling = False

    def _with_session(self, session: AdminSession, deadline: Deadline) -> Iterator[tuple[AdminSession, Deadline]]:
        try:
            yield session, deadline
        except Exception:
            raise
        except BaseException:
            # Ctrl-C may have come between any two lines.
            session.torn = True
            raise
        finally:
            if session.torn or self._closed:
                self._drop_session()

    def _drop_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _after_fork_in_child(self) -> None:
        """The child's copy: without the parent's connections, and without a lock that a parent's thread holds."""
        session, self._session = self._session, None
        self._lock = threading.RLock()
        self._calling = False
        if session is not None:
            session.close_after_fork()

    def __reduce__(self) -> Any:
        raise TypeError("an AdminClient cannot be pickled: it has sockets; pickle its configuration and make one there")

    def __repr__(self) -> str:
        return f"<AdminClient of {','.join(self._config['bootstrap.servers'])}{': closed' if self._closed else ''}>"
