"""Which master a job gets, and what ends it before Spark starts."""

from __future__ import annotations

import pytest

from forebay.spark.jobs.session import SUBMITTED, judged, master_of
from forebay.spark.jobs.table import JobError
from tests.unit.spark.jobs.test_job import job


@pytest.mark.parametrize(
    ("master", "environment", "expected"),
    [
        (None, {}, "local[*]"),
        (None, {"MASTER": "yarn"}, "yarn"),
        ("local[2]", {"MASTER": "yarn"}, "local[2]"),
        ("local[2]", {SUBMITTED: "1"}, "the master of spark-submit"),
    ],
)
def test_the_master(master: str | None, environment: dict[str, str], expected: str) -> None:
    assert master_of(job(master=master), environment) == expected


def test_what_spark_refuses_begins_with_the_place() -> None:
    from pyspark.errors import AnalysisException

    def step() -> None:
        raise AnalysisException("[TABLE] no such table\nat line 1")

    with pytest.raises(JobError, match=r"^\[sql\]: .*no such table"):
        judged(step, "[sql]")
