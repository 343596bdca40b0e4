"""``forebay tune spark``: what a DataFrame's write asks of the brokers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from forebay.cli.failure import FAILED, OK, CommandError
from forebay.spark.jobs import Job, load
from forebay.spark.jobs.table import duration
from forebay.tune import Brokers, Compression, SparkTable, own_costs, spark_write
from forebay.tune._checks import size
from forebay.tune.files import in_file, read_cluster
from forebay.tune.spark_text import write_text

LOCAL = re.compile(r"local\[(\d+)\]")
ARROW = "spark.sql.execution.arrow.maxBytesPerBatch"
OF_JOBS = "1m"
"""What ``forebay pipeline run`` sets, where a job says nothing."""


class Told(NamedTuple):
    """What a job file says of its write."""

    options: Mapping[str, str]
    keyed: bool
    grouped: bool
    tasks: int | None
    arrow_bytes: int
    trigger_s: float | None


def told_by(job: Job) -> Told:
    """What a job's file says; its rows and their bytes are known when it runs.

    Raises:
        ConfigError: a value of Spark's that cannot be read.
    """
    master = LOCAL.fullmatch(job.master or "")
    given = str(job.conf.get(ARROW, OF_JOBS)).strip().lower()
    # Spark's units are powers of two, with or without the b.
    unit = re.fullmatch(r"(\d+)([kmg])b?", given)
    trigger = None if job.stream is None else job.stream.trigger
    keyed = not {"key", "partition"}.isdisjoint(job.mapping) or any(one.part == "key" for one in job.encodings)
    return Told(
        options=job.producer,
        keyed=keyed,
        grouped=keyed and job.sink.repartition,
        tasks=int(master[1]) if master else None,
        arrow_bytes=size(ARROW, f"{unit[1]} {unit[2]}iB" if unit else given),
        trigger_s=duration(trigger, "[stream] trigger") if trigger is not None and trigger[0].isdigit() else None,
    )


def spark(
    path: str | None,
    values: Mapping[str, Any],
    options: Mapping[str, str],
    write: Callable[[str], object],
    *,
    cluster: str | None,
    busy: float,
    trigger_s: float | None,
    seed: int,
    as_json: bool,
) -> int:
    """Simulates a write; the exit code.

    Args:
        path: of a job file.
        values: fields of SparkTable, None where they are not given; they replace what the job says.
        options: of the producer, which replace the job's.

    Raises:
        CommandError: neither the job nor the command line says what is needed.
        ConfigError: the job, the cluster's file or a value is not right.
    """
    told = None if path is None else told_by(load(path))
    given = {name: value for name, value in values.items() if value is not None}
    if told is not None:
        given = {"keyed": told.keyed, "grouped": told.grouped, "arrow_bytes": told.arrow_bytes, **given}
        given.setdefault("tasks", told.tasks)
        trigger_s = told.trigger_s if trigger_s is None else trigger_s
    ratio = given.pop("ratio", None)
    for name, flag in (("rows", "--rows"), ("row_bytes", "--bytes"), ("tasks", "--tasks")):
        if given.get(name) is None:
            where = "" if path is None else f"; {path} does not say it"
            raise CommandError(f"{flag} is missing{where}")
    before = {} if told is None else told.options
    table = SparkTable(
        **given,
        options={**before, **{name.replace("_", "."): value for name, value in options.items()}},
        compression=None if ratio is None else Compression(ratio),
    )
    brokers = Brokers() if cluster is None else in_file(cluster, lambda: Brokers.of(read_cluster(cluster)))
    costs = own_costs.kept(own_costs.cache_file(), own_costs.machine())
    found = spark_write(table, brokers=brokers, costs=costs, seed=seed, busy=busy, trigger_s=trigger_s)
    write((found.as_json() if as_json else write_text(found)).rstrip("\n"))
    return OK if found.fits else FAILED
