"""Stalls: times in which a machine lets nothing of a producer run, seen by a thread that sleeps and oversleeps.

What is short belongs to each wake-up.  What is long is a moment in which nothing runs that would.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from forebay._runtime.clock import Clock
from forebay.tune._checks import TuneError, number, refused
from forebay.tune._json import json_of
from forebay.tune.files import in_file

MARK = "forebay-stalls"
VERSION = 1
"""Of the file."""
SLEEP_MS = 1.0
LONG_MS = 0.5
"""From which on an oversleep is a moment of its own."""
MOST_LONG = 100_000
"""Moments that are kept: more than one each 6 ms of ten minutes."""
STALLED = 0.2
"""The share of the p50 above which the stalls' p99 says that the machine is not fit for a check, nor for a sure p99."""
POINTS = 100
PLACES = 3
MAX_MS = 3_600_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """What was seen of a machine.  Without any, it never stalls.

    Raises:
        ConfigError: a number is not right.
    """

    seconds: float
    """For which was watched; if moments were left out at the end, until the last that was kept was over."""
    long: tuple[tuple[float, float], ...] = ()
    """Moments: when one began, from the beginning of the watching, and how long it was, in ms."""
    spread: tuple[float, ...] = ()
    """By how much a thread overslept, in ms and in order: the least, each hundredth of all, and the most."""

    def __post_init__(self) -> None:
        number("stalls seconds", self.seconds, 0, 7 * 86_400, above=True)
        for when, ms in self.long:
            number("stalls long, when", when, 0, 7 * 86_400_000)
            number("stalls long, ms", ms, 0, MAX_MS)
        for ms in self.spread:
            number("stalls spread", ms, 0, MAX_MS)
        if list(self.spread) != sorted(self.spread):
            raise refused("stalls spread", self.spread, "in order")

    @classmethod
    def of(cls, seen: Sequence[tuple[float, float]], seconds: float) -> Self:
        """From sleeps: when each was to end, and by how much it was longer, in ms."""
        ordered = sorted(ms for _when, ms in seen)
        last = len(ordered) - 1
        spread = [ordered[math.ceil(last * point / POINTS)] for point in range(POINTS + 1)] if ordered else []
        long = [(round(when, PLACES), round(ms, PLACES)) for when, ms in seen if ms >= LONG_MS]
        if len(long) > MOST_LONG:
            del long[MOST_LONG:]
            # Or there would be fewer a second than were seen.
            seconds = min(seconds, sum(long[-1]) / 1000)
        return cls(seconds=seconds, long=tuple(long), spread=tuple(round(ms, PLACES) for ms in spread))

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Self:
        """What a file of ``as_json`` says.

        Raises:
            ConfigError: there is none, or it is not one.
        """
        return in_file(path, lambda: cls._read(Path(path)))

    @classmethod
    def _read(cls, path: Path) -> Self:
        try:
            found = json.loads(path.read_bytes())
            version = found[MARK]
            if version == VERSION:
                return cls.of_table(found)
        except TuneError:
            raise
        except OSError as error:
            raise TuneError(f"it cannot be read: {error.strerror}") from None
        except (ValueError, TypeError, KeyError):
            raise TuneError("it has no stalls; forebay tune stalls writes such a file") from None
        raise TuneError(f"it has stalls of version {version!r}; this forebay reads {VERSION}")

    @classmethod
    def of_table(cls, found: Mapping[str, Any]) -> Self:
        """Raises TypeError, ValueError or KeyError where it is none."""
        long = tuple((float(when), float(ms)) for when, ms in found["long"])
        return cls(seconds=float(found["seconds"]), long=long, spread=tuple(map(float, found["spread"])))

    def as_json(self) -> str:
        """For a file."""
        return json_of({MARK: VERSION, "seconds": self.seconds, "spread": self.spread, "long": self.long}, indent=None)

    @property
    def p50(self) -> float:
        """Of all sleeps, in ms."""
        return self._at(0.5)

    @property
    def p99(self) -> float:
        """Of all sleeps, in ms."""
        return self._at(0.99)

    def _at(self, share: float) -> float:
        return self.spread[round(share * (len(self.spread) - 1))] if self.spread else 0.0

    @property
    def longest(self) -> float:
        """Of all sleeps, in ms."""
        return max([ms for _when, ms in self.long] + list(self.spread[-1:]), default=0.0)

    @property
    def rate(self) -> float:
        """Moments a second."""
        return len(self.long) / self.seconds

    def described(self) -> str:
        """In a sentence."""
        if not self.longest:
            return "the machine of the producer never stalls"
        often = f"{self.rate:,.3g} times a second for {LONG_MS:g} ms or more, {self.longest:,.3g} ms at most"
        return f"the machine of the producer stalls as it was seen to: {often}"


NO_STALLS = Stalls(seconds=1.0)


def watched(clock: Clock, wait: Callable[[float], object], over: Callable[[], bool]) -> Stalls:
    """Sleeps again and again until it is over.

    Args:
        wait: for so many seconds.
    """
    begun = now = clock.now()
    seen: list[tuple[float, float]] = []
    while not over():
        due = now + SLEEP_MS
        wait(SLEEP_MS / 1000)
        now = clock.now()
        seen.append((due - begun, max(0.0, now - due)))
    return Stalls.of(seen, max(0.001, (now - begun) / 1000))


def sleep(seconds: float) -> None:
    """Lets this thread do nothing for so long."""
    threading.Event().wait(seconds)


def watch(clock: Clock, wait: Callable[[float], object], seconds: float) -> Stalls:
    """Watches this machine for so long; nothing else should be asked of this process meanwhile."""
    end = clock.now() + 1000 * seconds
    return watched(clock, wait, lambda: clock.now() >= end)
