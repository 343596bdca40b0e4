"""What is due between a client and its cluster: a subscription, a push, the last push.  No I/O, no clock.

States, moves and verdicts are those of the Java client (ClientTelemetryState, ClientTelemetryUtils), as tables.  Times
are monotonic ms.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from forebay._protocol.get_telemetry_subscriptions import NO_INSTANCE, GetTelemetrySubscriptionsResponse
from forebay.errors import IllegalStateError, ProtocolError

INFINITY = float("inf")
DEFAULT_INTERVAL_MS = 300_000
"""Between two requests where the cluster gives no interval that makes sense, and after a lost connection."""
LEAST_INTERVAL_MS = 100
"""As Kafka's own least ``interval.ms``; a smaller one would be all that the sender's thread does."""
START_MS = 100.0
"""Until the first request, so that it goes behind the requests of a start."""
LAST_PUSH_MS = 1_000.0
"""How long the end of a producer waits for the answer to the last push."""
ALL = frozenset({"", "*"})
"""Each stands for all metrics: the first in KIP-714, the second in what Kafka's brokers send."""


class State(enum.Enum):
    """As in the Java client."""

    SUBSCRIPTION_NEEDED = "subscription needed"
    SUBSCRIPTION_IN_PROGRESS = "subscription in progress"
    PUSH_NEEDED = "push needed"
    PUSH_IN_PROGRESS = "push in progress"
    TERMINATING_PUSH_NEEDED = "terminating push needed"
    TERMINATING_PUSH_IN_PROGRESS = "terminating push in progress"
    TERMINATED = "terminated"


NEXT: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.SUBSCRIPTION_NEEDED: frozenset({State.SUBSCRIPTION_IN_PROGRESS, State.TERMINATED}),
        State.SUBSCRIPTION_IN_PROGRESS: frozenset(
            {State.PUSH_NEEDED, State.SUBSCRIPTION_NEEDED, State.TERMINATING_PUSH_NEEDED, State.TERMINATED}
        ),
        State.PUSH_NEEDED: frozenset(
            {State.PUSH_IN_PROGRESS, State.SUBSCRIPTION_NEEDED, State.TERMINATING_PUSH_NEEDED, State.TERMINATED}
        ),
        State.PUSH_IN_PROGRESS: frozenset(
            {State.PUSH_NEEDED, State.SUBSCRIPTION_NEEDED, State.TERMINATING_PUSH_NEEDED, State.TERMINATED}
        ),
        State.TERMINATING_PUSH_NEEDED: frozenset({State.TERMINATING_PUSH_IN_PROGRESS, State.TERMINATED}),
        State.TERMINATING_PUSH_IN_PROGRESS: frozenset({State.TERMINATED}),
        State.TERMINATED: frozenset(),
    }
)
"""For each state the states that may follow."""

SENT = {
    State.SUBSCRIPTION_NEEDED: State.SUBSCRIPTION_IN_PROGRESS,
    State.PUSH_NEEDED: State.PUSH_IN_PROGRESS,
    State.TERMINATING_PUSH_NEEDED: State.TERMINATING_PUSH_IN_PROGRESS,
}
"""For each state in which a request is needed, the state once it was sent."""
ENDING = frozenset({State.TERMINATING_PUSH_NEEDED, State.TERMINATING_PUSH_IN_PROGRESS})


class Verdict(enum.Enum):
    """What follows a broker's error; the value is for the log."""

    AT_ONCE = "the subscription is asked for again at once"
    LATER = "it is tried again after the push interval"
    NEVER = "no more are sent"


UNKNOWN_SUBSCRIPTION_ID = 117
UNSUPPORTED_COMPRESSION_TYPE = 76
VERDICTS: Mapping[int, Verdict] = MappingProxyType(
    {
        UNKNOWN_SUBSCRIPTION_ID: Verdict.AT_ONCE,
        UNSUPPORTED_COMPRESSION_TYPE: Verdict.AT_ONCE,
        118: Verdict.LATER,  # TELEMETRY_TOO_LARGE
        89: Verdict.LATER,  # THROTTLING_QUOTA_EXCEEDED
        42: Verdict.NEVER,  # INVALID_REQUEST
        87: Verdict.NEVER,  # INVALID_RECORD
        35: Verdict.NEVER,  # UNSUPPORTED_VERSION
    }
)
"""By error code; any other code is NEVER, too."""


class Subscription(NamedTuple):
    """What the cluster wants; checked.  ``codecs`` are numbers, the best first; 0 for ``max_bytes`` is no limit."""

    instance_id: bytes
    id: int
    interval_ms: int
    codecs: tuple[int, ...]
    max_bytes: int
    delta: bool
    prefixes: tuple[str, ...]

    @classmethod
    def of(cls, answer: GetTelemetrySubscriptionsResponse, known: bytes) -> Subscription:
        """What a broker answered; an interval that makes no sense is replaced.

        Args:
            known: the client's instance id so far; a broker need not repeat it.

        Raises:
            ProtocolError: the client has no instance id, and the broker gives it none.
        """
        instance_id = known if answer.instance_id == NO_INSTANCE else answer.instance_id
        if instance_id == NO_INSTANCE:
            raise ProtocolError("The broker gave this client no instance id")
        interval = answer.push_interval_ms
        interval = DEFAULT_INTERVAL_MS if interval <= 0 else max(interval, LEAST_INTERVAL_MS)
        prefixes = ("",) if ALL.intersection(answer.requested_metrics) else answer.requested_metrics
        codecs, most = answer.compression_types, max(0, answer.max_bytes)
        return cls(instance_id, answer.subscription_id, interval, codecs, most, answer.delta, prefixes)

    def wants(self, name: str) -> bool:
        """Whether the cluster wants the metric that telemetry calls ``name``."""
        return name.startswith(self.prefixes)


