"""A declared job: sources, a transform, a mapping to record fields, a format, a topic; PySpark runs it on any master.

``loading`` reads and checks the file without Spark; ``runner`` does what it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forebay.spark.jobs.job import Job
from forebay.spark.jobs.loading import load
from forebay.spark.jobs.table import JobError

if TYPE_CHECKING:
    from forebay.spark.jobs.runner import PipelineResult, run

__all__ = ["Job", "JobError", "PipelineResult", "load", "run"]


def __getattr__(name: str) -> Any:
    # A caller who only reads job files needs no Spark.
    if name in ("PipelineResult", "run"):
        from forebay.spark.jobs import runner

        return getattr(runner, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
