"""What a producer's owner asks the cluster for besides producing: ``client.Control``.

``_session.ControlSession`` has its own connections, polled by the thread that asks.  One thread at a time, under the
lock of ``Control``.  ``_transactions``, ``_topics`` and ``_tail`` are the questions; ``_assembly`` makes connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forebay.control.client import Control
else:

    def __getattr__(name):
        if name != "Control":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from forebay.control.client import Control

        return Control


__all__ = ["Control"]


def __dir__() -> list[str]:
    return sorted(__all__)
