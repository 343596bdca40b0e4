"""What keeps ``format("forebay")`` from being found, or from reaching the brokers: asked process by process.

A write involves up to four Pythons, and each may be another one: that of the driver; the one with which Spark plans;
those of the executors.  Besides, Spark looks a Python source up in the session that is active on the calling thread.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.errors import PySparkException

from forebay.errors import KafkaError
from forebay.spark.failure import reason
from forebay.spark.options import SinkOptions, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT_S = 15.0
"""For the brokers' answer to an executor, and for the planner's Python to start."""
LOOK = """
import importlib, json, pkgutil, platform, sys
found = {"executable": sys.executable, "python": platform.python_version(), "failing": []}
for module in pkgutil.iter_modules():
    if module.name.startswith("pyspark_"):
        try:
            importlib.import_module(module.name)
        except BaseException as error:
            found["failing"].append([module.name, f"{type(error).__name__}: {error}"])
try:
    import forebay
    found["forebay"] = f"forebay {forebay.__version__}"
except Exception as error:
    found["missing"] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""
"""What the planner's Python runs, as Spark does: it imports each module whose name begins so."""


class Finding(NamedTuple):
    """One answer; ``remedy`` is what to do where it is not ``ok``."""

    what: str
    ok: bool
    found: str
    remedy: str = ""


class Diagnosis(NamedTuple):
    """All answers, as a table of text by ``str``."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Nothing was found that would keep a write from working."""
        return all(each.ok for each in self.findings)

    def __str__(self) -> str:
        lines = []
        for each in self.findings:
            lines.append(f"{'ok  ' if each.ok else 'FAIL'}  {each.what}: {each.found}")
            if each.remedy:
                lines.append(f"      {each.remedy}")
        return "\n".join(lines)


def diagnose(session: SparkSession, options: Mapping[str, str] | None, *, registered: bool) -> Diagnosis:
    """See ``forebay.spark.doctor``.

    Args:
        registered: ``register`` was called for the session; Spark then plans with the Python of its workers.
    """
    sink = None if options is None else parse(options)
    findings = [driver()]
    context = classic_context(session)
    if context is not None:
        executable = str(context.pythonExec) if registered else plan_with(session)
        findings += [planner(executable), thread(is_active(session))]
    findings += executors(lambda: looked(session, context, sink), sink)
    return Diagnosis(tuple(findings))


def session_at(master: str | None) -> SparkSession:
    """A session for the doctor alone; None: the master of Spark's own configuration."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("forebay doctor").config("spark.ui.enabled", "false")
    return (builder if master is None else builder.master(master)).getOrCreate()


def driver() -> Finding:
    """This process."""
    import pyspark

    import forebay

    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        "driver",
        True,
        f"Python {version} ({sys.executable}), forebay {forebay.__version__}, PySpark {pyspark.__version__}",
    )


def classic_context(session: SparkSession) -> Any:
    """The SparkContext, or None with Spark Connect, whose planner and threads are the server's."""
    try:
        return session.sparkContext
    except PySparkException:
        return None


def is_active(session: Any) -> bool:
    """Whether the calling thread has an active session."""
    return bool(session._jvm.SparkSession.getActiveSession().isDefined())


def plan_with(session: Any) -> str:
    """The Python that Spark starts to find the source: the JVM's variables say it, not the session's settings."""
    variable = session._jvm.System.getenv
    return str(variable("PYSPARK_DRIVER_PYTHON") or variable("PYSPARK_PYTHON") or "python3")


Run = Callable[[list[str]], str]


def run(command: list[str]) -> str:
    """The output of a program.

    Raises:
        OSError, subprocess.SubprocessError: it cannot be run, or fails.
    """
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=WAIT_S).stdout


