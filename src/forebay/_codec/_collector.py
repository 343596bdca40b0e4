"""The interpreted twin of ``_collector.pxd``: the garbage collector held off for a few lines."""

from __future__ import annotations

import gc


def pause_collector() -> int:
    """Switches it off; whether it was on."""
    was_on = gc.isenabled()
    gc.disable()
    return was_on


def resume_collector(was_on: int) -> None:
    """Switches it on again if it was on before."""
    if was_on:
        gc.enable()
