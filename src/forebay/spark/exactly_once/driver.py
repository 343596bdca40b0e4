"""The driver's side: what happens before the tasks of a write start, and after they ended.

``begin`` runs in Spark's planner process and ``commit`` or ``abort`` in another one, so nothing is shared but the
claim, which travels by the tasks.  Whatever fails here leaves a state from which the next ``begin`` goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from forebay.errors import KafkaError, ProducerFencedError
from forebay.model import TransactionIdentity
from forebay.spark.exactly_once import protocol
from forebay.spark.exactly_once.control_topic import ControlTopic
from forebay.spark.exactly_once.protocol import Claim, Decision, Fate, Outcome, State

logger: logging.Logger = logging.getLogger("forebay.spark")


class TakenOverError(KafkaError):
    """Another driver with the same transactionalIdPrefix has begun a write since this one did."""


def begin(topic: ControlTopic, prefix: str, *, abandon: str | None = None) -> Claim:
    """Takes over from whatever ran before: ends what it had decided, and aborts what it had not.

    Raises:
        KafkaError: Kafka did not answer, or does not allow it.
    """
    driver = topic.claim()
    state = topic.read()
    driver, state = _finish(topic, driver, state, abandon)
    # What is open now is of no decision: of tasks of a dead run, or of attempts that were not chosen.
    for lingering in protocol.ids_of(prefix, topic.ongoing(f"{prefix}-")):
        logger.info("aborting %s, which an earlier run has left open", lingering)
        topic.fence(lingering)
    return protocol.claim_of(driver, state)


def _finish(
    topic: ControlTopic, driver: TransactionIdentity, state: State, abandoned: str | None
) -> tuple[TransactionIdentity, State]:
    decision = state.decision
    if decision is None or decision.done:
        return driver, state
    settled = protocol.abandon(_end(topic, decision), abandoned)
    if settled != decision:
        # Written down, because the ids of what was committed are used again, and asking would tell nothing then.
        state = state._replace(decision=settled)
        driver = topic.write(driver, state)
    return driver, state


def _end(topic: ControlTopic, decision: Decision) -> Decision:
    """Commits what is open of a decision."""
    fates = {
        task.partition: Fate.COMMITTED if topic.end(task.identity, True) else Fate.LOST
        for task in decision.with_fate(Fate.OPEN)
    }
    return protocol.settle(decision, fates)


def commit(topic: ControlTopic, prefix: str, outcomes: Sequence[Outcome], now_ms: float) -> None:
    """Decides on a write whose tasks have all ended, and makes its rows readable.

    Args:
        outcomes: one for each task.
        now_ms: Unix time.

    Raises:
        NonDeterministicReplayError: rows that were decided on are lost, and the repetition has others.
        LateTransactionError: a task's transaction is not open any more, or not for long enough.
        TakenOverError: a newer driver has taken the prefix.
        UnfinishedWriteError: decided, but not all of it could be committed; a repetition finishes it.
    """
    claim = protocol.agreed(outcomes).claim
    # Else the claim has all that the next state is made of, and is the state's newest as long as nobody took over.
    state = topic.read() if claim.unfinished is not None else State(None, claim.versions)
    decided = protocol.judge(state, outcomes)
    if decided is None or decided.decision is None:
        return
    opened = decided.decision.with_fate(Fate.OPEN)
    protocol.check_alive(opened, topic.describe([task.identity.transactional_id for task in opened]), now_ms)
    driver = _write(topic, claim.driver, decided, prefix)
    settled = _end(topic, decided.decision)
    if settled.with_fate(Fate.LOST):
        raise protocol.unfinished(settled.write, [task.partition for task in settled.with_fate(Fate.LOST)])
    if opened:
        _write(topic, driver, decided._replace(decision=settled), prefix)
    if any(outcome.attempt > 0 for outcome in outcomes):
        _fence_slot(topic, prefix, claim.slot)


def _write(topic: ControlTopic, driver: TransactionIdentity, state: State, prefix: str) -> TransactionIdentity:
    try:
        return topic.write(driver, state)
    except ProducerFencedError as error:
        raise TakenOverError(
            f"Another query or job with transactionalIdPrefix={prefix} has begun a write since this one did. A prefix "
            "belongs to one query or job at a time; this one ends, the other goes on"
        ) from error


def _fence_slot(topic: ControlTopic, prefix: str, slot: int) -> None:
    for lingering in protocol.ids_of(prefix, topic.ongoing(f"{prefix}-{slot}-"), slot):
        topic.fence(lingering)


def abort(topic: ControlTopic, prefix: str, outcomes: Sequence[Outcome], claim: Claim | None) -> str:
    """Aborts what no decision has; says in one sentence what was done.

    Args:
        outcomes: of the tasks that ended, perhaps none.
        claim: None if neither the writer nor a task brought it here.
    """
    if topic.describe([protocol.driver_id(prefix)])[protocol.driver_id(prefix)] is None:
        return "nothing was begun"
    if _is_deciding(topic, prefix):
        return "its decision is on its way: the next write finds out and goes on from there"
    state = topic.read()
    mine = [outcome.task for outcome in outcomes if outcome.task is not None]
    aborted = protocol.undecided(state, mine)
    for identity in aborted:
        topic.end(identity, False)
    decided = {task.identity.transactional_id for task in state.decision.tasks} if state.decision else set()
    slot = None if claim is None else claim.slot
    rest = [one for one in protocol.ids_of(prefix, topic.ongoing(f"{prefix}-"), slot) if one not in decided]
    for lingering in rest:
        topic.fence(lingering)
    left = len(mine) - len(aborted)
    if left:
        return f"it is decided: {left} transactions stay, the next write commits what is open of them"
    return f"{len(aborted) + len(rest)} transactions were aborted, no row of it will be read"


def _is_deciding(topic: ControlTopic, prefix: str) -> bool:
    driver = protocol.driver_id(prefix)
    one = topic.describe([driver])[driver]
    return one is not None and one.state in protocol.BUSY
