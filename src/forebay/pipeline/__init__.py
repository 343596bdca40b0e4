"""A declared job: sources, SQL, a mapping to record fields, a topic; PySpark runs it on any master.

``job`` reads and judges the file without Spark; ``runner`` does what it says.
"""

from __future__ import annotations

from forebay.pipeline.job import Job, JobError, load

__all__ = ["Job", "JobError", "load"]


def __dir__() -> list[str]:
    return sorted(__all__)
