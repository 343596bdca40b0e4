"""The two words of the metadata that each turn looks at."""

from __future__ import annotations

import math

from forebay._cluster import Cluster
from forebay._network.picture import Picture


def test_at_first_it_is_empty_and_due() -> None:
    picture = Picture()
    assert picture.due_at == -math.inf and picture.newest.nodes == Cluster().nodes
