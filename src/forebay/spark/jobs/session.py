"""The Spark session of a job: its own, that of ``spark-submit``, or a Connect server's; and how far its tasks are."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from forebay.spark.jobs.job import Job
from forebay.spark.jobs.table import JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Show = Callable[[str, int, int | None], None]
"""(what is being done, how much of it is done, how much there is; None if nobody knows)."""

EVERY_S = 0.3
"""How often Spark is asked how far it is."""
DEFAULT_MASTER = "local[*]"
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit for the Python program that it starts."""

# Quiet by default, and rows handed over in small pieces through a local socket: Arrow batches of 64 MiB, which is
# Spark's default, leave the processor's cache on their way.  A job's own conf wins.
DEFAULT_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxBytesPerBatch": "1m",
    "spark.python.unix.domain.socket.enabled": "true",
}
"""Without ``spark.python.udf.pipelined.enabled``: a task of Spark 4.3.0 may then take over a worker that has gone, and
fails with a ClosedChannelException, whatever the Python function is."""


def master_of(job: Job, environment: Mapping[str, str] = os.environ) -> str:
    """Where the job runs, for people and for ``open_session``."""
    if SUBMITTED in environment:
        return "the master of spark-submit"
    return job.master or environment.get("MASTER") or DEFAULT_MASTER


def open_session(job: Job) -> SparkSession:
    """A session as the job asks for.  Under spark-submit, what its command line says wins over the file.

    Raises:
        JobError: PySpark or Java is not there, or the session cannot start.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        from forebay.spark import reason, register
    except ImportError as error:
        raise JobError(f"PySpark is not installed ({error.name}): pip install 'forebay[spark]'") from None
    master = master_of(job)
    builder = SparkSession.builder.appName(job.name)
    conf = DEFAULT_CONF | dict(job.conf)
    if SUBMITTED in os.environ:
        conf = _not_submitted(conf)
    else:
        _prepare(master)
        builder = builder.remote(master) if _is_remote(master) else builder.master(master)
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise JobError(f"Spark cannot start on {master}: {reason(error)}") from None
    if not _is_remote(master):
        session.sparkContext.setLogLevel("OFF")  # the failures arrive as exceptions, with the reason
    register(session)
    return session


def close_session(session: SparkSession) -> None:
    """Stops a session; one whose JVM has ended cannot be stopped, and the job's result says so already."""
    with suppress(Exception):
        session.stop()


def _prepare(master: str) -> None:
    _check_java(master)
    if master.startswith("local"):
        # Spark would take the first "python3" on the PATH, which need not be the one that has this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # Everything of a local master is on this machine: it need not listen, or look itself up, on the network.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _not_submitted(conf: Mapping[str, str]) -> dict[str, str]:
    from pyspark import SparkConf

    submitted = SparkConf()
    return {key: value for key, value in conf.items() if not submitted.contains(key)}


def _is_remote(master: str) -> bool:
    """A Spark Connect server: it has the JVM, and logs where it runs."""
    return master.startswith("sc://")


def _check_java(master: str) -> None:
    home = os.environ.get("JAVA_HOME")
    if _is_remote(master):
        return
    if home and not Path(home, "bin", "java").exists():
        raise JobError(f"no Java: JAVA_HOME is {home!r}, which has no bin/java. Spark needs Java 17 or later")
    if not home and shutil.which("java") is None:
        raise JobError("no Java: Spark needs Java 17 or later on the PATH, or JAVA_HOME")


def is_connect(session: Any) -> bool:
    """Whether the driver is a Connect server, so that files of the driver are not here."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def judged(step: Callable[[], Any], where: str) -> Any:
    """Runs a step of Spark's.

    Raises:
        JobError: Spark refused it; one line that begins with ``where``.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from forebay.spark import reason

    try:
        return step()
    except (PySparkException, Py4JError) as error:
        raise JobError(f"{where}: {reason(error)}") from None


@contextmanager
def watched(session: Any, show: Show) -> Iterator[None]:
    """Tells ``show`` how many tasks of the running stages are done, while the body runs.

    A Connect session has no status to ask; nothing is shown there.
    """
    if is_connect(session):
        yield
        return
    tracker = session.sparkContext.statusTracker()
    ended = Event()
    thread = Thread(target=_watch, args=(tracker, show, ended), name="forebay-pipeline-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _watch(tracker: Any, show: Show, ended: Event) -> None:
    while not ended.wait(EVERY_S):
        try:
            done, total = tasks_of(tracker)
        except Exception:  # noqa: BLE001 -- the session may be going down; progress is not worth a failure
            return
        if total:
            show("tasks", done, total)


def tasks_of(tracker: Any) -> tuple[int, int]:
    """Tasks that are done, and all tasks, of the stages that run now."""
    done = total = 0
    for stage in tracker.getActiveStageIds():
        info = tracker.getStageInfo(stage)
        if info is not None:
            done += info.numCompletedTasks
            total += info.numTasks
    return done, total
