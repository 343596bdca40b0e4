"""What ends a job before Spark starts, and with which exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.pipeline import load, run
from forebay.spark.jobs.runner import stream_counters
from forebay.spark.jobs.session import close_session

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
        f"{job}: [sink.options] Unknown option 'includeHeader'; did you mean 'includeHeaders'"
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


def test_the_counters_of_a_stream_have_a_place_wherever_its_checkpoint_is(tmp_path: Path) -> None:
    with stream_counters("/m.json", "s3://b/c") as path:
        assert path == "/m.json"
    with stream_counters(None, str(tmp_path / "not" / "there" / "c/")) as path:
        assert path == str(tmp_path / "not" / "there" / "c.counters.json")
        Path(path).touch()
    assert Path(path).exists()
    with stream_counters(None, "s3://bucket/c") as path:
        Path(path).touch()
    assert not Path(path).exists()


def test_a_session_whose_java_has_ended_is_closed_without_a_word() -> None:
    class Gone:
        def stop(self) -> None:
            raise ConnectionRefusedError("no JVM")

    close_session(Gone())  # type: ignore[arg-type]
