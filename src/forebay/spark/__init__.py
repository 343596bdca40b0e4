"""``df.write.format("forebay")`` and ``df.writeStream.format("forebay")``: DataFrames into Kafka, no jars needed.

Columns and options are those of Spark's own Kafka sink; the format's name and ``.mode("append")`` change.  This
package is imported in four kinds of Spark processes for each job, so it stays light: the producer is imported
where rows are written, in a task.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from forebay._runtime.extras import of_extra

with of_extra(__name__, "spark"):
    from forebay.spark.batches import write_batches
    from forebay.spark.failure import reason
    from forebay.spark.repartition import repartition
    from forebay.spark.source import ForebayDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from forebay.spark.diagnosis import Diagnosis

__all__ = ["ForebayDataSource", "doctor", "reason", "register", "repartition", "write_batches"]


def __dir__() -> list[str]:
    return sorted(__all__)


_registered: WeakSet[SparkSession] = WeakSet()


def register(session: SparkSession) -> None:
    """Makes the format known to ``session``, and the session to the calling thread; call it as often as you like.

    Needed where Spark's own look-up fails: on a thread that did not make the session (Spark looks Python sources up in
    the thread's active session), and in a local session whose Python was not chosen (no activated environment, no
    ``PYSPARK_PYTHON``): its workers then run with this process' interpreter.  Elsewhere it changes nothing.
    """
    from forebay.spark.diagnosis import classic_context

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
