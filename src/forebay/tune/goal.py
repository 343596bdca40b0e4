"""Goal: what is to become least, and what must hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from forebay.tune._checks import choice, number, refused, size, whole
from forebay.tune.files import in_file, read

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

LEAST = ("requests", "latency", "memory", "cpu", "bytes")
LIMITS: Mapping[str, str] = {
    "p50_ms": "ms of the median latency",
    "p99_ms": "ms of the 99th percentile of latency",
    "memory": "bytes of buffer.memory in use",
    "lost": "records that failed",
    "hold_ms": "ms that a call of send() was held",
}
"""The limits that a goal may set, and what they count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What settings are to reach.  A limit that is None does not count."""

    least: str = "requests"
    p50_ms: float | None = None
    p99_ms: float | None = None
    memory: int | None = None
    """Bytes; also given as a text such as ``64 MiB``."""
    lost: int | None = None
    hold_ms: float | None = None

    def __post_init__(self) -> None:
        choice("least", self.least, LEAST)
        checks: dict[str, Callable[[str, object], float]] = {
            "p50_ms": lambda key, value: number(key, value, 0, above=True),
            "p99_ms": lambda key, value: number(key, value, 0, above=True),
            "memory": lambda key, value: size(key, value, 1),
            "lost": lambda key, value: whole(key, value, 0),
            "hold_ms": lambda key, value: number(key, value, 0),
        }
        for key, check in checks.items():
            value = getattr(self, key)
            if value is not None:
                object.__setattr__(self, key, check(key, value))
        if self.p50_ms is not None and self.p99_ms is not None:
            if self.p99_ms < self.p50_ms:
                raise refused("p99_ms", self.p99_ms, f"at least p50_ms, which is {self.p50_ms:g}")

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Self:
        """The table ``[goal]`` of a file.

        Raises:
            ConfigError: no such file, or something in it is not right.
        """
        return in_file(path, lambda: cls(**read(path).goal))

    def limits(self) -> dict[str, float]:
        """The limits that are set, by their names."""
        return {key: value for key in LIMITS if (value := getattr(self, key)) is not None}

    def broken(self, figures: Mapping[str, float]) -> list[str]:
        """The limits that ``figures``, which have the same names, do not keep; each a sentence."""
        return [
            f"{key} is {figures[key]:g}, above {limit:g} ({LIMITS[key]})"
            for key, limit in self.limits().items()
            if figures[key] > limit
        ]
