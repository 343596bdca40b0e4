"""cli.produce: every row sent, acknowledged or reported, with the exit code to match."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.cli.failure import CommandError
from forebay.cli.input.blocks import Block
from forebay.cli.input.files import Layout
from forebay.cli.input.jsonl import JsonFormat
from forebay.cli.input.lines import LineFormat
from forebay.cli.input.tables import TableFormat
from forebay.cli.produce import ProduceJob, run
from forebay.config import ProducerConfig
from forebay.errors import (
    BufferExhaustedError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    RecordTooLargeError,
    SerializationError,
    UnknownTopicOrPartitionError,
)
from forebay.testing.clock import ManualClock
from tests.unit.cli.fakes import CONFIG, FakeDelivery, FakeProducer, Sent

Produce = Callable[..., int]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.txt"


def produce(producer: FakeProducer, *paths: Path | str, **options: Any) -> int:
    job = ProduceJob(options.pop("config", CONFIG), "t", [str(each) for each in paths], **options)
    return run(job, make=producer.make, clock=ManualClock())


def test_rows_are_sent_and_counted(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("a:1\nb:\n")
    producer = FakeProducer()
    assert produce(producer, path, layout=Layout(lines=LineFormat(key_delimiter=b":"))) == 0
    assert producer.sent == [Sent("t", b"1", b"a", None, None, None), Sent("t", b"", b"b", None, None, None)]
    assert producer.closes == [None]
    assert capsys.readouterr().err == "forebay: 2 records acknowledged, 0 failed, 3 bytes, 0.00 s\n"


def test_key_headers_partition_and_nulls_of_the_command_line(path: Path) -> None:
    path.write_text('{"value":"","key":"","headers":{"a":"1"}}\n{"value":"v","key":"k","partition":0}\n')
    producer = FakeProducer()
    layout = Layout("json", json=JsonFormat(envelope=True))
    more: dict[str, Any] = {"key": b"K", "headers": [("b", None)], "partition": 2, "empty_is_null": True}
    assert produce(producer, path, layout=layout, **more) == 0
    assert producer.sent == [
        Sent("t", None, b"K", [("a", b"1"), ("b", None)], 2, None),
        Sent("t", b"v", b"k", [("b", None)], 0, None),
    ]


def test_several_files_and_standard_input_up_to_a_count(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text("1\n2\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"3\n4\n")))
    producer = FakeProducer()
    assert produce(producer, path, "-", path, count=3) == 0
    assert [sent.value for sent in producer.sent] == [b"1", b"2", b"3"]


def test_a_terminal_that_waits_is_told_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(b"1\n")))
    assert produce(FakeProducer(), "-") == 0
    assert capsys.readouterr().err.startswith(
        "forebay: records come from this terminal, a line each; Ctrl-D ends them\n"
    )


def test_a_failed_record_is_told_and_the_others_go_on(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("ok\nbad\nok\n")
    producer = FakeProducer(outcome=lambda sent: RecordTooLargeError("too large") if sent.value == b"bad" else None)
    assert produce(producer, path) == 1
    first, last = capsys.readouterr().err.splitlines()
    assert first == f"forebay: error: {path}:2: too large (partition 0)"
    assert last.startswith("forebay: 2 records acknowledged, 1 failed, 4 bytes")


def test_a_serializer_s_refusal_is_one_record_s(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("ok\nbad\nok\n")
    producer = FakeProducer(raising=lambda sent: SerializationError("no") if sent.value == b"bad" else None)
    assert produce(producer, path, quiet=True) == 1
    assert capsys.readouterr().err == f"forebay: error: {path}:2: no\n"
    assert len(producer.sent) == 2


def test_records_behind_a_refused_one_are_sent_once(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("bad\n1\nbad\nbad\n2\nbad\n")
    producer = FakeProducer(raising=lambda sent: RecordTooLargeError("no") if sent.value == b"bad" else None)
    assert produce(producer, path) == 1
    assert [sent.value for sent in producer.sent] == [b"1", b"2"]
    *failures, last = capsys.readouterr().err.splitlines()
    assert failures == [f"forebay: error: {path}:{number}: no" for number in (1, 3, 4, 6)]
    assert last.startswith("forebay: 2 records acknowledged, 4 failed, 2 bytes")


def test_records_that_a_window_took_behind_the_refused_one(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows go by partition, so those of another partition may be taken although an earlier one was refused."""

    class Scattered(FakeProducer):
        def send_batch(self, topic: str, values: Any, **columns: Any) -> FakeDelivery:
            if values[0] != b"0":
                return super().send_batch(topic, values, **columns)
            delivery = FakeDelivery([range(2), range(3, 5)])
            delivery.acknowledged = 4
            error.with_context(row=2)
            error.delivery = delivery
            raise error

    path.write_text("".join(f"{number}\n" for number in range(8)))
    error: Any = RecordTooLargeError("no")
    producer = Scattered()
    assert produce(producer, path) == 1
    assert [sent.value for sent in producer.sent] == [b"5", b"6", b"7"]
    first, last = capsys.readouterr().err.splitlines()
    assert first == f"forebay: error: {path}:3: no"
    assert last.startswith("forebay: 7 records acknowledged, 1 failed, 7 bytes")
    error = BufferExhaustedError("no memory", phase="waiting for memory")
    assert produce(Scattered(), path) == 1
    assert f"stopped at {path}:3: what follows was not sent, but for 2 records" in capsys.readouterr().err


