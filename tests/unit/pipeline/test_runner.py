"""What of a Spark error is shown, and what ends a job before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.pipeline.runner import first_line, run

TASK_FAILURE = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task
Traceback (most recent call last):
  File "worker.py", line 1, in main
ValueError: inner
The above exception was the direct cause of the following exception:
Traceback (most recent call last):
  File "writer.py", line 5, in write
forebay.spark.writer.DeliveryError: Spark partition 0, attempt 0: 2 of 5 rows were not acknowledged; first, row 1: X
\tat org.apache.spark.Something(Some.scala:1)
"""


def test_a_task_failure_is_the_sinks_own_line() -> None:
    shown = first_line(RuntimeError(TASK_FAILURE))
    assert shown == "Spark partition 0, attempt 0: 2 of 5 rows were not acknowledged; first, row 1: X"


def test_any_other_python_failure_is_its_last_line() -> None:
    assert (
        first_line(RuntimeError("x\nTraceback (most recent call last):\n  f\nZeroDivisionError: by zero\n"))
        == "by zero"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `a` cannot be resolved.\nplan",
            "A column `a` cannot be resolved.",
        ),
        ("\n  plain\n", "plain"),
        ("An error occurred while calling o3.load.\n: org.x.NoException: [A.B] No such thing.\n\tat", "No such thing."),
        ("", "RuntimeError"),
    ],
)
def test_a_spark_error_is_its_first_line_without_the_class(text: str, shown: str) -> None:
    assert first_line(RuntimeError(text)) == shown


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
