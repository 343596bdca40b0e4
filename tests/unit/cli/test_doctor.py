"""cli.doctor: options are judged before Spark starts, and the exit code tells."""

from __future__ import annotations

from typing import Any

import pytest

import forebay.spark
from forebay.cli.commands import execute
from forebay.cli.doctor import run
from forebay.cli.failure import CommandError
from forebay.errors import ConfigError
from forebay.spark.diagnosis import Diagnosis, Finding


class Session:
    """Notes that it was stopped."""

    stopped = False

    def stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize("ok", [True, False])
@pytest.mark.parametrize(
    ("given", "topic", "environment", "asked"),
    [
        ({}, None, {}, None),
        ({}, None, {"KAFKA_BOOTSTRAP_SERVERS": "e:1"}, {"kafka.bootstrap.servers": "e:1"}),
        (
            {"kafka.bootstrap.servers": "h:1"},
            "t",
            {"KAFKA_BOOTSTRAP_SERVERS": "e:1"},
            {"kafka.bootstrap.servers": "h:1", "topic": "t"},
        ),
    ],
)
def test_what_is_asked(
    monkeypatch: pytest.MonkeyPatch, ok: bool, given: Any, topic: str | None, environment: Any, asked: Any
) -> None:
    session, heard = Session(), []
    written: list[str] = []

    def doctor(found: Any, options: Any) -> Diagnosis:
        heard.append((found, options))
        return Diagnosis((Finding("driver", ok, "here"),))

    monkeypatch.setattr(forebay.spark, "doctor", doctor)
    code = run(given, topic, "local[1]", written.append, lambda master: session, environment)
    assert (code, heard, session.stopped) == (0 if ok else 1, [(session, asked)], True)
    assert written == [f"{'ok  ' if ok else 'FAIL'}  driver: here"]


def never(master: str | None) -> Any:
    raise AssertionError("Spark was started")


def test_a_mistake_is_told_before_spark_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match="no broker is named"):
        run({}, "t", None, print, never, {})
    with pytest.raises(ConfigError, match=r"Unknown option 'ackss'"):
        run({"kafka.bootstrap.servers": "h:1", "kafka.ackss": "1"}, "t", None, print, never, {})
    assert execute(["doctor", "-b", "h:1"]) == 2
    assert "Missing option '--spark'" in capsys.readouterr().err
    assert execute(["doctor", "--spark", "-b", "h:1", "-t", "a b"]) == 2
