"""``python -m tests.soak --seed N --seconds S``: the random run, on three brokers of its own.

Its status is 1 when a promise was broken, 2 when there are no brokers to be had.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.soak.run import soak
from tests.soak.secrets import SecretFaults
from tests.support.secure import add_scram_users
from tests.support.three import NODES, PROPERTIES, Three, three_listeners
from tools.kafka import JarsUnavailable, KafkaFailed, RealKafka


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description="Faults under load, checked from outside."
    )
    parser.add_argument("--seed", default=None, help="repeats the loads and faults of the run that printed it")
    parser.add_argument("--seconds", type=float, default=1800.0, help="how long (default: %(default)g)")
    parser.add_argument(
        "--secure",
        action="store_true",
        help="over SASL_SSL where no proxy is, with certificates, salts and passwords that change",
    )
    options = parser.parse_args()
    # What the producers warn of, and records that ran out of time, are what the faults are for.
    logging.getLogger("forebay").setLevel(logging.CRITICAL)
    seed = options.seed or str(time.time_ns() // 1_000_000)
    try:
        with tempfile.TemporaryDirectory() as folder:
            ca, listeners = three_listeners(Path(folder))
            with RealKafka(nodes=NODES, properties=PROPERTIES, listeners=listeners) as kafka:
                add_scram_users(kafka)
                secrets = SecretFaults(Three(kafka, ca, Path(folder))) if options.secure else None
                say = partial(print, flush=True)
                found = soak(kafka, seed, options.seconds, say=say, secrets=secrets)
    except (JarsUnavailable, KafkaFailed) as error:
        print(f"soak: {error}", file=sys.stderr)
        return 2
    if found:
        print(f"soak: {found} findings; repeat with --seed {seed}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
