"""From a job's sources to the columns of records: sources, a query or a function, and the mapping."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forebay.spark.jobs.job import FIELDS, Job, Source
from forebay.spark.jobs.session import judged
from forebay.spark.jobs.table import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SESSION = "session"
"""The parameter of a transform that gets the session."""


def build_frame(job: Job, session: SparkSession, *, streaming: bool = True) -> DataFrame:
    """The rows of the query or the function, or those of the only source.

    Args:
        streaming: False reads streams as what is there now.

    Raises:
        JobError: a source, the query or the function is refused; names the table of the job file.
    """
    frames = {source.name: _read(source, session, streaming and source.stream) for source in job.sources}
    if job.function is not None:
        return _call(job, frames, session)
    if job.query is None:
        return frames[job.sources[0].name]
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    query = job.query
    return judged(lambda: session.sql(query), "[sql]")  # type: ignore[no-any-return]


def _read(source: Source, session: SparkSession, stream: bool) -> DataFrame:
    where = f"source {source.name!r}"
    if source.sql is not None:
        query = source.sql
        return judged(lambda: session.sql(query), where)  # type: ignore[no-any-return]
    reader: Any = (session.readStream if stream else session.read).options(**source.options)
    if source.table is not None:
        return judged(lambda: reader.table(source.table), where)  # type: ignore[no-any-return]
    reader = reader.format(source.format)
    if source.schema is not None:
        schema = source.schema
        reader = judged(lambda: reader.schema(schema), f"{where}, schema")
    try:
        return judged(lambda: reader.load(source.path), where)  # type: ignore[no-any-return]
    except JobError as error:
        if source.format == "kafka" and "find" in str(error):
            raise JobError(f"{where}: {_kafka_jar()}") from None
        raise


def _kafka_jar() -> str:
    from pyspark import __version__

    return (
        "to read from Kafka Spark needs a jar: [spark] conf = "
        f'{{ "spark.jars.packages" = "org.apache.spark:spark-sql-kafka-0-10_2.13:{__version__}" }}'
    )


def _call(job: Job, frames: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
    from pyspark.sql import DataFrame

    from forebay.spark.failure import raised

    assert job.function is not None
    function = _imported(job, session)
    where = f"[transform] {job.function}"
    arguments = _arguments(function, frames, session, where)
    try:
        made = function(**arguments)
    except Exception as error:
        raise JobError(f"{where}: {raised(error)}") from error
    # A Connect session has a class of its own.
    if not isinstance(made, DataFrame) and not hasattr(made, "writeStream"):
        raise JobError(f"{where} returned {type(made).__name__}; it must return a DataFrame")
    return made  # type: ignore[no-any-return]


def _arguments(
    function: Callable[..., Any], frames: Mapping[str, DataFrame], session: SparkSession, where: str
) -> Mapping[str, Any]:
    """What the function names of the sources and the session; ``**frames`` gets all other sources."""
    try:
        wanted = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise JobError(f"{where}: its parameters cannot be read: {error}") from None
    places = {**frames, SESSION: session}
    kinds = {parameter.kind for parameter in wanted.values()}
    for name, parameter in wanted.items():
        several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if name not in places and parameter.default is parameter.empty and not several:
            raise JobError(f"{where} has a parameter {name!r}, which is no source. Allowed: {', '.join(places)}")
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return {name: value for name, value in places.items() if name != SESSION or name in wanted}
    return {name: value for name, value in places.items() if name in wanted}


def _imported(job: Job, session: SparkSession) -> Callable[..., Any]:
    """The function; its module is looked for beside the job file first, and then goes to the executors too."""
    from forebay.spark.failure import raised

    assert job.function is not None
    module_name, _, name = job.function.partition(":")
    folder = str(job.path.parent)
    _forget_other(module_name, job.path.parent / f"{module_name}.py")
    sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # noqa: BLE001 -- a module of the user's may raise anything
        raise JobError(
            f"[transform] function {job.function!r}: module {module_name!r} cannot be imported: {raised(error)}"
        ) from None
    finally:
        sys.path.remove(folder)
    function = getattr(module, name, None)
    if not callable(function):
        raise JobError(f"[transform] function {job.function!r}: module {module_name!r} has no function {name!r}")
    file = getattr(module, "__file__", None)
    if file is not None and file == str(job.path.parent / f"{module_name}.py"):
        judged(lambda: session.addArtifacts(file, pyfile=True), f"[transform] {job.function}")
    return function  # type: ignore[no-any-return]


def _forget_other(name: str, own: Path) -> None:
    """Has Python import the module beside the job file, also if another job of this process had one of that name."""
    loaded = sys.modules.get(name)
    if loaded is None or not own.exists() or getattr(loaded, "__file__", None) == str(own):
        return
    if name in sys.stdlib_module_names:
        raise JobError(f"[transform] module {name!r} has the name of a module of Python's own: rename {own}")
    del sys.modules[name]


def map_rows(job: Job, frame: DataFrame) -> DataFrame:
    """The record fields: the mapped ones, and the query's own columns of those names.

    A key or value with a format is a struct here; a value with one is all columns, unless it is mapped.

    Raises:
        JobError: an expression is refused by Spark (unknown column, syntax), or there is no value.
    """
    from pyspark.sql import functions

    mapping = dict(job.mapping)
    formats = {one.part: one.format for one in job.encodings}
    if "value" not in frame.columns and formats.get("value", "raw") != "raw":
        mapping.setdefault("value", "struct(*)")
    columns: list[Any] = []
    for name in FIELDS:
        expression = mapping.get(name)
        if expression is not None:
            text = expression
            column = judged(lambda text=text: functions.expr(text), f"[map] {name}")  # type: ignore[misc]
            # One by one: Spark names the column it does not know, not the expression it stands in.
            judged(lambda column=column: frame.select(column).schema, f"[map] {name}")  # type: ignore[misc]
            columns.append(column.alias(name))
        elif frame.columns.count(name) > 1:
            raise JobError(
                f"the rows have {frame.columns.count(name)} columns {name!r}: rename one, or add {name} to [map]"
            )
        elif name in frame.columns:
            columns.append(frame[name])
    if "value" not in mapping and "value" not in frame.columns:
        raise JobError(f"[map] has no value, and the rows have no column of that name: {', '.join(frame.columns)}")
    return frame.select(*columns)
