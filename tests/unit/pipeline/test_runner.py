"""What ends a job before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.pipeline.runner import run


def test_a_bad_job_file_ends_before_spark_starts(tmp_path: Path) -> None:
    result = run(tmp_path / "none.toml")
    assert result.exit_code == 1
    assert result.error == f"job file {str(tmp_path / 'none.toml')!r} does not exist"


def test_no_java_is_said_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = tmp_path / "job.toml"
    job.write_text('[source]\nformat = "rate"\n[sink]\ntopic = "t"\n[producer]\nbootstrap.servers = "h:1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = run(job)
    assert result.exit_code == 1
    assert result.error is not None and result.error.startswith(f"no Java: JAVA_HOME is {str(tmp_path)!r}")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(job).error == "no Java: Spark needs Java 17 or later on the PATH, or JAVA_HOME"
