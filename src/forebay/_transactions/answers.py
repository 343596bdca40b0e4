"""Applies the coordinators' answers to a TransactionMachine.  Sender's thread only.

An answer has one of three effects: the request is done, it is sent again, or the transaction (or the producer) fails.
``errors`` says which error has which effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from forebay._protocol.find_coordinator import GROUP, FindCoordinatorResponse
from forebay._protocol.init_producer_id import InitProducerIdResponse
from forebay._protocol.versions import ApiKey, api_name
from forebay._runtime.backoff import SOON_MS
from forebay._transactions.dialog import FENCED, TransactionMachine
from forebay._transactions.errors import Action, action_for, is_expected
from forebay._transactions.pending import Pending
from forebay._transactions.requests import AddOffsetsCall, EndTxnCall
from forebay._transactions.state import State
from forebay.errors import (
    CommitFailedError,
    GroupAuthorizationError,
    InvalidPidMappingError,
    KafkaError,
    OperationNotAttemptedError,
    ProducerFencedError,
    ProtocolError,
    TopicAuthorizationError,
    UnknownProducerIdError,
    UnknownTopicOrPartitionError,
    error_for,
)
from forebay.errors._base import judged, reworded
from forebay.model import Node, TopicPartition


def apply_answer(dialog: TransactionMachine, pending: Pending, body: Any, now: float) -> None:
    """The coordinator answered."""
    _HANDLERS[pending.call.api_key](dialog, pending, body, now)


def apply_loss(dialog: TransactionMachine, pending: Pending, now: float) -> None:
    """The connection ended before the answer: the coordinator is looked up again, and the request is sent again."""
    pending.uncertain = True
    if pending.call.coordinator is not None:
        dialog.look_up(pending.call.coordinator)
    dialog.try_again(pending, now)


def apply_failure(dialog: TransactionMachine, pending: Pending, error: KafkaError) -> None:
    """The request could not be sent at all (no common version, no authentication): a fatal error."""
    error = judged(error, fatal=True)
    dialog.fatal(error)
    pending.result.settle(error)


def apply_error(dialog: TransactionMachine, pending: Pending, error: KafkaError, now: float) -> None:
    """The coordinator refused."""
    action = action_for(pending.call.api_key, error)
    if action in (Action.RETRY, Action.RETRY_SOON, Action.LOOK_UP):
        _try_again(dialog, pending, action, now)
        return
    if isinstance(pending.call, EndTxnCall) and dialog.state is State.ABORTING_TRANSACTION:
        action = _failed_abort(dialog, error, action)
        if action is Action.ABORTABLE_BUMP:
            dialog.end_of_transaction(pending.result)
            return
    fatal = action in (Action.FATAL, Action.FENCED) or (action is Action.ABORTABLE_BUMP and not dialog.can_bump)
    error = _in_our_words(dialog, pending, error, action)
    error = judged(error, fatal=fatal, requires_abort=not fatal and action is not Action.REFUSED)
    _ENDINGS[action](dialog, error)
    pending.result.settle(error)


def _try_again(dialog: TransactionMachine, pending: Pending, action: Action, now: float) -> None:
    if action is Action.LOOK_UP:
        dialog.look_up(pending.call.coordinator)
    if action is Action.RETRY:
        pending.uncertain = True
    soon = action is Action.RETRY_SOON and not dialog.members.started
    dialog.try_again(pending, now, SOON_MS if soon else float("inf"))


def _failed_abort(dialog: TransactionMachine, error: KafkaError, action: Action) -> Action:
    # The coordinator forgot this producer.  Nothing is left to abort, and the producer needs another epoch.
    if isinstance(error, (InvalidPidMappingError, UnknownProducerIdError)) and dialog.can_bump:
        dialog.forget()
        return Action.ABORTABLE_BUMP
    return action if action in (Action.FENCED, Action.FATAL) else Action.FATAL


def _in_our_words(dialog: TransactionMachine, pending: Pending, error: KafkaError, action: Action) -> KafkaError:
    call = pending.call
    said: KafkaError
    if action is Action.FENCED:
        said = ProducerFencedError(f"{FENCED} (transactional.id '{dialog.transactional_id}')")
    elif action is Action.COMMIT_FAILED:
        said = CommitFailedError(
            "Transaction offset Commit failed due to consumer group metadata mismatch: " + error.message
        )
    elif isinstance(error, GroupAuthorizationError):
        group = call.commit.group.group_id if isinstance(call, AddOffsetsCall) else _group_of(call)
        said = GroupAuthorizationError(f"Not authorized to access group: {group}")
    elif action is Action.FATAL and not is_expected(call.api_key, error):
        said = reworded(error, f"Unexpected error in the answer to {api_name(call.api_key)}: {error.message}")
    else:
        return error
    said.__cause__ = error
    return said


def _group_of(call: Any) -> str:
    return str(call.wanted.key if call.coordinator is None else call.coordinator.key)


_ENDINGS: Mapping[Action, Callable[[TransactionMachine, KafkaError], None]] = MappingProxyType(
    {
        Action.ABORTABLE: TransactionMachine.abortable,
        Action.COMMIT_FAILED: TransactionMachine.abortable,
        Action.ABORTABLE_BUMP: TransactionMachine.abortable_with_bump,
        Action.REFUSED: TransactionMachine.refused,
        Action.FATAL: TransactionMachine.fatal,
        Action.FENCED: TransactionMachine.fatal,
    }
)


def _found_coordinator(dialog: TransactionMachine, pending: Pending, body: FindCoordinatorResponse, now: float) -> None:
    wanted = pending.call.wanted
    error = error_for(body.error_code, body.error_message)
    if error is not None:
        if wanted.kind == GROUP and dialog.state is State.ABORTING_TRANSACTION and not error.retriable:
            return  # the offsets are not committed any more
        apply_error(dialog, pending, error, now)
        return
    dialog.coordinators[wanted] = Node(body.node_id, body.host, body.port)
    pending.result.settle()


def _initialized(dialog: TransactionMachine, pending: Pending, body: InitProducerIdResponse, now: float) -> None:
    error = error_for(body.error_code)
    if error is None and body.producer_id < 0:
        error = ProtocolError(f"InitProducerId was answered with the producer id {body.producer_id}")
    if error is not None:
        apply_error(dialog, pending, error, now)
        return
    dialog.manager.set_identity(body.producer_id, body.producer_epoch)
    dialog.ready(pending.result)


def _added_partitions(dialog: TransactionMachine, pending: Pending, body: Any, now: float) -> None:
    errors = _errors_of(pending.call.partitions, body.errors)
    if not errors:
        dialog.members.added(pending.call.partitions)
        pending.result.settle()
        return
    worst = _worst(pending, errors)
    if isinstance(worst, UnknownTopicOrPartitionError) and dialog.state is State.ABORTING_TRANSACTION:
        if dialog.can_bump:
            # A topic that is gone cannot be added, and delays the abort no longer than this.  If an earlier try
            # added it all the same, the next epoch ends that too.
            dialog.bump_required = True
            pending.result.settle(worst)
            return
    action = action_for(ApiKey.ADD_PARTITIONS_TO_TXN, worst)
    if action is Action.ABORTABLE:
        worst = _refused_partitions(errors, worst)
    apply_error(dialog, pending, worst, now)


def _refused_partitions(errors: Mapping[TopicPartition, KafkaError], worst: KafkaError) -> KafkaError:
    forbidden = sorted({where.topic for where, error in errors.items() if isinstance(error, TopicAuthorizationError)})
    if forbidden:
        return TopicAuthorizationError(f"Not authorized to access topics: [{', '.join(forbidden)}]", topics=forbidden)
    if worst.txn_requires_abort:
        return worst
    listed = ", ".join(f"{where}: {error.name} ({error.message})" for where, error in sorted(errors.items()))
    return reworded(worst, f"Could not add partitions to transaction due to errors: {listed}")


def _errors_of(asked: Any, codes: Mapping[TopicPartition, int]) -> dict[TopicPartition, KafkaError]:
    found: dict[TopicPartition, KafkaError] = {}
    for where in asked:
        if where not in codes:
            found[where] = KafkaError(f"{where} was left out of the answer")
            continue
        error = error_for(codes[where], partition=str(where))
        if error is not None:
            found[where] = error
    return found


def _worst(pending: Pending, errors: Mapping[TopicPartition, KafkaError]) -> KafkaError:
    """The error that decides; of errors with the same consequence the first.

    OPERATION_NOT_ATTEMPTED only says that another partition's error decides.
    """

    def weight(error: KafkaError) -> tuple[int, bool]:
        return action_for(pending.call.api_key, error).value, not isinstance(error, OperationNotAttemptedError)

    return max(errors.values(), key=weight)


def _added_offsets(dialog: TransactionMachine, pending: Pending, body: Any, now: float) -> None:
    error = error_for(body.error_code)
    if error is not None:
        apply_error(dialog, pending, error, now)
        return
    dialog.members.mark_started()
    dialog.enqueue_commit(pending.call.commit, pending.result)


def _committed_offsets(dialog: TransactionMachine, pending: Pending, body: Any, now: float) -> None:
    call = pending.call
    errors = _errors_of(call.offsets, body.errors)
    if not errors:
        pending.result.settle()
        return
    pending.call = replace(call, offsets={where: call.offsets[where] for where in errors})
    apply_error(dialog, pending, _worst(pending, errors), now)


def _ended(dialog: TransactionMachine, pending: Pending, body: Any, now: float) -> None:
    error = error_for(body.error_code)
    if error is not None:
        apply_error(dialog, pending, error, now)
        return
    if body.producer_id >= 0:
        dialog.manager.set_identity(body.producer_id, body.producer_epoch)
    dialog.end_of_transaction(pending.result)


_HANDLERS: Mapping[int, Callable[[TransactionMachine, Pending, Any, float], None]] = MappingProxyType(
    {
        ApiKey.FIND_COORDINATOR: _found_coordinator,
        ApiKey.INIT_PRODUCER_ID: _initialized,
        ApiKey.ADD_PARTITIONS_TO_TXN: _added_partitions,
        ApiKey.ADD_OFFSETS_TO_TXN: _added_offsets,
        ApiKey.TXN_OFFSET_COMMIT: _committed_offsets,
        ApiKey.END_TXN: _ended,
    }
)
