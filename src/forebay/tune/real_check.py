"""``check``: a load is predicted and sent for real, and what came out stands side by side.

``checking`` measures and compares; a ``Plan`` is what can be asked about before anything is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from forebay._closed_forms.wording import counted
from forebay._runtime.clock import SystemClock
from forebay.config import ProducerConfig
from forebay.producer import KafkaProducer
from forebay.tune import checking, predict
from forebay.tune._checks import TuneError, number, whole
from forebay.tune._json import json_of
from forebay.tune.brokers import Brokers
from forebay.tune.files import checked_settings

if TYPE_CHECKING:
    from forebay.tune._world.costs import Costs
    from forebay.tune.checking import Measured, Row
    from forebay.tune.prediction import Prediction
    from forebay.tune.stalls import Stalls
    from forebay.tune.workload import Workload

VERSION = 1
"""Of the JSON."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was predicted of a load, and what it gave."""

    topic: str
    seconds: float
    """For which the load came."""
    seed: int
    predicted: Prediction
    measured: Measured
    rows: tuple[Row, ...]
    """The figures side by side."""

    @property
    def kept(self) -> bool:
        """Whether no figure is outside its tolerance."""
        return all(row.kept for row in self.rows)

    def as_text(self) -> str:
        """A table for people."""
        return checking.comparison_text([*self.rows], self.measured)

    def as_json(self) -> str:
        """All of it."""
        rows = [{**asdict(row), "kept": row.kept} for row in self.rows]
        found = {"version": VERSION, "kept": self.kept, **asdict(self), "rows": rows}
        return json_of(found)


@dataclass(frozen=True, slots=True)
class Plan:
    """A check that can be made: the load as the topic takes it, and the settings of the producer."""

    load: Workload
    config: ProducerConfig
    simulated: Mapping[str, Any]
    """The settings of the prediction."""
    topic: str
    partitions: int
    brokers: Brokers
    seconds: float
    seed: int

    def carried_out(self, costs: Costs | None, stalls: Stalls | None = None) -> Checked:
        """Predicts, then sends.

        Args:
            stalls: of this machine, as they are known before; those of the run are counted in a second prediction.

        Raises:
            KafkaError: the producer cannot be made, or refuses a record.
        """
        simulate = partial(
            predict, self.load, self.simulated, brokers=self.brokers, costs=costs, seed=self.seed, seconds=self.seconds
        )
        predicted = simulate(stalls=stalls)
        with KafkaProducer(self.config) as producer:
            checking.warm_up(producer, self.topic, self.partitions)
            measured = checking.measure(
                producer,
                self.load,
                self.topic,
                seconds=self.seconds,
                seed=self.seed,
                batch_size=self.config["batch.size"],
                clock=SystemClock(),
            )
        rows = tuple(checking.compared(predicted, measured, simulate(stalls=measured.stalls)))
        return Checked(self.topic, self.seconds, self.seed, predicted, measured, rows)


def producer_config(settings: Mapping[str, Any]) -> ProducerConfig:
    """Of the producer that sends.

    Raises:
        ConfigError: an unknown option, a value that cannot be, or one that a check cannot send with.
    """
    found = ProducerConfig({**settings, "enable.metrics.push": False})
    if found["compression.type"] != "none":
        raise TuneError(f"compression.type is {found['compression.type']}; a check sends no compressed batches")
    return found


def plan(
    load: Workload,
    settings: Mapping[str, Any],
    topic: str,
    found: tuple[int, int],
    *,
    brokers: Brokers,
    seconds: float,
    seed: int,
) -> Plan:
    """The check of a load.

    Args:
        found: what ``checking.scratch`` says of the topic.
        brokers: their outages do not count.

    Raises:
        ConfigError: the load or the settings cannot be sent to this topic by one producer.
    """
    partitions, leaders = found
    if leaders != len(brokers.nodes):
        raise TuneError(
            f"the cluster is said to have {counted(len(brokers.nodes), 'node')}; {leaders} lead partitions of {topic}"
        )
    return Plan(
        load=checking.load_of(load, topic, partitions),
        config=producer_config(settings),
        simulated=checked_settings(settings),
        topic=topic,
        partitions=partitions,
        brokers=brokers.with_outages(),
        seconds=number("seconds", seconds, 0.001, 86_400),
        seed=whole("seed", seed, 0),
    )


def check(
    load: Workload,
    settings: Mapping[str, Any],
    topic: str,
    *,
    brokers: Brokers | None = None,
    costs: Costs | None = None,
    stalls: Stalls | None = None,
    seconds: float = 60.0,
    seed: int = 1,
) -> Checked:
    """Sends a load for real, and compares what was measured with what is predicted of it.

    Whoever calls this agrees that the topic is filled.

    Args:
        load: of one topic; the records go to ``topic``.
        settings: of the producer, by Kafka's names, with how the cluster is reached.
        topic: its partitions are as many as those of the load's topic, and it has records of the tuner alone.
        brokers: of the prediction; None: one node as fast as ``Broker()``.  Their outages do not count.
        costs: of the client's own work; None: guesses.
        stalls: of this machine; None: those of a trace, else none are known before.
        seconds: for which the load comes.
        seed: the same one gives the same load.

    Raises:
        ConfigError: an option, the load or the topic is not right.
        KafkaError: the brokers refuse.
    """
    found = checking.scratch(producer_config(settings), topic)
    planned = plan(load, settings, topic, found, brokers=brokers or Brokers(), seconds=seconds, seed=seed)
    return planned.carried_out(costs, stalls)