class TelemetryDialog:
    """The state, the subscription, and when something is due.

    Args:
        random: in [0, 1), for the time of the first push.
        now: a broker has said that it takes metrics.
    """

    def __init__(self, random: Callable[[], float], now: float) -> None:
        self._random = random
        self.state = State.SUBSCRIPTION_NEEDED
        self.subscription: Subscription | None = None
        self.due = now + START_MS
        """When a request is due; while the last push is needed or in progress, when it is given up."""

    @property
    def instance_id(self) -> bytes:
        """The client's; ``NO_INSTANCE`` before the first answer."""
        return NO_INSTANCE if self.subscription is None else self.subscription.instance_id

    @property
    def ended(self) -> bool:
        """Whether nothing will ever be sent again."""
        return self.state is State.TERMINATED

    @property
    def owes_last_push(self) -> bool:
        """Whether an end would have something to wait for."""
        if self.state in ENDING:
            return True
        return self.state not in (State.SUBSCRIPTION_NEEDED, State.TERMINATED) and self._wants_metrics()

    def sent(self) -> None:
        """The request that was needed is on its way."""
        last = self.state is State.TERMINATING_PUSH_NEEDED
        self._move(SENT[self.state], self.due if last else INFINITY)

    def postpone(self, now: float, ms: float) -> None:
        """What is needed now cannot be had; it is looked for again after ``ms``."""
        self.due = now + ms

    def subscribed(self, subscription: Subscription, now: float) -> None:
        """An answer to a request for the subscription."""
        if self.state is not State.SUBSCRIPTION_IN_PROGRESS:
            return  # the end has begun meanwhile
        self.subscription = subscription
        if self._wants_metrics():
            # Clients that were started together push at different times.
            self._move(State.PUSH_NEEDED, now + (0.5 + self._random()) * subscription.interval_ms)
        else:
            self._move(State.SUBSCRIPTION_NEEDED, now + subscription.interval_ms)

    def skip(self, now: float) -> None:
        """The push that is needed now is left out."""
        if self.state is State.TERMINATING_PUSH_NEEDED:
            self.stop()
        else:
            self.postpone(now, self._interval())

    def pushed(self, now: float) -> None:
        """A push was taken."""
        if self.state is State.TERMINATING_PUSH_IN_PROGRESS:
            self.stop()
        elif self.state is State.PUSH_IN_PROGRESS:
            self._move(State.PUSH_NEEDED, now + self._interval())

    def refused(self, code: int, now: float) -> Verdict:
        """A broker answered with an error."""
        last = self.state is State.TERMINATING_PUSH_IN_PROGRESS
        verdict = Verdict.NEVER if last else VERDICTS.get(code, Verdict.NEVER)
        if verdict is Verdict.NEVER:
            self.stop()
        elif self.state in (State.SUBSCRIPTION_IN_PROGRESS, State.PUSH_IN_PROGRESS):
            if verdict is Verdict.AT_ONCE and self.state is State.SUBSCRIPTION_IN_PROGRESS:
                # An error about a push makes no sense here, and at once would be for ever.
                verdict = Verdict.LATER
            self._move(State.SUBSCRIPTION_NEEDED, now if verdict is Verdict.AT_ONCE else now + self._interval())
        return verdict

    def lost(self, now: float) -> None:
        """The connection ended before the answer."""
        if self.state is State.TERMINATING_PUSH_IN_PROGRESS:
            self.stop()
        elif self.state in (State.SUBSCRIPTION_IN_PROGRESS, State.PUSH_IN_PROGRESS):
            self._move(State.SUBSCRIPTION_NEEDED, now + DEFAULT_INTERVAL_MS)

    def end(self, now: float) -> None:
        """The producer has nothing else to do before its end; called in each turn from then on."""
        if self.state in ENDING:
            if now >= self.due:
                self.stop()
        elif self.owes_last_push:
            self._move(State.TERMINATING_PUSH_NEEDED, now + LAST_PUSH_MS)
        else:
            self.stop()

    def stop(self) -> None:
        """Nothing will be sent any more."""
        if self.state is not State.TERMINATED:
            self._move(State.TERMINATED, INFINITY)

    def _wants_metrics(self) -> bool:
        return self.subscription is not None and bool(self.subscription.prefixes)

    def _interval(self) -> int:
        return DEFAULT_INTERVAL_MS if self.subscription is None else self.subscription.interval_ms

    def _move(self, target: State, due: float) -> None:
        if target not in NEXT[self.state]:
            raise IllegalStateError(f"Telemetry cannot go from {self.state.value!r} to {target.value!r}")
        self.state, self.due = target, due
