"""What a producer's owner asks the cluster for besides producing: ``client.AdminClient``.

``_session.AdminSession`` has its own connections, polled by the thread that asks.  One thread at a time, under the
lock of ``AdminClient``.  ``_transactions``, ``_topics`` and ``_tail`` are the questions; ``_assembly`` connects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forebay.admin.client import AdminClient
else:

    def __getattr__(name):
        if name != "AdminClient":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from forebay.admin.client import AdminClient

        return AdminClient


__all__ = ["AdminClient"]


def __dir__() -> list[str]:
    return sorted(__all__)
