"""A load whose best settings are known: figures by formula, with noise that the seed alone decides."""

from __future__ import annotations

from collections import Counter
from random import Random

from forebay._closed_forms.node import Settings
from forebay.tune.figures import Figures, Variation


class Known:
    """Requests fall with linger and batch size, latency grows with linger and with what is in flight.

    noise: of each run, alike for all settings with its seed.
    own: noise of each run that settings do not share.
    """

    def __init__(self, *, noise: float = 0.2, own: float = 0.0) -> None:
        self.noise, self.own = noise, own
        self.calls: Counter[tuple[Settings, int, float, Variation]] = Counter()
        self.seconds = 0.0

    def __call__(self, settings: Settings, seed: int, seconds: float, variation: Variation) -> Figures:
        self.calls[settings, seed, seconds, variation] += 1
        self.seconds += seconds
        shared = 1 + self.noise * (Random(seed).random() - 0.5)
        alone = 1 + self.own * (Random(f"{seed} {settings}").random() - 0.5)
        slow = 2 if variation.slow_node is not None else 1
        p99 = (settings.linger_ms + 4 * slow * settings.in_flight) * shared * alone
        requests = variation.rate * 1000 / (1 + settings.linger_ms) * 16384 / settings.batch_size
        away = variation.outage is not None
        needs = 8e6 if away else 1e5
        return Figures(
            p50=p99 / 2,
            p99=p99 + (5000 if away else 0),
            requests=requests * shared * alone,
            memory=min(needs, settings.buffer_memory),
            lost=10.0 if needs > settings.buffer_memory else 0.0,
        )
