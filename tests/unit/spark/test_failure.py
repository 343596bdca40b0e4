"""What of a Spark error is shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from forebay.errors import ConfigError
from forebay.spark.failure import HIDE, raised, reason, shown_alone

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
    text = "x\nTraceback (most recent call last):\n  f\nZeroDivisionError: by zero\n"
    assert reason(RuntimeError(text)) == "ZeroDivisionError: by zero"


SITE = "/venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("files", "place"),
    [
        (["/spark-1/userFiles-2/flights.py", "/jobs/more.py"], " (more.py, line 2)"),
        (
            ["/jobs/flights.py", f"{SITE}/pandas/core.py", "/usr/lib/python3.11/json/decoder.py"],
            " (flights.py, line 1)",
        ),
        ([f"{SITE}/company/jobs.py", f"{SITE}/pandas/core.py"], " (jobs.py, line 1)"),
        ([f"{SITE}/pyspark/python/lib/pyspark.zip/pyspark/worker.py", "<frozen importlib>", "/x/py4j-0.10/a.py"], ""),
    ],
)
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("flights.Own: cannot take x", "flights.Own: cannot take x"),
        ("Own: no Error in its name", "Own: no Error in its name"),
        ("AssertionError", "AssertionError"),
        ("pyspark.errors.exceptions.base.PySparkValueError: [A_B] no", "[A_B] no"),
    ],
)
def test_a_function_that_raises_in_a_task_is_told_with_the_line_of_its_file(
    files: list[str], place: str, said: str, shown: str
) -> None:
    frames = "".join(f'  File "{file}", line {number}, in f\n    x()\n' for number, file in enumerate(files, 1))
    text = f"Lost task: PythonException: Traceback (most recent call last):\n{frames}{said}\n\n\tat java.Something"
    assert reason(RuntimeError(text)) == shown + place


def test_a_function_that_raises_here_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    for code, shown in (
        ("\n{}['k']\n", "KeyError: 'k' (mine.py, line 2)"),
        (
            "import json\njson.loads('x')\n",
            "JSONDecodeError: Expecting value: line 1 column 1 (char 0) (mine.py, line 2)",
        ),
        ("assert False\n", "AssertionError (mine.py, line 1)"),
    ):
        with pytest.raises(Exception) as caught:
            exec(compile(code, str(file), "exec"), {})
        assert raised(caught.value) == shown
    with pytest.raises(SyntaxError) as syntax:
        compile("a b\n", str(file), "exec")
    assert raised(syntax.value) == "SyntaxError: invalid syntax (mine.py, line 1)"


FAILED_READ = """An error occurred while calling o70.save.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Error while reading file:///rows.csv.  SQLSTATE: KD001
\tat org.apache.spark.Some(Some.scala:1)
Caused by: org.apache.spark.SparkException: [MALFORMED_RECORD.WITHOUT] Malformed records are detected: [y,null].
Parse Mode: FAILFAST.  SQLSTATE: 22023
\tat org.apache.spark.Some(Some.scala:1)
\t... 1 more
Caused by: java.lang.NumberFormatException: For input string: "zz"
Caused by: java.lang.NumberFormatException: For input string: "zz"
\t... 25 more
"""


def test_each_cause_of_spark_is_told_once() -> None:
    shown = 'Error while reading file:///rows.csv: Malformed records are detected: [y,null]: For input string: "zz"'
    assert reason(RuntimeError(FAILED_READ)) == shown


def test_a_cause_that_pyspark_keeps_beside_its_text_is_told_too() -> None:
    class Kept(Exception):
        _cause: Exception | None = None

    outer, inner = (
        Kept("[A] Outer sentence. SQLSTATE: KD001"),
        Kept("java.lang.Odd$OneException: [B.C] Inner sentence."),
    )
    outer._cause = inner
    assert reason(outer) == "Outer sentence: Inner sentence."


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
