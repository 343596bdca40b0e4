"""What ends a job before Spark starts, and with which exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.pipeline import load, run

JOB = '[source]\nformat = "rate"\n[sink]\ntopic = "t"\n{sink}\n[producer]\nbootstrap.servers = "h:1"\n'


def test_a_bad_job_file_ends_before_spark_starts(tmp_path: Path) -> None:
    result = run(tmp_path / "none.toml")
    assert result.exit_code == 2
    assert result.error == f"job file {str(tmp_path / 'none.toml')!r} does not exist"


def test_a_bad_option_of_the_sink_ends_before_spark_starts(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text(JOB.format(sink="options = { includeHeader = true }"))
    result = run(load(job))
    assert result.exit_code == 2
    assert result.error is not None
    assert result.error.startswith(
        f"{job}: [sink.options] Unknown option 'includeheader'; did you mean 'includeHeaders'"
    )


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("append", "Option 'txnAppId' is for batch writes; a stream has its query's id"),
        ("update", "Option 'txnVersion' is the micro-batch's number here; leave it out"),
    ],
)
def test_options_of_a_stream_are_judged_as_such(mode: str, message: str, tmp_path: Path) -> None:
    exactly = 'deliveryGuarantee = "exactly-once", transactionalIdPrefix = "p", txnAppId = "a", txnVersion = 1'
    path = tmp_path / "job.toml"
    stream = f'[stream]\ncheckpoint = "c"\noutput_mode = "{mode}"\n'
    path.write_text(JOB.format(sink=f"options = {{ {exactly} }}") + stream)
    result = run(path)
    assert result.exit_code == 2 and result.error is not None and message in result.error


def test_no_java_is_said_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = tmp_path / "job.toml"
    job.write_text(JOB.format(sink=""))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = run(job)
    assert result.exit_code == 1
    assert result.error is not None and result.error.startswith(f"no Java: JAVA_HOME is {str(tmp_path)!r}")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(job).error == "no Java: Spark needs Java 17 or later on the PATH, or JAVA_HOME"
