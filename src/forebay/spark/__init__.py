"""``df.write.format("forebay")`` and ``df.writeStream.format("forebay")``: DataFrames into Kafka, no jars needed.

Columns and options are those of Spark's own Kafka sink; the format's name and ``.mode("append")`` change.  This
package is imported in four kinds of Spark processes for each job, so it stays light: the producer is imported
where rows are written, in a task.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from forebay._runtime.extras import of_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from forebay.spark.batches import write_batches
    from forebay.spark.diagnosis import Diagnosis
    from forebay.spark.failure import reason
    from forebay.spark.repartitioning import repartition
    from forebay.spark.source import ForebayDataSource

__all__ = ["ForebayDataSource", "doctor", "reason", "register", "repartition", "write_batches"]


def __dir__() -> list[str]:
    return sorted(__all__)


# A module of one of these names would hide it.
_HOMES = {
    "ForebayDataSource": "source",
    "reason": "failure",
    "repartition": "repartitioning",
    "write_batches": "batches",
}


def __getattr__(name: str) -> Any:
    # Who reads job files (``jobs``) needs no Spark.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with of_extra(__name__, "spark"):
        home = import_module(f"{__name__}.{_HOMES[name]}")
    value = globals()[name] = getattr(home, name)
    return value


_registered: WeakSet[SparkSession] = WeakSet()


def register(session: SparkSession) -> None:
    """Makes the format known to ``session``, and the session to the calling thread; call it as often as you like.

    Needed where Spark's own look-up fails: on a thread that did not make the session (Spark looks Python sources up in
    the thread's active session), and in a local session whose Python was not chosen (no activated environment, no
    ``PYSPARK_PYTHON``): its workers then run with this process' interpreter.  Elsewhere it changes nothing.
    """
    from forebay.spark.diagnosis import classic_context
    from forebay.spark.source import ForebayDataSource

    context = classic_context(session)
    if context is not None:
        if context.master.startswith("local") and not os.environ.get("PYSPARK_PYTHON"):
            context.pythonExec = sys.executable
        classes: Any = session._jvm
        classes.SparkSession.setActiveSession(session._jsparkSession)
    session.dataSource.register(ForebayDataSource)
    _registered.add(session)


def doctor(session: SparkSession, options: Mapping[str, str] | None = None) -> Diagnosis:
    """Says what keeps a write from working: ``print(forebay.spark.doctor(spark))``.

    It looks at the Pythons of driver, planner and executors, their versions of this package, and the calling thread.
    It runs one small Spark job, and writes nothing.

    Args:
        options: those of a write.  Then each executor that ran a part of the job also asks the brokers, and whether
            the option ``topic`` names a topic that may be written.

    Raises:
        ConfigError: an option is wrong.
    """
    from forebay.spark.diagnosis import diagnose

    return diagnose(session, options, registered=session in _registered)
