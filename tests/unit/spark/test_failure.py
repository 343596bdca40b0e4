"""What of a Spark error is shown."""

from __future__ import annotations

import os

import pytest

from forebay.errors import ConfigError
from forebay.spark.failure import HIDE, reason, shown_alone

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
    shown = reason(RuntimeError(TASK_FAILURE))
    assert shown == "Spark partition 0, attempt 0: 2 of 5 rows were not acknowledged; first, row 1: X"


def test_any_other_python_failure_is_its_last_line() -> None:
    assert reason(RuntimeError("x\nTraceback (most recent call last):\n  f\nZeroDivisionError: by zero\n")) == "by zero"


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
    assert reason(RuntimeError(text)) == shown


@pytest.mark.parametrize(
    "text",
    [
        "[PYTHON_DATA_SOURCE_ERROR] Failed: forebay.errors.ConfigError: Unknown option 'x'\n SQLSTATE: 38000",
        "[STREAM_FAILED] Query [id] terminated: forebay.spark.writer.DeliveryError: Unknown option 'x'\n=== Query ===",
    ],
)
def test_the_sinks_own_sentence_is_found_without_a_traceback_too(text: str) -> None:
    assert reason(RuntimeError(text)) == "Unknown option 'x'"


@pytest.mark.parametrize(
    ("error", "hidden"), [(ConfigError("x"), "1"), (ImportError("x"), "1"), (ValueError("x"), None)]
)
def test_only_errors_that_say_what_to_do_hide_their_trace(
    error: Exception, hidden: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HIDE, "")
    monkeypatch.delenv(HIDE)
    with pytest.raises(type(error)), shown_alone():
        raise error
    assert os.environ.get(HIDE) == hidden
