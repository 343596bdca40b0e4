"""What the doctor says of each cause; tests/spark asks a real session."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import forebay
from forebay.model import ClusterDescription, TopicDescription
from forebay.spark import diagnosis
from forebay.spark.diagnosis import Diagnosis, Finding, executors, look_from_task, planner, reached, thread
from forebay.spark.options import parse

SINK = parse({"kafka.bootstrap.servers": "h:1", "topic": "t"})
GOOD: dict[str, Any] = {"executable": "/p", "python": "3.11.7", "failing": [], "forebay": "forebay 1"}
HERE = ("one", "3.11.7 (/p)", forebay.__version__, "", "", "")


def fails(command: list[str]) -> str:
    raise subprocess.CalledProcessError(1, command)


def absent(command: list[str]) -> str:
    raise FileNotFoundError(2, "No such file or directory", command[0])


@pytest.mark.parametrize(
    ("run", "ok", "words"),
    [
        (lambda command: "a line of somebody's\n" + json.dumps(GOOD), True, "Python 3.11.7 (/p), forebay 1"),
        (
            lambda command: json.dumps({**GOOD, "missing": "ModuleNotFoundError: No module named 'forebay'"}),
            False,
            "has no forebay: ModuleNotFoundError",
        ),
        (
            lambda command: json.dumps({**GOOD, "failing": [["pyspark_other", "ValueError: x"]]}),
            False,
            "no Python source at all while one of them raises: pyspark_other: ValueError: x",
        ),
        (lambda command: "no json", False, "python7 cannot be run"),
        (lambda command: "", False, "python7 cannot be run"),
        (fails, False, "python7 cannot be run"),
        (absent, False, "python7 cannot be run"),
    ],
)
def test_each_planner(run: Any, ok: bool, words: str) -> None:
    found = planner("python7", run)
    assert (found.what, found.ok) == ("planner", ok)
    assert words in found.found
    assert bool(found.remedy) is not ok


def test_the_planners_program_runs_here() -> None:
    found = planner(sys.executable)
    assert found.ok and f"forebay {forebay.__version__}" in found.found, found


def test_a_thread_without_a_session_is_told_what_to_call() -> None:
    assert thread(True).ok
    assert not thread(False).ok and "register(spark) on each thread" in thread(False).remedy


def raises() -> list[Any]:
    raise RuntimeError("[PYTHON_VERSION_MISMATCH] Python in worker has different version")


def changed(place: int, text: str) -> tuple[str, ...]:
    return (*HERE[:place], text, *HERE[place + 1 :])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([HERE], [("executor", True), ("brokers", True), ("topic", True)]),
        ([changed(2, "0.0.9")], [("executor", False), ("brokers", True), ("topic", True)]),
        ([(*changed(2, "")[:3], "ModuleNotFoundError: forebay", "", "")], [("executor", False)]),
        ([changed(4, "cannot connect")], [("executor", True), ("brokers", False)]),
        ([changed(5, "t may not be written")], [("executor", True), ("brokers", True), ("topic", False)]),
    ],
)
def test_each_answer_of_the_executors(rows: list[Any], expected: list[tuple[str, bool]]) -> None:
    found = list(executors(lambda: rows, SINK))
    assert [(each.what, each.ok) for each in found] == expected
    assert all(each.remedy for each in found if not each.ok)


def test_executors_that_cannot_start_a_python() -> None:
    (found,) = executors(raises, SINK)
    assert not found.ok and found.found == "Python in worker has different version"


def test_without_a_topic_none_is_judged() -> None:
    sink = parse({"kafka.bootstrap.servers": "h:1"})
    assert [each.what for each in reached([HERE], sink)] == ["brokers"]
    assert [each.what for each in executors(lambda: [HERE], None)] == ["executor"]


WITHOUT_THE_PACKAGE = """
import pickle, sys
sys.modules["forebay"] = None
(batch,) = pickle.load(sys.stdin.buffer)([1, 2])
print(batch.to_pylist()[0]["problem"])
"""


def test_the_function_of_the_task_travels_as_code() -> None:
    """It is asked of executors that have no package to import it from."""
    from pyspark import cloudpickle

    (batch,) = look_from_task(None)([1, 2])
    (row,) = batch.to_pylist()
    assert (row["forebay"], row["problem"], row["brokers"]) == (forebay.__version__, "", "")
    pickled = cloudpickle.dumps(look_from_task(None))  # type: ignore[no-untyped-call]
    done = subprocess.run([sys.executable, "-c", WITHOUT_THE_PACKAGE], input=pickled, capture_output=True, check=True)
    assert b"import of forebay halted" in done.stdout


class FakeControl:
    """A cluster with one topic."""

    topic = TopicDescription("t", (), False, None, frozenset({"WRITE"}))
    error: Exception | None = None

    def __init__(self, options: Any) -> None:
        assert options["bootstrap.servers"] == "h:1"

    def __enter__(self) -> FakeControl:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def describe_cluster(self, topic: str | None, timeout: float) -> ClusterDescription:
        if self.error is not None:
            raise self.error
        return ClusterDescription("c", None, (), (self.topic,))


def test_what_a_task_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    from forebay import admin, errors

    monkeypatch.setattr(admin, "AdminClient", FakeControl)

    def ask(topic: str | None) -> tuple[str, str]:
        return diagnosis.reach({"bootstrap.servers": "h:1"}, topic, 1)

    assert ask("t") == ("", "") == ask(None)
    FakeControl.topic = FakeControl.topic._replace(operations=frozenset({"DESCRIBE", "READ"}))
    assert ask("t") == ("", "t may not be written by this user, only: DESCRIBE, READ")
    FakeControl.topic = FakeControl.topic._replace(operations=None)
    assert ask("t") == ("", "")
    FakeControl.topic = FakeControl.topic._replace(error=errors.error_for(3, topic="t"))
    assert ask("t")[0] == "" and ask("t")[1].startswith("t: ")
    FakeControl.error = errors.KafkaTimeoutError("no answer")
    assert ask("t") == ("no answer", "")
    FakeControl.error.__cause__ = errors.NetworkError("refused")
    assert ask("t") == ("refused", "")


def test_the_diagnosis_is_a_table() -> None:
    found = Diagnosis((Finding("driver", True, "here"), Finding("thread", False, "none", "call register")))
    assert not found.ok and Diagnosis(found.findings[:1]).ok
    assert str(found) == "ok    driver: here\nFAIL  thread: none\n      call register"
