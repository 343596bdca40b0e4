"""Random loads, costs and settings for the closed forms."""

from __future__ import annotations

import math
from random import Random

from forebay._closed_forms.node import NodeCost, NodeLoad, Settings

SHARES = {1: (1.0,), 2: (0.62, 0.38), 3: (0.45, 0.34, 0.21)}
PARTITIONS = {1: (1,), 2: (5, 3), 3: (4, 3, 2)}
"""Of the nodes: unequal, so that the median does not stand between a fast and a slow node."""

Nodes = list[tuple[NodeLoad, NodeCost]]


def drawn(seed: int) -> tuple[Nodes, Settings]:
    """A load over wide ranges of everything: one to three nodes, keyed or not, one to five sizes."""
    random = Random(seed)
    count = random.choice((1, 1, 2, 3))
    keyed = random.random() < 0.5
    rate = 10 ** random.uniform(1.7, 4.7)
    sizes = drawn_sizes(random)
    partitions = [random.choice((1, 2, 4, 12, 30)) * each for each in (PARTITIONS[count] if not keyed else [1] * count)]
    skew = random.choice((0.0, 0.5, 1.0))
    nodes = []
    for at, here in enumerate(partitions):
        share = SHARES[count][at] if keyed else here / sum(partitions)
        shares = tuple(1 / (number + 1) ** skew for number in range(here)) if keyed else None
        nodes.append((NodeLoad(rate * share, sizes, shares, partitions=here), drawn_cost(random)))
    # With small batches, because a run has to see the sticky partition on each node many times.
    batches = (1 << 14, 1 << 15, 1 << 16, 1 << 18) if count == 1 or keyed else (1 << 14, 1 << 15)
    linger = random.choice((0, 1, 2, 5, 10, 20, 50, 100))
    return nodes, Settings(linger, random.choice(batches), random.choice((1, 2, 3, 5)))


def drawn_sizes(random: Random) -> tuple[tuple[float, float], ...]:
    """Sizes around a median, with random shares."""
    median = 10 ** random.uniform(1.9, 4)
    kinds = range(random.choice((1, 1, 2, 3, 5)))
    weights = [random.uniform(0.2, 1) for _ in kinds]
    return tuple((float(round(median * 2 ** random.uniform(-1.5, 1.5))), each / sum(weights)) for each in weights)


def drawn_cost(random: Random) -> NodeCost:
    """A broker near or far, fast or slow."""
    return NodeCost(
        rtt_ms=10 ** random.uniform(-1, 1.3),
        fixed_ms=10 ** random.uniform(-1, 1),
        per_mib_ms=random.choice((0.0, 3.0, 10.0)),
        bandwidth=random.choice((math.inf, 1e8, 1.25e7)),
    )
