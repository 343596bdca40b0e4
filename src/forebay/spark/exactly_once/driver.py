"""The driver's side: what happens before the tasks of a write start, and after they ended.

``begin`` runs in Spark's planner process and ``commit`` or ``abort`` in another one, so nothing is shared but the
claim, which travels by the tasks.  Whatever fails here leaves a state from which the next ``begin`` goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from forebay.errors import InvalidPidMappingError, InvalidProducerEpochError, KafkaError, ProducerFencedError
from forebay.model import TransactionDescription, TransactionIdentity
from forebay.spark.exactly_once import protocol
from forebay.spark.exactly_once.control_topic import ControlTopic
from forebay.spark.exactly_once.protocol import Claim, Decision, Fate, State, TaskOutcome

logger: logging.Logger = logging.getLogger("forebay.spark")

Found = Mapping[str, TransactionDescription | None]


def begin(topic: ControlTopic, prefix: str, *, abandon: str | None = None, rewrite: str | None = None) -> Claim:
    """Takes over from whatever ran before: ends what it had decided, and aborts what it had not.

    Args:
        abandon: the write whose unfinished rows stay as they are.
        rewrite: the write whose unknown rows are written once more.

    Raises:
        UnknownOutcomeError: what became of decided rows cannot be told.
        TakenOverError: a newer driver has taken the prefix meanwhile.
        KafkaError: Kafka did not answer, or does not allow it.
    """
    driver = topic.claim()
    state = topic.read()
    decision = state.decision
    if decision is not None and not decision.done:
        if not _holds(topic, driver):
            # The decision may be the newer driver's, which ends it itself.
            raise protocol.taken_over(prefix)
        ended, found = _end(topic, decision)
        settled = protocol.answer(ended, abandon=abandon, rewrite=rewrite)
        state = state._replace(decision=settled)
        if settled != decision:
            driver = _write(topic, driver, state, prefix)
        if settled.with_fate(Fate.OPEN):
            raise protocol.unknown(settled, found)
    if not _sweep(topic, prefix, driver, state.decision):
        raise protocol.taken_over(prefix)
    return protocol.claim_of(driver, state)


def _end(topic: ControlTopic, decision: Decision) -> tuple[Decision, Found]:
    """Commits what is open of a decision; open is then what nobody can tell the fate of.

    Returns:
        The decision, and what the coordinators say of the transactions whose commit was refused.
    """
    opened = decision.with_fate(Fate.OPEN)
    refused = [task.identity for task in opened if not topic.end(task.identity, True)]
    found = topic.describe([one.transactional_id for one in refused], settled=True) if refused else {}
    fates = {task.partition: Fate.COMMITTED for task in opened if task.identity not in refused}
    for task in opened:
        if task.identity in refused and protocol.is_aborted(task.identity, found[task.identity.transactional_id]):
            fates[task.partition] = Fate.LOST
    return protocol.settle(decision, fates), found


def commit(topic: ControlTopic, prefix: str, outcomes: Sequence[TaskOutcome], now_ms: float) -> None:
    """Decides on a write whose tasks have all ended, and makes its rows readable.

    Args:
        outcomes: one for each task.
        now_ms: Unix time.

    Raises:
        NonDeterministicReplayError: rows that were decided on are lost, and the repetition has others.
        LateTransactionError: a task's transaction is not open any more, or not for long enough.
        TakenOverError: a newer driver has taken the prefix.
        UnfinishedWriteError: decided, but not all of it could be committed; a repetition finishes it.
        UnknownOutcomeError: decided, and what became of it cannot be told.
    """
    claim = protocol.agreed(outcomes).claim
    # Otherwise the claim already has the newest state; a takeover would fence this driver.
    state = topic.read() if claim.unfinished is not None else State(None, claim.versions)
    decided = protocol.judge(state, outcomes)
    if decided is None or decided.decision is None:
        return
    opened = decided.decision.with_fate(Fate.OPEN)
    found = topic.describe([protocol.driver_id(prefix), *(task.identity.transactional_id for task in opened)])
    if not protocol.is_claimed(claim.driver, found[protocol.driver_id(prefix)]):
        raise protocol.taken_over(prefix)
    decision = protocol.alive(decided.decision, found, now_ms)
    driver = _write(topic, claim.driver, decided._replace(decision=decision), prefix)
    settled, found = _end(topic, decision)
    if settled != decision:
        driver = _write(topic, driver, decided._replace(decision=settled), prefix)
    if settled.with_fate(Fate.OPEN):
        raise protocol.unknown(settled, found)
    try:
        _sweep(topic, prefix, driver, settled)
    except KafkaError as error:
        # The write is committed: to call it failed would have it written again where it has no id.
        logger.warning("What else is open under %s holds readers up to its timeout: %s", prefix, error)
    lost = settled.with_fate(Fate.LOST)
    if lost:
        raise protocol.unfinished(settled.write, [task.partition for task in lost])


def _write(topic: ControlTopic, driver: TransactionIdentity, state: State, prefix: str) -> TransactionIdentity:
    try:
        return topic.write(driver, state)
    except (ProducerFencedError, InvalidProducerEpochError) as error:
        raise protocol.taken_over(prefix) from error
    except InvalidPidMappingError as error:
        raise protocol.forgotten(prefix) from error


def abort(topic: ControlTopic, prefix: str, outcomes: Sequence[TaskOutcome], claim: Claim | None) -> str:
    """Aborts what no decision has; says in one sentence what was done.

    Args:
        outcomes: of the tasks that ended, perhaps none.
        claim: None if neither the writer nor a task brought it here; then only what the tasks report is aborted.
    """
    doomed = {outcome.task.identity for outcome in outcomes if outcome.task is not None}
    opened = [] if claim is None else _open(topic, prefix, claim.driver)
    me = protocol.driver_id(prefix)
    found = topic.describe([me], settled=True)[me]
    if found is None:
        return "nothing was begun"
    if found.state == protocol.ONGOING:
        return "its decision is on its way: the next write finds out and goes on from there"
    decision = topic.read().decision
    fences = claim is not None and protocol.is_claimed(claim.driver, found)
    aborted = _abort(topic, {*doomed, *opened} if fences else doomed, decision, fences=fences)
    left = len(doomed & {task.identity for task in decision.tasks} if decision else ())
    if left:
        return f"it is decided: {left} transactions stay, the next write commits what is open of them"
    return f"{aborted} transactions were aborted, no row of it will be read"


def _sweep(topic: ControlTopic, prefix: str, driver: TransactionIdentity, decision: Decision | None) -> bool:
    """Aborts what is open under the prefix and no decision has; False if a newer driver has taken over.

    A claim comes before its tasks.  So what was open before this driver looked whether it still has the claim is of
    this claim or of an older one.
    """
    opened = _open(topic, prefix, driver)
    if opened and not _holds(topic, driver):
        return False
    _abort(topic, opened, decision, fences=True)
    return True


def _holds(topic: ControlTopic, driver: TransactionIdentity) -> bool:
    name = driver.transactional_id
    return protocol.is_claimed(driver, topic.describe([name])[name])


def _open(topic: ControlTopic, prefix: str, driver: TransactionIdentity) -> list[TransactionIdentity]:
    names = protocol.ids_of(prefix, topic.ongoing(f"{prefix}-"))
    return [
        TransactionIdentity(name, one.producer_id, one.producer_epoch, driver.transaction_version)
        for name, one in (topic.describe(names) if names else {}).items()
        if one is not None and one.state == protocol.ONGOING
    ]


def _abort(
    topic: ControlTopic, doomed: Iterable[TransactionIdentity], decision: Decision | None, *, fences: bool
) -> int:
    """Aborts all but what is decided; how many.

    Args:
        fences: a newer driver has other ids or ends by identity, so these may get another epoch.
    """
    decided = {task.identity[:3] for task in decision.tasks} if decision else set()
    chosen = [one for one in doomed if one[:3] not in decided]
    for one in chosen:
        logger.info("aborting %s, which no decision has", one.transactional_id)
        if fences and one.transaction_version < protocol.FENCED_BY_ENDS:
            # An end would leave the epoch as it is, and a task that goes on would open the transaction again.
            topic.fence(one.transactional_id)
        else:
            topic.end(one, False)
    return len(chosen)
