"""Costs: what the producer's own work takes, of its sender's thread and of the threads that send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from forebay._records.compression import CompressionType, Compressor
from forebay.tune._checks import number

OF_ROW = 0.1
"""What a row of a table takes of the caller's time, by what a call of send takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Times in ms of one processor.  The defaults are guesses: measure where small times matter."""

    wake: float = 0.05
    """From an event until the sender's thread runs."""
    turn: float = 0.02
    request: float = 0.01
    batch: float = 0.005
    record: float = 0.0005
    """Of a call of send."""
    switch: float = 0.0
    """The longest wait of the sender's thread for the interpreter's lock, before each turn: ``sys.getswitchinterval()``
    where another thread of the process computes."""

    @property
    def row(self) -> float:
        """Of a row of a table that send_batch takes."""
        return OF_ROW * self.record

    def __post_init__(self) -> None:
        for field in fields(self):
            number(f"costs {field.name}", getattr(self, field.name), 0, 1000)

    def of_turn(self, requests: int, batches: int) -> float:
        """A turn of the sender's thread that wrote so much."""
        return self.turn + self.request * requests + self.batch * batches


class RatioCompressor(Compressor):
    """Makes of a batch the share of its bytes that the user said, and tells the time that the codec would take."""

    def __init__(self, kind: CompressionType, ratio: Callable[[int], float], charge: Any) -> None:
        super().__init__(0)
        self.type = kind
        self._ratio = ratio
        self._charge = charge

    def compress(self, chunks: Sequence[Any], topic: str = "") -> bytes:
        """As ``Compressor.compress``; the bytes mean nothing."""
        size = sum(len(chunk) for chunk in chunks)
        self._charge(size)
        return bytes(max(1, round(size * self._ratio(size))))

    def bound(self, size: int, chunks: int = 1) -> int:
        """As ``Compressor.bound``."""
        return size + 64
