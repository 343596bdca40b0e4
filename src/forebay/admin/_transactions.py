"""What is asked of transaction coordinators: ids and epochs, ends of transactions, descriptions and lists.

Each function takes the session it asks through; arguments are checked by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forebay._protocol.describe_transactions import (
    DescribedTransaction,
    decode_describe_transactions,
    encode_describe_transactions,
)
from forebay._protocol.end_txn import decode_end_txn, encode_end_txn
from forebay._protocol.find_coordinator import TRANSACTION, decode_find_coordinator, encode_find_coordinator
from forebay._protocol.init_producer_id import decode_init_producer_id, encode_init_producer_id
from forebay._protocol.list_transactions import decode_list_transactions, encode_list_transactions
from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay.admin._session import AdminSession, Deadline, Question, raise_for
from forebay.errors import (
    ConcurrentTransactionsError,
    IllegalArgumentError,
    InvalidProducerEpochError,
    KafkaTimeoutError,
    ProducerFencedError,
    ProtocolError,
    RefreshRetriableError,
    TransactionalIdNotFoundError,
)
from forebay.model import Node, TransactionDescription, TransactionIdentity, TransactionListing

NEWEST_TRANSACTION_VERSION = 2
# From this one on EndTxn ends a transaction of version 2, and only such (KIP-890).
_END_TXN_OF_VERSION_2 = 5
_FEATURE = "transaction.version"
_KNOWN_COORDINATORS = 10_000
_ENDING = frozenset(("PrepareCommit", "PrepareAbort", "PrepareEpochFence"))


def transaction_version(session: AdminSession, deadline: Deadline) -> int:
    """The version transactions have in this cluster, as far as this package knows versions: 0, 1 or 2."""
    level = session.retry(deadline, lambda: session.feature_level(_FEATURE, deadline))
    return min(max(level, 0), NEWEST_TRANSACTION_VERSION)


def init_producer_id(
    session: AdminSession, transactional_id: str, timeout_ms: int, deadline: Deadline
) -> TransactionIdentity:
    """A producer id and a new epoch: an open transaction of that id is aborted, its producer fenced."""
    question = Question(
        ApiKey.INIT_PRODUCER_ID,
        lambda version: encode_init_producer_id(version, transactional_id, timeout_ms),
        decode_init_producer_id,
    )
    found = session.retry(deadline, lambda: _at_coordinator(session, transactional_id, question, deadline))
    version = transaction_version(session, deadline)
    return TransactionIdentity(transactional_id, found.producer_id, found.producer_epoch, version)


def end_transaction(session: AdminSession, who: TransactionIdentity, commit: bool, deadline: Deadline) -> None:
    """EndTxn in the form that the transaction's version asks for.

    Raises:
        ProducerFencedError: also for INVALID_PRODUCER_EPOCH, its name before EndTxn v2.
    """
    oldest, newest = SUPPORTED[ApiKey.END_TXN]
    question = Question(
        ApiKey.END_TXN,
        lambda version: encode_end_txn(version, who.transactional_id, who.producer_id, who.producer_epoch, commit),
        decode_end_txn,
        (_END_TXN_OF_VERSION_2, newest) if who.transaction_version >= 2 else (oldest, _END_TXN_OF_VERSION_2 - 1),
    )
    try:
        session.retry(deadline, lambda: _at_coordinator(session, who.transactional_id, question, deadline))
    except InvalidProducerEpochError as error:
        raise ProducerFencedError(**error.context) from error


def describe(
    session: AdminSession, transactional_ids: Sequence[str], deadline: Deadline, *, settled: bool = False
) -> dict[str, TransactionDescription | None]:
    """What the coordinators know of each id; None for one they do not know.

    Args:
        settled: an end that is under way is waited for.
    """
    found: dict[str, TransactionDescription | None] = {}

    def attempt() -> None:
        by_node: dict[Node, list[str]] = {}
        for transactional_id in transactional_ids:
            if transactional_id not in found:
                by_node.setdefault(_coordinator(session, transactional_id, deadline), []).append(transactional_id)
        for node, ids in by_node.items():
            _describe_at(session, node, ids, found, deadline)
        ending = [name for name, one in found.items() if settled and one is not None and one.state in _ENDING]
        for name in ending:
            del found[name]
        if ending:
            raise ConcurrentTransactionsError(transactional_id=ending[0])

    session.retry(deadline, attempt)
    return {transactional_id: found[transactional_id] for transactional_id in transactional_ids}


def _describe_at(
    session: AdminSession,
    node: Node,
    ids: list[str],
    found: dict[str, TransactionDescription | None],
    deadline: Deadline,
) -> None:
    question = Question(
        ApiKey.DESCRIBE_TRANSACTIONS,
        lambda version: encode_describe_transactions(version, ids),
        decode_describe_transactions,
    )
    try:
        answer = session.ask(node, question, deadline)
        described = {one.transactional_id: one for one in answer.transactions}
        for transactional_id in ids:
            if transactional_id not in described:
                raise ProtocolError(f"DescribeTransactions: node {node.id} did not answer for {transactional_id!r}")
            found[transactional_id] = _description(described[transactional_id], node)
    except (RefreshRetriableError, KafkaTimeoutError):
        for transactional_id in ids:
            session.coordinators.pop(transactional_id, None)
        raise


def _description(one: DescribedTransaction, node: Node) -> TransactionDescription | None:
    if one.error_code == TransactionalIdNotFoundError.code:
        return None
    raise_for(one.error_code, transactional_id=one.transactional_id, node=node.id)
    return TransactionDescription(
        one.state,
        one.producer_id,
        one.producer_epoch,
        one.timeout_ms,
        one.start_time_ms,
        one.partitions,
        node.id,
    )


def list_all(
    session: AdminSession, states: Sequence[str], producer_ids: Sequence[int], deadline: Deadline
) -> list[TransactionListing]:
    """The transactional ids of every coordinator, sorted; none is left out because its broker is away.

    Whatever fails in a way that passes, all brokers are asked anew: what one of them kept may have moved to one that
    has answered before.

    Raises:
        IllegalArgumentError: a state that a broker has never heard of: it would filter nothing out.
    """
    question = Question(
        ApiKey.LIST_TRANSACTIONS,
        lambda version: encode_list_transactions(version, states, producer_ids),
        decode_list_transactions,
    )

    def attempt() -> dict[str, TransactionListing]:
        found: dict[str, TransactionListing] = {}
        nodes = session.all_nodes(deadline)
        for node, answer in zip(nodes, session.ask_all(nodes, question, deadline), strict=True):
            raise_for(answer.error_code, node=node.id)
            if answer.unknown_states:
                raise IllegalArgumentError(f"Unknown transaction states: {', '.join(answer.unknown_states)}")
            found.update((one.transactional_id, TransactionListing(*one)) for one in answer.transactions)
        return found

    found = session.retry(deadline, attempt)
    return [found[transactional_id] for transactional_id in sorted(found)]


def _at_coordinator(session: AdminSession, transactional_id: str, question: Question, deadline: Deadline) -> Any:
    """The answer of the id's coordinator; its error is raised.

    The coordinator is forgotten if it may be another one by now; also if it does not answer, for a frozen one takes
    connections and would be waited for again.
    """
    node = _coordinator(session, transactional_id, deadline)
    try:
        answer = session.ask(node, question, deadline)
        raise_for(answer.error_code, transactional_id=transactional_id, node=node.id)
    except (RefreshRetriableError, KafkaTimeoutError):
        session.coordinators.pop(transactional_id, None)
        raise
    return answer


def _coordinator(session: AdminSession, transactional_id: str, deadline: Deadline) -> Node:
    known = session.coordinators.get(transactional_id)
    if known is not None:
        return known
    question = Question(
        ApiKey.FIND_COORDINATOR,
        lambda version: encode_find_coordinator(version, transactional_id, TRANSACTION),
        decode_find_coordinator,
        # v0 knows groups only.
        (1, SUPPORTED[ApiKey.FIND_COORDINATOR][1]),
    )
    answer = session.ask(session.any_node(deadline), question, deadline)
    raise_for(answer.error_code, answer.error_message, transactional_id=transactional_id)
    if len(session.coordinators) >= _KNOWN_COORDINATORS:
        # Ids of tasks are used once or twice: the oldest is the one to forget.
        session.coordinators.pop(next(iter(session.coordinators)))
    node = session.coordinators[transactional_id] = Node(answer.node_id, answer.host, answer.port)
    return node
