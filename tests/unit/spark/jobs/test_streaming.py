"""A stream's end: by itself, after its time, by a signal, by an error; Spark's query is a fake here."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from forebay.spark.commit import save
from forebay.spark.jobs.job import Stream
from forebay.spark.jobs.streaming import Interrupted, StreamRun, read_counters, run_stream
from forebay.spark.jobs.table import JobError
from tests.unit.spark.test_commit import report


class Query:
    """A stream that makes a micro-batch at each wait, and ends after ``ends`` of them."""

    def __init__(self, ends: int = 10**9, error: Exception | None = None) -> None:
        self.made = 0
        self.ends = ends
        self.error = error
        self.stopped_at: int | None = None
        self.at_wait: dict[int, Any] = {}
        self.status = {"isTriggerActive": True}

    @property
    def isActive(self) -> bool:
        return self.made < self.ends and self.stopped_at is None

    @property
    def lastProgress(self) -> Any:
        return self.recentProgress[-1] if self.made else None

    @property
    def recentProgress(self) -> list[Any]:
        return [
            {"batchId": n, "timestamp": "t", "numInputRows": 5, "durationMs": {"addBatch": 1}} for n in range(self.made)
        ]

    def awaitTermination(self, timeout: float) -> bool:
        self.made += 1
        self.at_wait.get(self.made, lambda: None)()
        return self.made >= self.ends

    def stop(self) -> None:
        self.stopped_at = self.made if self.stopped_at is None else self.stopped_at

    def exception(self) -> Exception | None:
        return self.error


class Frame:
    """A frame whose writer notes what it is told."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.told: dict[str, Any] = {}

    @property
    def writeStream(self) -> Frame:
        return self

    def __getattr__(self, name: str) -> Any:
        def note(*values: Any, **named: Any) -> Frame:
            self.told[name] = named or values
            return self

        return note

    def start(self) -> Query:
        return self.query


STREAM = Stream("/c")


def run(query: Query, stream: Stream = STREAM, show: Any = lambda *values: None) -> Any:
    done = StreamRun()
    run_stream(stream, Frame(query), {"topic": "t"}, show, done)  # type: ignore[arg-type]
    return done


def test_a_stream_that_ends_by_itself_tells_its_micro_batches() -> None:
    told: list[Any] = []
    done = run(Query(ends=3), show=lambda *values: told.append(values))
    assert [(one["batch_id"], one["rows"], one["duration_ms"]) for one in done.batches] == [
        (number, 5, {"addBatch": 1}) for number in range(3)
    ]
    assert done.signal is None
    assert told == [("micro-batch 0, rows read", 5, None), ("micro-batch 1, rows read", 10, None)]


def test_the_writer_gets_what_the_job_says() -> None:
    frame = Frame(Query(ends=1))
    stream = Stream("/c", "5 seconds", "complete", None, "n")
    run_stream(stream, frame, {"topic": "t"}, lambda *values: None, StreamRun())  # type: ignore[arg-type]
    assert frame.told == {
        "outputMode": ("complete",),
        "option": ("checkpointLocation", "/c"),
        "format": ("forebay",),
        "options": {"topic": "t"},
        "queryName": ("n",),
        "trigger": {"processingTime": "5 seconds"},
    }


def test_update_writes_each_micro_batch_by_itself_and_adds_the_counters_up(tmp_path: Path) -> None:
    frame = Frame(Query(ends=1))
    total = tmp_path / "counters.json"
    options = {"topic": "t", "kafka.bootstrap.servers": "h:1", "metrics.path": str(total)}
    run_stream(Stream("/c", output_mode="update"), frame, options, lambda *values: None, StreamRun())  # type: ignore[arg-type]
    (each,) = frame.told["foreachBatch"]

    class Batch:
        """A micro-batch, whose write leaves counters where it is told to."""

        write: Any

        def __getattr__(self, name: str) -> Any:
            return lambda *values, **named: self if name != "options" else self._with(named)

        def _with(self, options: Mapping[str, str]) -> Any:
            save(options["metrics.path"], [report(rows=4)], add=False)
            return self

    for number in (7, 8):
        batch = Batch()
        batch.write = batch
        each(batch, number)
    values = json.loads(total.read_text())
    assert (values["rows"], [one["batch_id"] for one in values["history"]]) == (8, [7, 8])


def test_the_first_signal_lets_the_micro_batch_end_and_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    query = Query()
    query.at_wait[4] = lambda: os.kill(os.getpid(), signal.SIGTERM)
    done = run(query)
    assert done.signal == signal.SIGTERM
    assert query.stopped_at == 5  # one more came to its end
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_signal_stops_at_once() -> None:
    query = Query()
    query.status["isTriggerActive"] = True
    query.at_wait = {4: lambda: os.kill(os.getpid(), signal.SIGINT), 5: lambda: os.kill(os.getpid(), signal.SIGINT)}
    with pytest.raises(KeyboardInterrupt):
        run(query)
    assert query.stopped_at is not None


def test_an_idle_stream_is_stopped_without_waiting() -> None:
    query = Query()
    query.status["isTriggerActive"] = False
    query.at_wait[2] = lambda: os.kill(os.getpid(), signal.SIGINT)
    assert run(query).signal == signal.SIGINT
    assert query.stopped_at == 2


def test_a_stream_is_stopped_after_its_time() -> None:
    query = Query()
    query.status["isTriggerActive"] = False
    done = run(query, Stream("/c", stop_after_s=0.0))
    assert (done.signal, query.stopped_at) == (None, 1)


def test_an_error_is_its_last_line() -> None:
    from pyspark.errors import StreamingQueryException

    error = StreamingQueryException("Job aborted\nforebay.pipeline.encoding.rows.EncodeError: row 3: why")
    with pytest.raises(JobError, match="^stream: row 3: why$"):
        run(Query(ends=1, error=error))


def test_a_file_that_holds_no_counters_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    for text in ("[1", "[]", '{"a": 1}'):
        path.write_text(text)
        with pytest.raises(JobError, match="metrics.json' holds no counters of a job"):
            read_counters(str(path))
    assert read_counters(str(tmp_path / "none")) == {}


def test_a_signal_amid_the_start_stops_the_stream() -> None:
    query = Query()
    query.status["isTriggerActive"] = False

    class Slow(Frame):
        def start(self) -> Query:
            os.kill(os.getpid(), signal.SIGTERM)
            return super().start()

    done = StreamRun()
    run_stream(STREAM, Slow(query), {"topic": "t"}, lambda *values: None, done)  # type: ignore[arg-type]
    assert (done.signal, query.stopped_at) == (signal.SIGTERM, 1)


def test_a_query_that_cannot_be_asked_any_more_is_stopped_all_the_same() -> None:
    from py4j.protocol import Py4JNetworkError

    class Gone(Query):
        @property
        def recentProgress(self) -> list[Any]:
            raise Py4JNetworkError("Answer from Java side is empty")

    query = Gone(ends=1)
    with pytest.raises(JobError, match="^stream: "):
        run(query)
    assert query.stopped_at is not None


def test_an_interruption_has_the_exit_code_of_its_signal() -> None:
    assert (Interrupted(signal.SIGINT, {}).exit_code, str(Interrupted(signal.SIGINT, {}))) == (130, "Ctrl-C")
    assert (Interrupted(signal.SIGTERM, {}).exit_code, str(Interrupted(signal.SIGTERM, {}))) == (143, "SIGTERM")
