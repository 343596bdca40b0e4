"""What settings of a producer give for a load, before it runs: the real producer on a clock that a simulation moves.

``predict`` gives latencies, requests, memory and failures for a Workload, settings and Brokers; ``advise`` proposes
better settings.  ``calibrate`` measures the brokers of a real cluster, and ``check`` sends a load to one.
Begin with ``workload``, ``brokers`` and ``goal``, the values that describe a question; ``files`` reads them from TOML.
``_world`` simulates, ``measures`` counts, and ``prediction`` has the values that come out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from forebay.tune import fleets, steps
from forebay.tune._checks import TuneError, number, whole
from forebay.tune._world.costs import Costs
from forebay.tune.brokers import Broker, Brokers, Others, Outage
from forebay.tune.files import checked_settings
from forebay.tune.fitting import trace_cluster
from forebay.tune.goal import Goal
from forebay.tune.prediction import Prediction, joined
from forebay.tune.stalls import Stalls
from forebay.tune.trace import Trace
from forebay.tune.workload import Burst, Compression, Keys, Lognormal, Stream, Workload

if TYPE_CHECKING:
    from forebay.tune.advice import Advice, advise
    from forebay.tune.calibration import Calibration, calibrate
    from forebay.tune.real_check import Checked, check
    from forebay.tune.spark import spark_write
    from forebay.tune.spark_table import SparkTable, SparkWrite

__all__ = [
    "Advice",
    "Broker",
    "Brokers",
    "Burst",
    "Calibration",
    "Checked",
    "Compression",
    "Costs",
    "Goal",
    "Keys",
    "Lognormal",
    "Others",
    "Outage",
    "Prediction",
    "SparkTable",
    "SparkWrite",
    "Stalls",
    "Stream",
    "Trace",
    "TuneError",
    "Workload",
    "advise",
    "calibrate",
    "check",
    "predict",
    "spark_write",
]

LATER = {"Advice": "advice", "advise": "advice", "Calibration": "calibration", "calibrate": "calibration"}
LATER |= {"Checked": "real_check", "check": "real_check"}
LATER |= {"SparkTable": "spark_table", "SparkWrite": "spark_table", "spark_write": "spark"}
"""Names, and their modules, which import from here."""
DEFAULT_S = 10.0
AFTER_S = 15.0
"""Seconds after the last outage, or the last change of the rate, in which the producer recovers."""
ENOUGH_RECORDS = 500_000
"""A load of more than these in ``DEFAULT_S`` is simulated for a shorter time."""
FEW_CALLS = 20
"""So many are waited for, where records or tables come seldom."""
LONGEST_S = 86_400.0
MOST_SEEDS = 100


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{LATER[name]}"), name)


def predict(
    load: Workload | Trace,
    settings: Mapping[str, Any] | None = None,
    *,
    brokers: Brokers | None = None,
    costs: Costs | None = None,
    stalls: Stalls | None = None,
    seed: int = 1,
    seeds: int = 1,
    seconds: float | None = None,
) -> Prediction:
    """Simulates a load; no broker is needed, and no time is waited for.

    Args:
        load: what comes, or what came.
        settings: of the producer, by Kafka's names; what is not given has its default, or is as it was for a trace.
        brokers: what it writes to; None: one node as fast as ``Broker()``, or what a trace shows of them.
        costs: of the client's own work; None: guesses.
        stalls: of the producer's machine; None: those of a trace, else it never stalls.
        seed: the same one gives the same prediction.
        seeds: so many simulations, from ``seed`` on, tell by how much the figures differ.  The figures are the first's.
        seconds: for which the load comes; None: ``span`` of it.

    Raises:
        ConfigError: an option that is unknown or not simulated, or a value that cannot be.
    """
    if isinstance(load, Trace):
        settings = {**load.settings, **(settings or {})}
        load = Workload.replaying(load)
    brokers, costs = brokers or brokers_of(load), costs or Costs()
    found = checked_settings(settings or {})
    time = span(load, brokers) if seconds is None else number("seconds", seconds, 0.001, 86_400)
    if stalls is None and load.trace is not None:
        stalls = load.trace.stalls
    first = whole("seed", seed, 0)
    runs = [
        fleets.predicted(load, brokers, found, costs=costs, stalls=stalls, seed=each, seconds=time)
        for each in range(first, first + whole("seeds", seeds, 1, MOST_SEEDS))
    ]
    said = joined(runs, load, brokers, costs, stalls)
    if said.fleet.above_capacity and load.producers > 1:
        said = fleets.with_nearest(said, load, brokers, costs=costs, stalls=stalls, seconds=time)
    return said


def brokers_of(load: Workload) -> Brokers:
    """The brokers of a trace as it shows them, which is a guess; else one node."""
    return Brokers() if load.trace is None else Brokers.of(trace_cluster(load.trace))


def span(load: Workload, brokers: Brokers) -> float:
    """Seconds of a load that show what there is to see: enough records, each outage and each change of the rate."""
    if load.trace is not None and not brokers.outages:
        return load.trace.seconds
    rate = load.rate * fleets.real_producers(load, DEFAULT_S)
    shortest = DEFAULT_S if rate * DEFAULT_S <= ENOUGH_RECORDS else max(1.0, ENOUGH_RECORDS / rate)
    call_s = 1 / steps.calls(load)
    shortest = max(shortest, min(LONGEST_S, FEW_CALLS * call_s, max(call_s, ENOUGH_RECORDS / rate)))
    last = max(brokers.last_outage, steps.changes(load)[-1])
    return shortest if last == 0 else math.ceil(last + max(AFTER_S, last / 4))
