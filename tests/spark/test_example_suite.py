"""The example suite of a Spark job, as pytest runs it for a user."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.suites import ROOT, run

pytestmark = pytest.mark.rest("starts a JVM of its own")


def test_the_suite_of_a_spark_job_passes(workers: None, tmp_path: Path) -> None:
    counts, output = run(tmp_path, "-c", str(ROOT / "pyproject.toml"), str(ROOT / "demo/testing/test_spark_job.py"))
    assert counts.get("passed") == 1 and not {"failed", "error"} & counts.keys(), output
