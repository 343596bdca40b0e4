"""Calls that wait, on a thread of their own, while the test takes the sender's turns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from forebay.model import ProducerRecord, RecordMetadata
from tests.fakes.world import Told, World


class Watching:
    """An interceptor that keeps what it is told."""

    def __init__(self, change: Callable[[ProducerRecord], ProducerRecord] | None = None) -> None:
        self.change = change
        self.acknowledged = Told()

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record if self.change is None else self.change(record)

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None) -> None:
        self.acknowledged(metadata, error)


def meanwhile(world: World, call: Callable[[], Any], *, limit: int = 4000, step: float = 1) -> Any:
    """``call`` on another thread, while the sender takes turns here and the clock moves by ``step`` ms a turn."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(call())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test looks at it
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    for _ in range(limit):
        world.turn()
        world.advance(step)
        thread.join(0.002)
        if not thread.is_alive():
            break
    assert not thread.is_alive(), "it still waits"
    return outcome[0]
