"""cli.report.tally: counts, and failures as lines as long as they are few."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from forebay.cli.input.blocks import Block
from forebay.cli.report.tally import LINES_PER_KIND, Tally
from forebay.errors import (
    BufferExhaustedError,
    KafkaError,
    KafkaTimeoutError,
    ProducerClosedError,
    ProducerFencedError,
    RecordTooLargeError,
)
from forebay.model import DeliveryReport, RecordMetadata
from forebay.producer._columns.batch_delivery import FailedRows
from tests.unit.cli.fakes import FakeDelivery

HERE = RecordMetadata("t", 1, 5, -1, -1, 7)
NOWHERE = RecordMetadata("t", -1, -1, -1, -1, -1)


def test_acknowledged_records_and_their_bytes() -> None:
    tally = Tally(lambda line: None)
    tally.settled("x", 1, DeliveryReport(HERE))
    tally.settled("x", 2, DeliveryReport(RecordMetadata("t", 1, 6, -1, 3, -1)))
    assert (tally.acknowledged, tally.bytes, tally.failed, tally.settled_count) == (2, 10, 0, 2)
    assert tally.unsaid() == []


def test_a_failure_names_place_reason_and_partition() -> None:
    lines: list[str] = []
    tally = Tally(lines.append)
    tally.settled("x.txt", 3, DeliveryReport(HERE, RecordTooLargeError("too\nlarge")))
    tally.settled("x.txt", 4, DeliveryReport(NOWHERE, RecordTooLargeError("too large")))
    tally.failed_silently()
    assert lines == [r"x.txt:3: too\nlarge (partition 1)", "x.txt:4: too large"]
    assert (tally.failed, tally.stuck) == (3, None)


def test_a_block_counts_when_all_of_its_rows_have_their_outcome() -> None:
    lines: list[str] = []
    tally = Tally(lines.append)
    block = Block(range(11, 15), [b"a", b"bb", b"ccc", None], 7, [None, b"k", None, None])
    delivery: Any = FakeDelivery([range(2)])
    delivery.acknowledged = 2
    tally.follow("x", block, delivery)
    assert (tally.acknowledged, tally.bytes, tally.failed, tally.open_bytes) == (2, 4, 0, 0)
    delivery = FakeDelivery([range(4)])
    delivery.acknowledged = 1
    late = KafkaTimeoutError("late").with_context(partition="a-b-7")
    delivery.failures = (FailedRows(array("q", [0, 2]), KafkaError("no")), FailedRows(array("q", [3]), late))
    tally.follow("x", block, delivery)
    assert (tally.acknowledged, tally.bytes, tally.failed) == (3, 7, 3)
    assert lines == ["x:11: no", "x:13: no", "x:14: late (partition 7)"]
    tally.refused("x", list(range(1000)), KafkaError("no"))
    assert (len(lines), tally.failed) == (21, 1003)
    assert tally.unsaid() == ["982 more records failed like these: KafkaError"]


def test_a_block_counts_even_if_its_failures_cannot_be_told() -> None:
    """Else the command would wait for ever for room."""

    def gone(line: str) -> None:
        raise BrokenPipeError

    tally = Tally(gone)
    delivery: Any = FakeDelivery([range(2)])
    delivery.acknowledged = 1
    delivery.failures = (FailedRows(array("q", [0]), KafkaError("no")),)
    with pytest.raises(BrokenPipeError):
        tally.follow("x", Block([1, 2], [b"a", b"b"], 2), delivery)
    assert (tally.settled_count, tally.open_bytes) == (2, 0)


def test_the_many_of_a_kind_are_counted() -> None:
    lines: list[str] = []
    tally = Tally(lines.append)
    for number in range(LINES_PER_KIND + 5):
        tally.settled("x", number, DeliveryReport(NOWHERE, KafkaTimeoutError("late")))
    tally.fail("bad input", "x:9: not JSON")
    assert len(lines) == LINES_PER_KIND + 1
    assert tally.unsaid() == ["5 more records failed like these: KafkaTimeoutError"]


@pytest.mark.parametrize(
    ("error", "stuck"),
    [
        (BufferExhaustedError("full", phase="waiting for memory"), True),
        (KafkaTimeoutError("no topic", phase="waiting for metadata"), True),
        (ProducerFencedError(), True),
        (ProducerClosedError(), True),
        (KafkaTimeoutError("expired", phase="in flight"), False),
        (RecordTooLargeError(), False),
    ],
)
def test_what_the_next_record_could_not_do_better(error: KafkaError, stuck: bool) -> None:
    tally = Tally(lambda line: None)
    tally.settled("x", 1, DeliveryReport(NOWHERE, error))
    assert tally.stuck is (error if stuck else None)
