"""UpdateTiming: which metadata requests were asked for and answered, and when the next one is due."""

from __future__ import annotations

from collections.abc import Callable

from forebay._runtime.backoff import ExponentialBackoff

_NEVER = float("-inf")


class UpdateTiming:
    """The times of a Metadata, whose lock guards all fields.

    Requests for updates are numbered, because an answer does not answer a request that was made after its query.
    A failed attempt makes the next request wait, and so does an answer that brought nothing new.

    Args:
        refresh_backoff_ms: the least time between an answer or a failed attempt and the next request.
        refresh_backoff_max_ms: that time grows up to it.
        max_age_ms: an answer that is older is asked for again.
        random: in [0, 1), for jitter.
    """

    def __init__(
        self,
        refresh_backoff_ms: float,
        refresh_backoff_max_ms: float,
        max_age_ms: float,
        random: Callable[[], float],
    ) -> None:
        self._least_wait = min(refresh_backoff_ms, refresh_backoff_max_ms)
        self._backoff = ExponentialBackoff(refresh_backoff_ms, refresh_backoff_max_ms, random)
        self._max_age = max_age_ms
        # Failures in a row, and answers in a row that brought nothing new; each has its wait.
        self._failures = self._equivalent = 0
        self._attempt_wait = self._equivalent_wait = 0.0
        self._last_refresh = self.last_success = _NEVER
        self._at_once = False  # a topic was added that no request has asked for yet
        self.asked = 0
        self._full_asked = self._new_topics_asked = 0
        self._full_answered = self._new_topics_answered = 0

    def ask_for_all(self) -> None:
        """Asks for all topics."""
        self.asked += 1
        self._full_asked = self.asked

    def ask_for_new_topics(self, at_once: bool = False) -> None:
        """Asks for topics that were never answered.

        Args:
            at_once: one of them was added now.  A caller of send() waits for it, so the request does not wait, and the
                next ones wait for a short time.
        """
        if at_once:
            self._at_once = True
            self.forget_equivalent()
        self.asked += 1
        self._new_topics_asked = self.asked

    def full_answered(self, number: int) -> bool:
        """Whether all topics were answered since the request with this number."""
        return self._full_answered >= number

    @property
    def wants_new_topics(self) -> bool:
        """Whether an answer for new topics is missing."""
        return self._new_topics_asked > self._new_topics_answered

    @property
    def wants_any(self) -> bool:
        """Whether an answer is missing, apart from the age of the last one."""
        return self._full_asked > self._full_answered or self.wants_new_topics

    def begin(self, now: float) -> bool:
        """A request is made; True if it is for all topics."""
        self._at_once = False
        expired = self.last_success + self._max_age <= now
        if expired:
            # A request because of age does not count as a repeated one.
            self.forget_equivalent()
        return expired or self._full_asked > self._full_answered

    def answered(self, number: int, now: float, *, partial: bool, news: bool) -> None:
        """The request with this number was answered.

        Args:
            partial: it was for new topics only.
            news: the answer had something new.
        """
        self._new_topics_answered = number
        if not partial:
            self._full_answered = number
            self.last_success = now
        self._last_refresh = now
        self._failures = 0
        self._attempt_wait = self._wait_after(0)
        self._equivalent = 0 if news else self._equivalent + 1
        self._equivalent_wait = self._wait_after(self._equivalent - 1) if self._equivalent else 0.0

    def failed(self, now: float) -> None:
        """An attempt failed: the next one waits."""
        self._attempt_wait = self._wait_after(self._failures)
        self._failures += 1
        # The next answer may come from another broker, so earlier equivalent answers do not delay it.
        self.forget_equivalent()
        self._last_refresh = now
        self._at_once = False

    def forget_equivalent(self) -> None:
        """Earlier answers without news delay the next request no more."""
        self._equivalent = 0
        self._equivalent_wait = 0.0

    def due_at(self) -> float:
        """Monotonic ms from which on a request is due."""
        expires = self.last_success + self._max_age
        # Expired metadata is asked for, even if many earlier answers had nothing new.
        equivalent = min(self._last_refresh + self._equivalent_wait, expires)
        allowed = _NEVER if self._at_once else max(self._last_refresh + self._attempt_wait, equivalent)
        return allowed if self.wants_any else max(allowed, expires)

    def _wait_after(self, repeated: int) -> float:
        """Ms to the next request; jitter can make it longer than the back-off, not shorter."""
        return max(self._least_wait, self._backoff.delay(repeated))
