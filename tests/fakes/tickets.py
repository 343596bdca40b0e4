"""A ticket that counts its wakes."""

from __future__ import annotations

from collections.abc import Callable

from forebay._runtime.ticket import Ticket


class CountingTicket(Ticket):
    """``woken`` counts; ``on_wake`` runs in the wake, on the waking thread."""

    __slots__ = ("on_wake", "woken")

    def __init__(self, on_wake: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.woken = 0
        self.on_wake = on_wake

    def wake(self) -> None:
        self.woken += 1
        if self.on_wake is not None:
            self.on_wake()
