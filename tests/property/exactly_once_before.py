"""The rules of exactly-once writes as they were before ids belonged to worker processes: the model must refute them.

They keep what the holes are made of.  Ids are numbers of tasks and attempts, which Spark begins again with each attempt
of a stage.  A refused commit is taken for a lost transaction.  What is open is fenced by name, and after a commit not
at all, unless a later attempt was chosen.
"""

from __future__ import annotations

import re

from forebay.errors import KafkaError
from forebay.spark.exactly_once import protocol
from forebay.spark.exactly_once.protocol import Claim, Decision, Fate, State, TaskOutcome
from tests.property.exactly_once import Topic

SLOTS = 8
BUSY = frozenset(("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"))


def slot_of(claim: Claim) -> int:
    return claim.driver.producer_epoch % SLOTS


def ids_of(ids: list[str], slot: int | None = None) -> list[str]:
    wanted = re.compile(rf"p-{r'[0-9]+' if slot is None else slot}-\d+-\d+")
    return [one for one in ids if wanted.fullmatch(one)]


class Before:
    """``Rules``, as they were."""

    def begin(self, topic: Topic) -> Claim:
        driver = topic.claim()
        state = topic.read()
        decision = state.decision
        if decision is not None and not decision.done:
            settled = self._end(topic, decision)
            if settled != decision:
                state = state._replace(decision=settled)
                driver = topic.write(driver, state)
        for lingering in ids_of(topic.ongoing("p-")):
            topic.fence(lingering)
        return protocol.claim_of(driver, state)

    def _end(self, topic: Topic, decision: Decision) -> Decision:
        fates = {
            task.partition: Fate.COMMITTED if topic.end(task.identity, True) else Fate.LOST
            for task in decision.with_fate(Fate.OPEN)
        }
        return protocol.settle(decision, fates)

    def commit(self, topic: Topic, outcomes: list[TaskOutcome]) -> None:
        claim = outcomes[0].claim
        state = topic.read() if claim.unfinished is not None else State(None, claim.versions)
        decided = protocol.judge(state, outcomes)
        if decided is None or decided.decision is None:
            return
        found = topic.describe([task.identity.transactional_id for task in decided.decision.tasks])
        for task in decided.decision.with_fate(Fate.OPEN):
            one = found[task.identity.transactional_id]
            if one is None or one[:3] != (protocol.ONGOING, *task.identity[1:3]):
                raise protocol.LateTransactionError
        driver = topic.write(claim.driver, decided)
        settled = self._end(topic, decided.decision)
        lost = settled.with_fate(Fate.LOST)
        if lost:
            raise protocol.unfinished(settled.write, [task.partition for task in lost])
        topic.write(driver, decided._replace(decision=settled))
        # What was open was fenced only if a chosen attempt was a later one, which none is here.

    def abort(self, topic: Topic, outcomes: list[TaskOutcome], claim: Claim | None) -> None:
        one = topic.describe([protocol.driver_id("p")])[protocol.driver_id("p")]
        if one is None or one.state in BUSY:
            return
        decision = topic.read().decision
        decided = {task.identity for task in decision.tasks} if decision else set()
        for outcome in outcomes:
            if outcome.task is not None and outcome.task.identity not in decided:
                topic.end(outcome.task.identity, False)
        names = {identity.transactional_id for identity in decided}
        for lingering in ids_of(topic.ongoing("p-"), None if claim is None else slot_of(claim)):
            if lingering not in names:
                topic.fence(lingering)

    def task_id(self, worker: str, claim: Claim, partition: int, attempt: int) -> str:
        return f"p-{slot_of(claim)}-{partition}-{attempt}"

    def is_named(self, error: KafkaError) -> bool:
        return True

    def is_loud(self, error: KafkaError) -> bool:
        return isinstance(error, protocol.UnfinishedWriteError)
