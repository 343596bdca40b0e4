"""What requests of one connection wait for: an answer that frees a slot, and the requests before them at the broker.

A broker serves one request of a connection at a time.  So a node is a queue with one server.  Its arrivals are the ends
of cycles, which come at random or as regularly as ``linger.ms`` makes them.  The number of requests in flight bounds
what stands at the broker; the rest waits in the producer, where one request takes it all along.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from forebay._closed_forms.packing import at_most

NEVER = 1e-9
CELLS = 20
"""Pieces into which a wait is cut."""
HEAVY = 0.9
"""Busy share from which on a line is near its limit."""
TERMS = 80
"""Of Spitzer's sum."""
SPREADS = 0.02
"""Share of long times between arrivals from which on bunches of requests come apart soon."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Requests as they would come with free slots: times between two of them, in ms.

    ``shortest``: no time is shorter.
    """

    mean: float
    variance: float
    shortest: float = 0.0

    @property
    def shape(self) -> float:
        """Of the gamma distribution of what exceeds ``shortest``."""
        excess = self.mean - self.shortest
        return excess * excess / self.variance if self.variance > NEVER * excess * excess else 1 / NEVER

    def beyond(self, bound: float, number: int = 1) -> tuple[float, float]:
        """Of ``number`` times together: the mean of what exceeds ``bound``, and the chance of more than that."""
        shape, excess = self.shape * number, (self.mean - self.shortest) * number
        left = bound - self.shortest * number
        if left <= 0:
            return excess - left, 1.0
        if excess <= 0:
            return 0.0, 0.0
        scaled = left * shape / excess
        more = upper_gamma(shape, scaled)
        return max(0.0, excess * upper_gamma(shape + 1, scaled) - left * more), more


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait that occurs with ``chance`` and is exponential then, with ``mean``."""

    chance: float
    mean: float

    def longer(self, than: float) -> float:
        """The chance of a longer wait."""
        return self.chance * math.exp(-than / self.mean) if self.mean > 0 else 0.0


NONE = Wait(0.0, 0.0)


def slot_gap(arrivals: Arrivals, turnaround: float, in_flight: int) -> tuple[float, float]:
    """Mean time between requests if each waits for the answer to the one ``in_flight`` before it, and how many do.

    As many times between arrivals as there are slots must take at least one turnaround.
    """
    beyond, free = arrivals.beyond(turnaround, in_flight)
    if free >= 1:
        return arrivals.mean, 0.0
    return max(arrivals.mean, (turnaround + beyond) / in_flight), 1.0 - free


def bunch_gap(arrivals: Arrivals, held: float, turnaround: float, service: float, in_flight: int) -> float:
    """Ms between requests that go one right after the other as answers come.

    Requests that went together are answered together, so those that wait for these answers go together, too.  The gap
    is at least a service, and grows to the longest time between arrivals that there has been.
    """
    longest = arrivals.mean + 3 * held * math.sqrt(arrivals.variance)
    return min(turnaround / in_flight, max(service, longest))


def slot_waits(
    arrivals: Arrivals, *, gap: float, bunch: float, held: float, service: float, turnaround: float, in_flight: int
) -> list[tuple[float, float]]:
    """How long until a slot is free, as (ms, share of the time); in the rest of the time one is free.

    No slot is free while the last ``in_flight`` requests together are younger than a turnaround.

    Args:
        gap: mean ms between requests as they go.
        bunch: ms between those of a bunch.
        service: ms in the broker, which answers are apart at least.
        held: share of the requests that waited for a slot: of ``in_flight`` such ones, one is the last of a bunch.
    """
    others = in_flight - 1
    shortest = max(arrivals.shortest, service)
    most = turnaround - shortest * others
    if most <= 0:
        return []
    step = most / CELLS
    waits = [(at + 0.5) * step for at in range(CELLS)]
    _, late = arrivals.beyond(turnaround / in_flight)
    if others and late > SPREADS:
        return [(wait, step / gap * _young(arrivals, turnaround - wait, turnaround, service, others)) for wait in waits]
    excess = max(0.0, bunch - shortest) * others
    weight = step / gap * (1 - held + held / in_flight)
    found = [(wait, weight) for wait in waits if wait <= most - excess]
    within = held * others / in_flight * bunch / gap
    return found + [((at + 0.5) * bunch / 5, within / 5) for at in range(5)] if within > 0 else found


def _young(arrivals: Arrivals, age: float, turnaround: float, service: float, others: int) -> float:
    """The chance that the last ``others`` requests before one are all younger than ``age``.

    For one other request G(x) = P(gap < x and the one before is older than turnaround - x) can be solved for G.
    """
    apart = service + arrivals.beyond(service)[0]
    least = max(arrivals.shortest, service)
    free = Arrivals(apart, min(arrivals.variance, (apart - least) ** 2) or NEVER, least)
    young = 1 - free.beyond(age, others)[1]
    next_early = 1 - arrivals.beyond(turnaround - age)[1]
    return young * (1 - next_early) / max(NEVER, 1 - young * next_early)


def upper_gamma(shape: float, bound: float) -> float:
    """The chance that a gamma distributed value of scale 1 is larger than ``bound``."""
    if bound <= 0:
        return 1.0
    if shape < 13 and abs(shape - round(shape)) < 1e-6 and shape > 0.5:
        return at_most(bound, round(shape) - 1)
    deviation = ((bound / shape) ** (1 / 3) - (1 - 1 / (9 * shape))) * 3 * math.sqrt(shape)
    return 0.5 * math.erfc(deviation / math.sqrt(2))


def line_wait(arrivals: Arrivals, service: float, variance: float) -> Wait:
    """What a request waits for those before it at a broker that takes ``service`` ms for one.

    The mean is Spitzer's, the decay of long waits is Lundberg's.
    """
    # To have each gap and each service shorter by the same changes no wait: W' = max(0, W + service - gap).
    mean, late = arrivals.mean - arrivals.shortest, service - arrivals.shortest
    if late <= 0 or mean <= 0:
        return NONE if variance <= NEVER * service * service or mean > 0 else Wait(1.0, math.inf)
    busy = late / mean
    if busy >= 1:
        return Wait(1.0, math.inf)
    if arrivals.variance + variance < NEVER * mean * mean:
        return NONE
    expected = _mean_wait(Arrivals(mean, arrivals.variance + variance), late, busy)
    decay = _decay(arrivals, service, variance)
    if not 0 < decay < math.inf or expected <= 0:
        return NONE
    chance = expected * decay
    return Wait(chance, 1 / decay) if chance <= 1 else Wait(1.0, expected)


def _mean_wait(arrivals: Arrivals, service: float, busy: float) -> float:
    """The mean wait by Spitzer's sum: of how late n requests together are, each nth part.

    Near the limit it has too many terms, and Kingman's bound is near enough.
    """
    if busy > HEAVY:
        return arrivals.variance / (2 * (arrivals.mean - service))
    total = 0.0
    for number in range(1, TERMS + 1):
        early, _ = arrivals.beyond(number * service, number)
        term = max(0.0, service - arrivals.mean + early / number)
        total += term
        if term <= total / 200:
            break
    return total


def _decay(arrivals: Arrivals, service: float, variance: float) -> float:
    """Lundberg's exponent: the positive root of log E exp(x (service - gap)) = 0."""
    shape, excess = arrivals.shape, arrivals.mean - arrivals.shortest
    late = service - arrivals.shortest
    high = low = (arrivals.mean - service) / (arrivals.variance + variance)
    for _ in range(60):
        if high * late + high * high * variance / 2 - shape * math.log1p(high * excess / shape) > 0:
            break
        low, high = high, high * 2
    else:
        return math.inf
    if low == high:
        low = 0.0
    for _ in range(20):
        x = (low + high) / 2
        if x * late + x * x * variance / 2 - shape * math.log1p(x * excess / shape) > 0:
            high = x
        else:
            low = x
    return (low + high) / 2


def merging(arrivals: Arrivals, service: float) -> float:
    """Share of the requests that those before them take along where each waits for the end of a service."""
    expected = service / arrivals.mean
    regular = min(1.0, arrivals.variance / arrivals.mean**2)
    return regular * (1 - (1 - math.exp(-expected)) / expected) if expected > 0 else 0.0


def handler_wait(handlers: int, others_busy: float, service: float) -> Wait:
    """What a request waits for a handler that requests of others leave free (M/D/c, by Erlang's C)."""
    if others_busy <= 0:
        return NONE
    if others_busy >= 1:
        return Wait(1.0, math.inf)
    load, blocked = handlers * others_busy, 1.0
    for number in range(1, handlers + 1):
        blocked = load * blocked / (number + load * blocked)
    chance = blocked / (1 - others_busy * (1 - blocked))
    return Wait(chance, service / (2 * handlers * (1 - others_busy)))
