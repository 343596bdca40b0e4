"""Picture: the two words of the metadata that each turn looks at."""

from __future__ import annotations

import cython

from forebay._cluster import Cluster


@cython.cclass
class Picture:
    """Written by Metadata, read by any thread.  Compiled, so that a turn reads them without an attribute's look-up.

    newest: the newest Cluster, replaced as a whole.
    due_at: monotonic ms from which on an update is due.
    """

    def __init__(self) -> None:
        self.newest = Cluster()
        self.due_at = float("-inf")
