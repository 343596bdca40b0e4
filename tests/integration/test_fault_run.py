"""A minute of random faults under load against three real brokers, checked from outside.

The seed is printed; ``FOREBAY_SEED=...`` repeats its loads and faults.  ``make soak`` runs for longer.
"""

from __future__ import annotations

import os
import time
from collections import Counter

from tests.soak.run import Soak
from tests.soak.secrets import SecretFaults
from tests.support.three import Three
from tools.kafka import RealKafka

SEED = "FOREBAY_SEED"
SECONDS = 60
LEAST_FAULTS, LEAST_KINDS = 10, 4
CHANGES = {"new certificates", "new salt", "new password"}
LEAST_RECORDS = 500
"""Of each load: one that does nothing would find nothing."""


def are_enough(kinds: Counter[str], acknowledged: dict[str, int]) -> bool:
    """A busy machine needs more than a minute for them."""
    faults = kinds.total() >= LEAST_FAULTS and len(kinds) >= LEAST_KINDS and set(kinds) >= CHANGES
    return faults and min(acknowledged.values()) >= LEAST_RECORDS


def test_a_minute_of_random_faults(three: Three, three_kafka: RealKafka) -> None:
    seed = os.environ.get(SEED) or str(time.time_ns() // 1_000_000)
    print(f"{SEED}={seed} repeats this run")
    run = Soak(three_kafka, seed, secrets=SecretFaults(three))
    try:
        verdict = run.round(SECONDS, lambda kinds: are_enough(kinds, run.acknowledged()))
    finally:
        run.close()
    print(verdict)
    assert verdict.found() == 0
    assert verdict.kinds().total() >= LEAST_FAULTS
    assert len(verdict.kinds()) >= LEAST_KINDS
    acknowledged = {load: told.get("acknowledged", 0) for load, told in verdict.told.items()}
    assert {load: count for load, count in acknowledged.items() if count < LEAST_RECORDS} == {}
    refusals = {load: [name for name in told if "Authentication" in name] for load, told in verdict.told.items()}
    assert {load: names for load, names in refusals.items() if names} == {}, "no record fails because secrets change"
    assert set(verdict.kinds()) >= CHANGES
    told = verdict.told["transactions"]
    assert told["committed"] > 0 and told["aborted"] > 0
