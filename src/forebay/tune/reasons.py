"""Why settings are proposed, or not: sentences made from what was measured, with each number beside the text.

A sentence has a cause, an effect and a price.  The cause is what makes up most of the difference between the two
estimates; effect and price are figures of the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from forebay._closed_forms.estimate import Estimate, NodeEstimate
from forebay._closed_forms.wording import Facts, Value, changed
from forebay.tune.figures import Broken, Objective
from forebay.tune.outages import Outage, through
from forebay.tune.search import Outcome

NOTABLE = 0.02
"""A smaller change of a figure is not spoken of."""
SECOND = 0.5
"""A further cause is named if it weighs so much of the first."""
OF_SAFETY = ("buffer.memory", "delivery.timeout.ms")
"""Options that follow from the others, each with a sentence of its own."""
FIGURES = {"p99": "ms", "p50": "ms", "requests": "/s", "bytes": "/s", "cpu": "ms/s"}
"""Figures that an effect or a price may be of."""
IN_SENTENCE = {"p99_ms": "p99", "p50_ms": "p50", "hold_ms": "the longest hold of send()", "lost": "records lost"}
UNIT = {"p99_ms": "ms", "p50_ms": "ms", "hold_ms": "ms"}


@dataclass(frozen=True, slots=True)
class Reason:
    """One sentence.

    kind: "change", "memory", "timeout", "leave", "trial" or "unmet".
    text: the whole sentence, of which cause, effect and price are parts.
    values: every number in it, by name.
    """

    kind: str
    text: str
    cause: str
    effect: str
    price: str
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class _Cause:
    """``weight``: how much it explains of the difference, as a share."""

    weight: float
    say: Callable[[Facts], str]


@dataclass(frozen=True, slots=True)
class Reasons:
    """Finds the reasons for an outcome.

    before, after: the estimates of the present settings and of the best.
    nodes: names of the nodes, in their order; numbers from 1 if there are none.
    """

    outcome: Outcome
    objective: Objective
    before: Estimate
    after: Estimate
    outages: Sequence[Outage] = ()
    nodes: Sequence[str] = ()

    def all(self) -> tuple[Reason, ...]:
        """The most important one first."""
        outcome = self.outcome
        if outcome.verdict == "leave":
            return (self.leave(),)
        found = [self.unmet()] if outcome.verdict == "unmet" else []
        pairs = changed(outcome.present, outcome.settings)
        if any(name not in OF_SAFETY for name in pairs):
            found.append(self.change())
        return (*found, *self.safety())

    def change(self) -> Reason:
        """Why linger, batches, requests in flight or compression are to be others."""
        outcome, facts = self.outcome, Facts()
        pairs = {name: pair for name, pair in changed(outcome.present, outcome.best).items() if name not in OF_SAFETY}
        what = facts.options(pairs)
        cause = self.cause(facts)
        effect, price = self.effect_and_price(facts)
        text = f"{what}: {cause}; {effect}, {price}."
        return Reason("change", text, cause, effect, price, facts.values)

    def cause(self, facts: Facts) -> str:
        """What explains most of the difference; a second one if it weighs nearly as much."""
        causes = sorted(self.causes(), key=lambda each: -each.weight)
        told = [each for each in causes[:2] if each.weight > 0 and each.weight >= SECOND * causes[0].weight]
        return ", and ".join(each.say(facts) for each in told) or "the simulation has it better"

    def causes(self) -> list[_Cause]:
        """All that the two estimates differ in."""
        before, after = self.before, self.after
        mean = sum(node.rate * node.latency.mean for node in before.nodes)
        found = []
        for part, say in (("line", self.line), ("slot", self.slot), ("linger", self.linger)):
            drops = [
                here.rate * (getattr(here.parts, part) - getattr(there.parts, part))
                for here, there in zip(before.nodes, after.nodes, strict=True)
            ]
            worst = drops.index(max(drops))
            weight = sum(drops) / mean if 0 < mean < math.inf else float(sum(drops) > 0)
            found.append(_Cause(weight, _saying(say, worst)))
        fewer = 1 - after.requests / before.requests
        busiest = max(range(len(before.nodes)), key=lambda at: before.nodes[at].requests)
        by_room = self.outcome.present.batch_size != self.outcome.best.batch_size
        found.append(_Cause(fewer, _saying(self.room if by_room else self.sparse, busiest)))
        if self.outcome.present.compression != self.outcome.best.compression:
            found.append(_Cause(1 - after.bytes / before.bytes, self.compressed))
        return found

    def name(self, at: int) -> str:
        return self.nodes[at] if self.nodes else f"broker {at + 1}"

    def line(self, facts: Facts, at: int) -> str:
        """Requests stand in the line of one broker."""
        parts = self.before.nodes[at].parts
        facts.values["broker"] = self.name(at)
        said = f"{self.name(at)} serves one request in {facts.number('service_ms', parts.service, 'ms')}"
        if 0 < parts.service <= parts.line:
            return f"{said}, and {facts.number('in_line', round(1 + parts.line / parts.service))} stand in its line"
        return f"{said}, and another one waits {facts.number('line_ms', parts.line, 'ms')} for that"

    def slot(self, facts: Facts, at: int) -> str:
        """Records wait because all requests that may be in flight are."""
        node = self.before.nodes[at]
        facts.values["broker"] = self.name(at)
        answer = facts.number("answer_ms", node.parts.round_trip + node.parts.service + node.parts.wire, "ms")
        waits = facts.number("slot_ms", node.parts.slot, "ms")
        slots = facts.number("in_flight", self.outcome.present.in_flight)
        return f"{self.name(at)} answers after {answer}, and with {slots} in flight a record waits {waits} for a slot"

    def linger(self, facts: Facts, at: int) -> str:
        """Most of the latency is the wait for a batch to close."""
        node = self.before.nodes[at]
        waits = facts.number("linger_wait_ms", node.parts.linger, "ms")
        if math.isinf(node.latency.mean):
            facts.values["broker"] = self.name(at)
            return f"a record waits {waits} for its batch to close, and more records come than {self.name(at)} takes"
        whole = facts.number("latency_mean_ms", node.latency.mean, "ms")
        return f"a record waits {waits} of its {whole} for its batch to close"

    def sparse(self, facts: Facts, at: int) -> str:
        """A request takes along few records."""
        before, after = self.before.nodes[at], self.after.nodes[at]
        few = facts.change("records_request", before.records_request, after.records_request)
        return f"a request takes along {few} records"

    def room(self, facts: Facts, at: int) -> str:
        """A batch has room for other numbers of records."""
        before, after = self.before.nodes[at], self.after.nodes[at]
        room = facts.change("records_room", self.records_of_room(before), self.records_of_room(after, after=True))
        filled = facts.change("records_batch", before.records_batch, after.records_batch)
        return f"a batch has room for {room} records, and gets {filled}"

    def records_of_room(self, node: NodeEstimate, *, after: bool = False) -> float:
        settings = self.outcome.best if after else self.outcome.present
        return max(1.0, settings.batch_size / node.pool_record)

    def compressed(self, facts: Facts) -> str:
        """A codec leaves less to send."""
        left = facts.share("ratio", self.outcome.best.compression_ratio)
        return f"{self.outcome.best.compression} leaves {left} of the bytes"

    def effect_and_price(self, facts: Facts) -> tuple[str, str]:
        """What gets better, what gets worse, by the simulation."""
        before, after = self.outcome.figures[self.outcome.present], self.outcome.figures[self.outcome.best]
        better: list[str] = []
        worse: list[str] = []
        for name, unit in FIGURES.items():
            one, other = getattr(before, name), getattr(after, name)
            if one > 0 and abs(other / one - 1) >= NOTABLE:
                (better if other < one else worse).append(_compared(facts, name, unit, one, other))
        more = after.memory - before.memory
        if abs(more) >= NOTABLE * self.outcome.present.buffer_memory:
            said = f"{facts.size('pool_change', abs(more))} of the pool {'more' if more > 0 else 'less'}"
            (worse if more > 0 else better).append(said)
        return ", ".join(better) or "nothing is better", "price: " + ", ".join(worse) if worse else "no cost"

    def safety(self) -> list[Reason]:
        """Why memory and the timeout are to be others."""
        present, settings = self.outcome.present, self.outcome.settings
        pairs, found = changed(present, settings), []
        if "buffer.memory" in pairs:
            found.append(self.memory({"buffer.memory": pairs["buffer.memory"]}))
        if "delivery.timeout.ms" in pairs:
            found.append(self.timeout({"delivery.timeout.ms": pairs["delivery.timeout.ms"]}))
        return found

    def memory(self, pair: dict[str, tuple[Value, Value]]) -> Reason:
        """Memory follows from the longest outage, or from what is on its way."""
        facts = Facts()
        what = facts.options(pair)
        grows = self.outcome.settings.buffer_memory > self.outcome.present.buffer_memory
        if self.outages:
            results = [through(each, self.after, self.outcome.present) for each in self.outages]
            at = max(range(len(results)), key=lambda number: results[number].memory)
            facts.values["outage"] = at + 1
            away = facts.number("away_s", (self.outages[at].away_ms + self.outages[at].election_ms) / 1000, "s")
            cause = f"outage {at + 1} of {away} needs {facts.size('needed', results[at].memory)}"
            held = facts.number("held_s", results[at].held / 1000, "s")
            effect = f"send() does not wait {held} there" if results[at].held > 0 else "send() does not wait there"
        else:
            cause = f"{facts.size('needed', self.after.pool)} are on their way"
            effect = "send() does not wait for memory"
        difference = abs(self.outcome.settings.buffer_memory - self.outcome.present.buffer_memory)
        price = f"price: {facts.size('more', difference)} of memory" if grows else "no cost"
        return Reason("memory", f"{what}: {cause}; {effect}, {price}.", cause, effect, price, facts.values)

    def timeout(self, pair: dict[str, tuple[Value, Value]]) -> Reason:
        """The timeout has to leave time for the outages and what comes after them."""
        facts = Facts()
        what = facts.options(pair)
        results = [through(each, self.after, self.outcome.settings) for each in self.outages]
        if results:
            longest = max(results, key=lambda each: each.delivery_timeout)
            recovery = facts.number("recovery_s", longest.recovery / 1000, "s")
            needed = facts.number("needed_s", longest.delivery_timeout / 1000, "s")
            cause = f"with {recovery} until what waited is sent, a record can be {needed} old after an outage"
        else:
            cause = "it has to be longer than linger.ms and request.timeout.ms together"
        effect, price = "no record expires", "price: a failure is told later"
        return Reason("timeout", f"{what}: {cause}; {effect}, {price}.", cause, effect, price, facts.values)

    def leave(self) -> Reason:
        """Why nothing is proposed."""
        outcome, facts = self.outcome, Facts()
        seen, run = (facts.number(name, count) for name, count in zip(("seen", "run"), outcome.tried, strict=True))
        if outcome.best == outcome.present:
            cause = f"of {seen} settings, {run} of them simulated, none is better than the present ones"
            return Reason("leave", f"Leave it: {cause}.", cause, "", "", facts.values)
        what = facts.options(changed(outcome.present, outcome.best))
        effect, price = self.effect_and_price(facts)
        if outcome.failed is not None:
            facts.values["trial"] = outcome.failed.name
            cause = f"{outcome.failed.name}: {self.over(facts, outcome.failed.broken[0])}"
            text = f"Leave it: {what} would be better ({effect}, {price}), but fails a trial: {cause}."
            return Reason("trial", text, cause, effect, price, facts.values)
        if min(gain.mean for gain in outcome.gains.values()) > 0 and (cause := self.too_near(facts)):
            text = f"Leave it: {what} would be better ({effect}, {price}), but {cause}."
            return Reason("leave", text, cause, effect, price, facts.values)
        name, gain = min(outcome.gains.items(), key=lambda each: each[1].mean)
        loss = outcome.loss if outcome.loss > 0 else 1.0
        gained = facts.share("gain", gain.mean / loss, signed=True)
        error = f"a standard error of {facts.share('error', gain.error / loss)}"
        if math.isinf(gain.error):
            error = "a standard error that one pair of runs does not tell"
        other = "the present settings" if name == "present" else "the defaults"
        cause = f"the best of {seen}, {what}, gains {gained} over {other}, with {error}"
        return Reason("leave", f"Leave it: {cause}.", cause, effect, price, facts.values)

    def unmet(self) -> Reason:
        """Which limit cannot be kept, and what stands in its way."""
        outcome, facts = self.outcome, Facts()
        figures = outcome.figures[outcome.best]
        broken = self.objective.broken(figures)
        if not broken and outcome.failed is not None:
            facts.values["trial"] = outcome.failed.name
            cause = f"{outcome.failed.name}: {self.over(facts, outcome.failed.broken[0])}"
        else:
            cause = self.over(facts, broken[0])
        slowest = max(self.after.nodes, key=lambda node: node.parts.service + node.parts.round_trip)
        at = self.after.nodes.index(slowest)
        facts.values["broker"] = self.name(at)
        least = facts.number("least_ms", slowest.parts.round_trip + slowest.parts.wire + slowest.parts.service, "ms")
        effect = f"{self.name(at)} alone takes {least} to answer"
        if self.after.overload:
            effect = "the load is more than the brokers take"
        pairs = changed(outcome.present, outcome.best)
        nearest = f"the nearest is {facts.options(pairs)}" if pairs else "the present settings are nearest"
        text = f"Nothing keeps the limits: {nearest}; {cause}; {effect}."
        return Reason("unmet", text, cause, effect, "", facts.values)

    def too_near(self, facts: Facts) -> str:
        """A limit that the best is over, or under by less than a prediction may be off; "" if there is none."""
        figures = self.outcome.figures[self.outcome.best]
        if broken := self.objective.broken(figures):
            return self.over(facts, broken[0])
        if close := self.objective.with_room.broken(figures):
            return f"{self.value_of(facts, close[0])}, nearer to the limit than a prediction may be off by"
        return ""

    def over(self, facts: Facts, broken: Broken) -> str:
        """A limit that is not kept."""
        if broken.limit == "memory":
            used = facts.size("value", broken.value)
            return f"{used} of the pool are used, and {facts.size('allowed', broken.allowed)} are allowed"
        return f"{self.value_of(facts, broken)}, and {facts.number('allowed', broken.allowed)} are allowed"

    @staticmethod
    def value_of(facts: Facts, broken: Broken) -> str:
        """What there is of something that has a limit."""
        value = facts.number("value", broken.value, UNIT.get(broken.limit, ""))
        return f"{IN_SENTENCE[broken.limit]} {'are' if broken.limit == 'lost' else 'is'} {value}"


def _saying(say: Callable[[Facts, int], str], at: int) -> Callable[[Facts], str]:
    return lambda facts: say(facts, at)


def _compared(facts: Facts, name: str, unit: str, before: float, after: float) -> str:
    """One figure before and after: times as they are, what is counted as a share."""
    if name in ("p50", "p99"):
        return f"{name} {facts.change(name, before, after, unit)}"
    facts.values[f"{name}_before"], facts.values[f"{name}_after"] = before, after
    return f"{name} {facts.share(f'{name}_change', after / before - 1, signed=True)}"