def planner(executable: str, run: Run = run) -> Finding:
    """The Python with which Spark plans; it must find the package by itself, or be told by ``register``."""
    remedy = (
        f"activate the environment of {sys.executable}, or set PYSPARK_PYTHON to it, before Spark starts; in a local "
        "session forebay.spark.register(spark) does"
    )
    try:
        found = json.loads(run([executable, "-c", LOOK]).splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        return Finding("planner", False, f"{executable} cannot be run: {error}", remedy)
    where = f"Python {found['python']} ({found['executable']})"
    if "missing" in found:
        return Finding("planner", False, f"{where} has no forebay: {found['missing']}", remedy)
    if found["failing"]:
        names = "; ".join(f"{name}: {error}" for name, error in found["failing"])
        return Finding(
            "planner",
            False,
            f"{where}: Spark finds no Python source at all while one of them raises: {names}",
            "mend or uninstall that package, or call forebay.spark.register(spark)",
        )
    return Finding("planner", True, f"{where}, {found['forebay']}")


def thread(active: bool) -> Finding:
    """Whether this thread has an active session, in which Spark looks the source up."""
    if active:
        return Finding("thread", True, "a session is active on this thread")
    return Finding(
        "thread",
        False,
        "no session is active on this thread, and Spark looks Python sources up in that one",
        "call forebay.spark.register(spark) on each thread that writes: "
        "ThreadPoolExecutor(8, initializer=forebay.spark.register, initargs=(spark,))",
    )


def looked(session: Any, context: Any, sink: SinkOptions | None) -> list[Any]:
    """What some executors say of themselves: host, Python, forebay or why not, and of the brokers."""
    tasks = max(2, int(context.defaultParallelism)) if context is not None else 4
    frame = session.range(0, tasks, 1, tasks).mapInArrow(
        look_from_task(sink), "host string, python string, forebay string, problem string, brokers string, topic string"
    )
    found: list[Any] = frame.distinct().collect()
    return found


def look_from_task(sink: SinkOptions | None) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function that runs in a task.  It travels as code, because a task may have no forebay to import it from."""
    options = None if sink is None else dict(sink.producer)
    topic = None if sink is None else sink.topic
    wait_s = WAIT_S

    def look(batches: Iterable[Any]) -> Iterator[Any]:
        import platform
        import sys

        import pyarrow as pa

        for _ in batches:
            pass
        row = {"host": platform.node(), "python": f"{platform.python_version()} ({sys.executable})"}
        row |= dict.fromkeys(("forebay", "problem", "brokers", "topic"), "")
        try:
            import forebay

            row["forebay"] = forebay.__version__
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is asked
            row["problem"] = f"{type(error).__name__}: {error}"
        if row["forebay"] and options is not None:
            from forebay.spark.diagnosis import reach

            row["brokers"], row["topic"] = reach(options, topic, wait_s)
        yield pa.RecordBatch.from_pylist([row])

    look.__module__ = "__main__"  # else cloudpickle takes it for importable
    return look


def reach(options: Mapping[str, str], topic: str | None, wait_s: float) -> tuple[str, str]:
    """In a task: what keeps this process from the brokers, and from the topic; "" where nothing does.

    Args:
        options: a producer's, as a write's.
    """
    from forebay.admin import AdminClient
    from forebay.spark.secrets import in_task

    try:
        with AdminClient(in_task(options)) as admin:
            found = admin.describe_cluster(topic, timeout=wait_s)
    except KafkaError as error:
        why = error.__cause__ if isinstance(error.__cause__, KafkaError) else error
        return str(why), ""
    if topic is None:
        return "", ""
    (described,) = found.topics
    if described.error is not None:
        return "", f"{topic}: {described.error}"
    if described.operations is not None and "WRITE" not in described.operations:
        return (
            "",
            f"{topic} may not be written by this user, only: {', '.join(sorted(described.operations)) or 'nothing'}",
        )
    return "", ""


def executors(look: Callable[[], list[Any]], sink: SinkOptions | None) -> Iterator[Finding]:
    """The Pythons of the executors, and with options what they reach."""
    import forebay

    try:
        rows = look()
    except Exception as error:  # noqa: BLE001 - Spark's, Py4J's or that of a worker that cannot start
        yield Finding(
            "executors",
            False,
            reason(error),
            "executors need a Python of the driver's minor version with PySpark and pyarrow: PYSPARK_PYTHON names it",
        )
        return
    for host, python, version, problem, *_ in sorted(rows):
        where = f"{host}, Python {python}"
        if problem:
            yield Finding(
                "executor",
                False,
                f"{where} has no forebay: {problem}",
                "install it there, see 'Install it on a cluster'",
            )
        elif version != forebay.__version__:
            yield Finding(
                "executor",
                False,
                f"{where} has forebay {version}, and the driver {forebay.__version__}",
                "install the same version on both",
            )
        else:
            yield Finding("executor", True, f"{where}, forebay {version}")
    if sink is not None:
        yield from reached(rows, sink)


def reached(rows: list[Any], sink: SinkOptions) -> Iterator[Finding]:
    """What executors said of brokers and topic: an empty text is no complaint."""
    servers = dict(sink.producer)["bootstrap.servers"]
    able = [row for row in rows if row[2]]
    bad = sorted({f"from {row[0]}: {row[4]}" for row in able if row[4]})
    if bad:
        remedy = "an executor must reach the advertised listeners of every broker, with the options of the write"
        yield Finding("brokers", False, f"{servers}: {'; '.join(bad)}", remedy)
    elif able:
        yield Finding("brokers", True, f"{servers} answers each executor")
    complaints = sorted({row[5] for row in able if row[5]})
    if complaints:
        yield Finding("topic", False, "; ".join(complaints), "make the topic, or give its writer the right to WRITE")
    elif sink.topic is not None and able and not bad:
        yield Finding("topic", True, f"{sink.topic} may be written")
