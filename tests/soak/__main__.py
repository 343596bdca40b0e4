"""``python -m tests.soak --seed N --seconds S``: the random run, on three brokers of its own.

Its status is 1 when a promise was broken, 2 when there are no brokers to be had.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.soak.run import soak
from tests.support.three import NODES, PROPERTIES
from tools.kafka import JarsUnavailable, KafkaFailed, RealKafka


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description="Faults under load, checked from outside."
    )
    parser.add_argument("--seed", default=None, help="repeats the loads and faults of the run that printed it")
    parser.add_argument("--seconds", type=float, default=1800.0, help="how long (default: %(default)g)")
    options = parser.parse_args()
    # What the producers warn of, and records that ran out of time, are what the faults are for.
    logging.getLogger("forebay").setLevel(logging.CRITICAL)
    seed = options.seed or str(time.time_ns() // 1_000_000)
    try:
        with RealKafka(nodes=NODES, properties=PROPERTIES) as kafka:
            found = soak(kafka, seed, options.seconds, say=lambda text: print(text, flush=True))
    except (JarsUnavailable, KafkaFailed) as error:
        print(f"soak: {error}", file=sys.stderr)
        return 2
    if found:
        print(f"soak: {found} findings; repeat with --seed {seed}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
