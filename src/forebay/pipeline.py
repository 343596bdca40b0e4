"""Declared jobs; they are written in ``forebay.spark.jobs``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forebay.spark.jobs import Job, JobError, load

if TYPE_CHECKING:
    from forebay.spark.jobs import PipelineResult, run

__all__ = ["Job", "JobError", "PipelineResult", "load", "run"]


def __getattr__(name: str) -> Any:
    # A caller who only reads job files needs no Spark.
    if name in ("PipelineResult", "run"):
        from forebay.spark import jobs

        return getattr(jobs, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