def test_an_error_that_is_no_row_s_ends_it(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("1\n2\n")
    assert produce(FakeProducer(raising=lambda sent: IllegalStateError("closed")), path) == 1
    err = capsys.readouterr().err.splitlines()
    assert err[:2] == [
        f"forebay: error: {path}:1: closed",
        f"forebay: error: stopped at {path}:1: what follows was not sent",
    ]


def test_sync_sends_one_record_at_a_time(path: Path) -> None:
    path.write_text("1\n2\n3\n")
    producer = FakeProducer()
    assert produce(producer, path, sync=True) == 0
    assert producer.batches == [1, 1, 1]


def test_a_partitioner_chooses_where_nothing_else_does(path: Path) -> None:
    asked: list[tuple[bytes | None, int]] = []

    def choose(key: bytes | None, count: int) -> int | None:
        asked.append((key, count))
        return None if key == b"any" else 1

    path.write_text("k:1\nany:2\n3\n")
    layout = Layout(lines=LineFormat(key_delimiter=b":"))
    producer = FakeProducer()
    assert produce(producer, path, layout=layout, partitioner=choose) == 0
    assert [sent.partition for sent in producer.sent] == [1, None, 1]
    assert produce(producer, path, partitioner=choose) == 0
    assert produce(producer, path, layout=layout, partitioner=choose, partition=2) == 0
    assert [sent.partition for sent in producer.sent[3:]] == [1, 1, 1, 2, 2, 2]
    assert asked == [(b"k", 3), (b"any", 3), (None, 3), (None, 3)]


def test_a_tee_sees_what_is_sent_as_it_was_read(path: Path) -> None:
    path.write_text("k:1\n:2\n3\n")
    seen: list[Block] = []
    layout = Layout(lines=LineFormat(key_delimiter=b":"))
    assert produce(FakeProducer(), path, layout=layout, key=b"x", empty_is_null=True, count=2, tee=seen.append) == 0
    assert [(block.values, block.keys) for block in seen] == [([b"1", b"2"], [b"k", b""])]


def test_long_input_goes_in_parts_that_bound_what_is_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.cli.produce.PART", 3)
    path.write_text("".join(f"{number}\n" for number in range(10)))
    producer = FakeProducer()
    assert produce(producer, path, count=8) == 0
    assert producer.batches == [3, 3, 2]
    assert [sent.value for sent in producer.sent] == [b"%d" % number for number in range(8)]


def test_serializers_of_the_user_s_see_every_record(path: Path) -> None:
    path.write_text('{"value":"a","key":"k"}\n{"value":"b","partition":1,"timestamp":5,"headers":{"h":"1"}}\n')
    producer = FakeProducer()
    config = ProducerConfig(bootstrap_servers="localhost:9092", value_serializer=lambda topic, value: value)
    layout = Layout("json", json=JsonFormat(envelope=True))
    assert produce(producer, path, config=config, layout=layout, partition=2) == 0
    assert producer.batches == []
    assert producer.sent == [Sent("t", b"a", b"k", (), 2, None), Sent("t", b"b", None, [("h", b"1")], 1, 5)]


def test_serializers_of_the_user_s_get_bytes_of_parquet(tmp_path: Path) -> None:
    table: Any = pa.table({"id": [1, None], "name": ["a", "b"]})
    pq.write_table(table, tmp_path / "x.parquet")
    producer = FakeProducer()
    config = ProducerConfig(bootstrap_servers="localhost:9092", value_serializer=lambda topic, value: value)
    layout = Layout(table=TableFormat("id"))
    assert produce(producer, tmp_path / "x.parquet", config=config, layout=layout) == 0
    assert [(sent.value, sent.key) for sent in producer.sent] == [
        (b'{"id":1,"name":"a"}', b"1"),
        (b'{"id":null,"name":"b"}', None),
    ]


def test_bad_input_ends_it_unless_it_may_be_skipped(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text('1\n{"a"\n3\n')
    producer = FakeProducer()
    assert produce(producer, path, layout=Layout("json")) == 1
    assert [sent.value for sent in producer.sent] == [b"1"]
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith(f"forebay: error: {path}:2: not JSON: ")
    assert first.endswith("; what follows was not sent (--skip-bad goes on)")
    assert last.startswith("forebay: 1 records acknowledged, 1 failed")
    assert produce(FakeProducer(), path, layout=Layout("json"), skip_flag="-E") == 1
    assert "; what follows was not sent (-E goes on)" in capsys.readouterr().err
    assert produce(producer, path, layout=Layout("json"), skip_bad=True) == 1
    assert [sent.value for sent in producer.sent] == [b"1", b"1", b"3"]
    assert capsys.readouterr().err.startswith(
        f"forebay: error: {path}:2: not JSON: Expecting ':' delimiter (column 5)\n"
    )


def test_a_partition_that_is_not_there_is_refused_at_once(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text('{"value":1,"partition":3}\n')
    layout = Layout("json", json=JsonFormat(envelope=True))
    producer = FakeProducer(3)
    assert produce(producer, path, layout=layout) == 1
    assert f"{path}:1: partition 3 of topic 't': it has 3 partition(s), 0 to 2;" in capsys.readouterr().err
    assert produce(producer, path, partition=3) == 2
    assert capsys.readouterr().err == "forebay: error: partition 3 of topic 't': it has 3 partition(s), 0 to 2\n"
    assert producer.sent == []


def test_when_no_further_record_could_do_better_it_stops(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("1\n2\n3\n")
    full = BufferExhaustedError("no memory", phase="waiting for memory")
    producer = FakeProducer(outcome=lambda sent: full if sent.value == b"2" else None)
    assert produce(producer, path) == 1
    assert len(producer.sent) == 2
    assert f"forebay: error: stopped at {path}:2: what follows was not sent\n" in capsys.readouterr().err


def test_nothing_is_sent_when_an_input_or_the_topic_is_missing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("1\n")
    producer = FakeProducer(unknown=UnknownTopicOrPartitionError("no such topic"))
    with pytest.raises(CommandError, match="gone.txt"):
        produce(producer, path, "gone.txt")
    assert producer.closes == []
    assert produce(producer, path) == 1
    assert producer.sent == [] and producer.closes == [0]
    assert capsys.readouterr().err == "forebay: error: topic 't' on localhost:9092: no such topic\n"


def test_ctrl_c_delivers_what_was_accepted(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("1\n2\n3\n")
    producer = FakeProducer(raising=lambda sent: KeyboardInterrupt() if sent.value == b"3" else None)
    assert produce(producer, path) == 130
    assert producer.closes == [10]
    first, last = capsys.readouterr().err.splitlines()
    told = f"all records before {path}:3 are acknowledged, and those from {path}:3 on were not sent"
    assert first == f"forebay: error: interrupted: {told}"
    assert last.startswith("forebay: 2 records acknowledged, 0 failed")


SERIALIZED = CONFIG.replace({"value.serializer": lambda topic, value: value})
NAMED = re.compile(
    r"interrupted: all records before (.*):(\d+) are acknowledged(?:, and those from (.*):(\d+) on were not)?"
)


@pytest.mark.parametrize("at", range(9))
@pytest.mark.parametrize("lost", [(), (b"2",), (b"6", b"5")], ids=str)
@pytest.mark.parametrize("refused", [(), (b"1",), (b"4", b"7")], ids=str)
@pytest.mark.parametrize(
    "options",
    [{}, {"sync": True}, {"config": SERIALIZED}, {"skip_bad": True, "layout": Layout("json")}],
    ids=["columns", "sync", "rows", "json"],
)
def test_ctrl_c_names_a_line_before_which_all_are_acknowledged(
    at: int,
    lost: tuple[bytes, ...],
    refused: tuple[bytes, ...],
    options: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wherever it comes, and whatever became of those before: nine records in two files, some lost, some refused."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("0\n1\n\n2\n3\n4\n" if "layout" in options else "0\n1\n2\n3\n4\n")
    second.write_text("5\n6\n7\n8\n")
    places = [(str(file), n) for file in (first, second) for n, text in enumerate(file.read_text().split(), 1)]
    if "layout" in options:
        places = [(name, n + (name == str(first) and n > 2)) for name, n in places]

    def raising(sent: Sent) -> BaseException | None:
        if sent.value == b"%d" % at:
            return KeyboardInterrupt()
        return RecordTooLargeError("no") if sent.value in refused else None

    producer = FakeProducer(outcome=lambda sent: KafkaError("lost") if sent.value in lost else None, raising=raising)
    assert produce(producer, first, second, **options) == 130
    match = NAMED.search(capsys.readouterr().err)
    sent = [sent.value for sent in producer.sent]
    if match is None:
        assert at == 0 and sent == []
        return
    good = {int(value) for value in sent if value is not None and value not in lost}
    before = places.index((match[1], int(match[2])))
    assert set(range(before)) <= good and before not in good  # it names the first of them
    assert places.index((match[3], int(match[4]))) == at


def test_ctrl_c_at_the_end_says_what_is_known_of_all(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("1\n2\n")
    assert produce(FakeProducer(closing=[KeyboardInterrupt()]), path) == 130
    assert "interrupted: all records are acknowledged\n" in capsys.readouterr().err
    late = FakeProducer(
        closing=[KeyboardInterrupt()], outcome=lambda sent: KafkaError("no") if sent.value == b"2" else None
    )
    assert produce(late, path) == 130
    assert f"interrupted: all records before {path}:2 are acknowledged\n" in capsys.readouterr().err


def test_ctrl_c_that_leaves_records_unknown_says_which(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Torn(FakeProducer):
        def send_batch(self, *args: Any, **columns: Any) -> FakeDelivery:
            super().send_batch(*args, **columns)
            raise KeyboardInterrupt  # between the call's end and its caller

    path.write_text("1\n2\n")
    assert produce(Torn(), path) == 130
    assert f"it is not known which records of {path}:1 to 2 were sent" in capsys.readouterr().err


def test_ctrl_c_while_the_last_ones_are_on_their_way(path: Path) -> None:
    path.write_text("1\n")
    producer = FakeProducer(closing=[KeyboardInterrupt()])
    assert produce(producer, path) == 130
    assert producer.closes == [None, 10]


def test_whatever_ends_it_what_was_accepted_is_counted(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("1\n2\n")
    producer = FakeProducer(raising=lambda sent: OSError(5, "I/O error") if sent.value == b"2" else None)
    assert produce(producer, path) == 1
    assert producer.closes == [None]
    first, last = capsys.readouterr().err.splitlines()
    assert first == "forebay: error: I/O error"
    assert last.startswith("forebay: 1 records acknowledged")


def test_a_file_that_ends_in_an_error_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert produce(FakeProducer(), "/proc/self/mem") == 1
    assert capsys.readouterr().err == "forebay: error: /proc/self/mem: cannot be read: Input/output error\n"


def test_code_2_says_that_nothing_was_sent(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("1\n")
    empty = path.with_suffix(".csv")
    empty.touch()
    assert produce(FakeProducer(), empty, path) == 2
    producer = FakeProducer()
    assert produce(producer, path, empty) == 1
    assert len(producer.sent) == 1
    assert f"{empty}: no header row" in capsys.readouterr().err


def test_standard_input_that_is_closed_is_no_empty_input(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(CommandError, match="standard input cannot be read: it is closed"):
        produce(FakeProducer(), "-")
    path.write_text("1\n")
    assert produce(FakeProducer(), path) == 0


class Gone(io.StringIO):
    """A pipe whose reader has ended."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def test_where_nobody_reads_of_failures_the_rest_is_sent(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text("bad\nok\n")
    monkeypatch.setattr(sys, "stderr", Gone())
    producer = FakeProducer(outcome=lambda sent: RecordTooLargeError("too large") if sent.value == b"bad" else None)
    assert produce(producer, path, sync=True) == 1
    assert len(producer.sent) == 2


def test_many_failures_of_a_kind_end_in_a_count(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("x\n" * 600)
    error = KafkaError("refused")
    assert produce(FakeProducer(outcome=lambda sent: error), path) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 22
    assert lines[20:] == [
        "forebay: error: 580 more records failed like these: KafkaError",
        "forebay: 0 records acknowledged, 600 failed, 0 bytes, 0.00 s",
    ]


TRANSACTIONAL = ProducerConfig(bootstrap_servers="localhost:9092", transactional_id="x")
NOT_COMMITTED = "forebay: error: the transaction was not committed: readers with read_committed see none of its records"
NOT_KNOWN = "forebay: error: it is not known whether the transaction was committed: check before you send it again"


def test_everything_is_one_transaction(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("1\n2\n")
    producer = FakeProducer()
    assert produce(producer, path, config=TRANSACTIONAL) == 0
    assert producer.calls == ["init 0", "begin 0", "commit 2"]
    assert capsys.readouterr().err.startswith("forebay: 2 records acknowledged")


@pytest.mark.parametrize(
    ("failure", "code", "told"),
    [
        (ProducerFencedError("fenced"), 1, [NOT_COMMITTED, "forebay: error: fenced"]),
        (KafkaTimeoutError("no answer"), 1, [NOT_KNOWN, "forebay: error: no answer"]),
        (KeyboardInterrupt(), 130, [NOT_KNOWN, "forebay: error: interrupted: what follows was not sent"]),
    ],
)
def test_what_is_known_of_a_commit_that_fails(
    failure: BaseException, code: int, told: list[str], path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text("1\n")
    assert produce(FakeProducer(committing=[failure]), path, config=TRANSACTIONAL) == code
    assert capsys.readouterr().err.splitlines()[:-1] == told


def test_nothing_is_said_of_a_transaction_that_was_not_begun(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("1\n")
    producer = FakeProducer(unknown=UnknownTopicOrPartitionError("no such topic"))
    assert produce(producer, path, config=TRANSACTIONAL) == 1
    assert producer.calls == []
    assert capsys.readouterr().err == "forebay: error: topic 't' on localhost:9092: no such topic\n"


@pytest.mark.parametrize(
    "config", [TRANSACTIONAL, TRANSACTIONAL.replace({"value.serializer": lambda topic, value: value})]
)
def test_a_refused_record_ends_the_transaction(
    config: ProducerConfig, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text("1\nbad\n3\n")
    producer = FakeProducer(raising=lambda sent: SerializationError("no") if sent.value == b"bad" else None)
    assert produce(producer, path, config=config) == 1
    assert producer.calls == ["init 0", "begin 0"]
    refused, uncommitted, stopped, _ = capsys.readouterr().err.splitlines()
    assert (refused, uncommitted) == (f"forebay: error: {path}:2: no", NOT_COMMITTED)
    assert stopped == f"forebay: error: stopped at {path}:2: what follows was not sent"


def test_bad_input_commits_nothing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_text("1\n{\n")
    producer = FakeProducer()
    layout = Layout("json", json=JsonFormat())
    assert produce(producer, path, layout=layout, config=TRANSACTIONAL) == 1
    assert producer.calls == ["init 0", "begin 0"]
    assert capsys.readouterr().err.splitlines()[0] == NOT_COMMITTED
