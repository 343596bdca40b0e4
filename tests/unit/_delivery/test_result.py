"""The values of a result, an outcome that is set early, and callbacks that there is no memory to call."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import forebay
from forebay._delivery import callback_thread as _callback_thread
from forebay._delivery.callback_thread import report_unsaid
from forebay._delivery.future import RecordFuture
from forebay._delivery.result import BatchResult
from forebay._delivery.split import split_result
from forebay.errors import KafkaError
from forebay.model import RecordMetadata
from tests.fakes.tickets import CountingTicket
from tests.fakes.world import Told, World
from tests.unit._accumulator.shelf import Shelf, quiet

MOST_SPARE = 64
"""How many RecordMetadata are kept for reuse at most (``freelist`` of the class)."""


def test_at_first_nothing_is_known() -> None:
    result = BatchResult("test", 3)
    assert (result.topic, result.partition, result.base_offset, result.log_append_time) == ("test", 3, -1, -1)
    assert (result.error, result.record_errors, result.record_count, result.done) == (None, None, 0, False)
    result.check_own_process()


def pending(count: int, **more: Any) -> tuple[list[RecordFuture], BatchResult]:
    """Futures of one batch of ``count`` records, and its result."""
    shelf = Shelf(batch_size=65536)
    futures = [shelf.append(0, 1, timestamp=1000 + number, **more) for number in range(count)]
    return futures, futures[0]._batch


def test_an_outcome_told_before_the_callbacks_run() -> None:
    """Whoever waits goes on; the callbacks hear the same outcome later, whatever is set then."""
    heard: list[str] = []
    futures, result = pending(2, callback=lambda report: heard.append(f"delivery {report.metadata.offset}"))
    futures[1].add_done_callback(lambda future: heard.append(f"done {future.result(0).offset}"))
    ticket = CountingTicket()
    assert not result.subscribe(ticket)
    assert result.settle_early(40, -1, None, 2) and result.settle_early(50, -1, KafkaError("twice"), 2)
    assert ticket.woken == 1 and heard == []
    assert [future.result(0).offset for future in futures] == [40, 41] and all(future.done() for future in futures)
    futures[0].add_done_callback(lambda future: heard.append("at once"))
    assert result.settle(-1, -1, KafkaError("later"), None, 2, quiet)
    assert heard == ["at once", "delivery 40", "delivery 41", "done 41"]
    assert not result.settle(-1, -1, KafkaError("again"), None, 2, quiet)
    assert [future.exception(0) for future in futures] == [None, None]


def test_an_outcome_that_is_set_is_told_as_it_is() -> None:
    (future,), result = pending(1)
    result.settle(-1, -1, KafkaError("refused"), None, 1, quiet)
    assert not result.settle_early(7, -1, None, 1)
    assert str(future.exception(0)) == "refused"


def test_what_was_told_early_holds_for_the_parts() -> None:
    """close() gave up the batch, and then the sender's thread splits it: the callbacks hear what the futures say."""
    told: list[Any] = []
    futures, whole = pending(4, callback=lambda report: told.append((report.metadata.offset, str(report.error))))
    assert not whole.settle_early(-1, -1, KafkaError("closed"), 4)
    first, second = BatchResult("test", 0, None, 0), BatchResult("test", 0, None, 2)
    assert split_result(whole, [first, second])
    assert [str(future.exception(0)) for future in futures] == ["closed"] * 4
    first.settle(5, -1, None, None, 2, quiet)
    second.settle(-1, -1, KafkaError("later"), None, 2, quiet)
    assert told == [(-1, "closed")] * 4
    assert [str(future.exception(0)) for future in futures] == ["closed"] * 4


# -- callbacks that there is no memory for --------------------------------------------------------------------


class Outcome:
    """A batch of so many records, each with a callback; and what became of each callback."""

    def __init__(self, records: int, callback: Callable[[Any], None] | None = None) -> None:
        world = World(linger_ms=1000)
        self.told: list[Any] = [None] * records
        self.raised: list[BaseException] = []
        self.report = self.note  # bound now: there may be no memory for it later
        for _ in range(records):
            world.send(on_delivery=callback or self.tell)
        (self.batch,) = world.accumulator.incomplete()

    def tell(self, report: Any) -> None:
        self.told[report.metadata.offset] = report.metadata

    def note(self, error: BaseException, result: Any) -> None:
        self.raised.append(error)

    def settle(self, base_offset: int = 0) -> None:
        self.batch.complete(base_offset, -1, self.report)
        assert self.batch.result.done


def settle_without_memory(outcome: Outcome, testcapi: Any, first: int, end: int) -> None:
    """Allocations from ``first`` on fail, up to ``end`` or, if that is 0, all of them."""
    complete, report, fail, mend = (
        outcome.batch.complete,
        outcome.report,
        testcapi.set_nomemory,
        testcapi.remove_mem_hooks,
    )
    fail(first, end)
    complete(0, -1, report)
    mend()
    assert outcome.batch.result.done


def said(log: pytest.LogCaptureFixture) -> list[int]:
    """The offsets of calls that were lost, as the log has them."""
    offsets: list[int] = []
    for record in log.records:
        found = re.search(r"of (\d+) record\(s\) of test-0: offsets? (\d+)", record.getMessage())
        if found:
            count, first = map(int, found.groups())
            offsets.extend(range(first, first + count))
    return offsets


@pytest.fixture
def no_spare_metadata() -> Iterator[None]:
    """Objects that earlier tests let go of are kept for reuse, and then a callback takes no memory."""
    held = [RecordMetadata("test", 0, 0, 0, 0, 0) for _ in range(MOST_SPARE)]
    yield
    held.clear()


def needs_failing_allocations() -> Any:
    if forebay.implementation == "interpreted":
        pytest.skip("there each step of an outcome takes memory")
    return pytest.importorskip("_testcapi", reason="this Python has no test modules, which fail allocations")


@pytest.mark.usefixtures("no_spare_metadata")
def test_each_callback_is_called_or_its_loss_is_said_whatever_allocation_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    testcapi = needs_failing_allocations()
    # After a trace function of an earlier test, Python 3.12 and later take memory to enter a function the next time.
    Outcome(5).settle()
    lost = 0
    for number in range(40):
        caplog.clear()
        outcome = Outcome(5)
        settle_without_memory(outcome, testcapi, number, number + 1)
        told = [metadata.offset for metadata in outcome.told if metadata is not None]
        assert sorted(told + said(caplog)) == list(range(5)), number
        assert outcome.raised == []
        lost += len(said(caplog))
    assert lost > 0


@pytest.mark.usefixtures("no_spare_metadata")
def test_what_there_is_no_memory_to_say_is_said_later(caplog: pytest.LogCaptureFixture) -> None:
    testcapi = needs_failing_allocations()
    late = 0
    for number in range(6):
        caplog.clear()
        outcome = Outcome(5)
        settle_without_memory(outcome, testcapi, number, 0)
        report_unsaid()
        words = r"callbacks of (\d+) record\(s\), nor to say so at the time; the first was (\S+)"
        later = re.findall(words, caplog.text)
        told = [metadata for metadata in outcome.told if metadata is not None]
        assert len(told) + len(said(caplog)) + sum(int(count) for count, _ in later) == 5, number
        assert {where for _, where in later} <= {"test-0,"}
        late += len(later)
    assert late > 0
    caplog.clear()
    report_unsaid()
    assert caplog.records == []


def test_a_callback_that_raises_for_lack_of_memory_has_raised(caplog: pytest.LogCaptureFixture) -> None:
    def callback(report: Any) -> None:
        raise MemoryError("its own")

    outcome = Outcome(3, callback)
    outcome.settle()
    assert [str(error) for error in outcome.raised] == ["its own"] * 3
    assert said(caplog) == []


class NoRoom:
    """Lacks memory at some of its calls."""

    def __init__(self, fails: Container[int]) -> None:
        self.fails = fails
        self.calls = 0
        self.told: list[int] = []

    def __call__(self, report: Any) -> None:
        self.calls += 1
        if self.calls - 1 in self.fails:
            raise MemoryError
        self.told.append(report.metadata.offset)


@contextmanager
def not_entered() -> Iterator[None]:
    """Has the code of this file taken for code on the way to a callback."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_callback_thread, "WAY_IN", (*_callback_thread.WAY_IN, __file__))
        yield


@pytest.mark.parametrize(("fails", "lines"), [({1}, 1), ({0, 1, 4}, 2), ({0, 1, 2, 3, 4}, 1), ({4}, 1), (set(), 0)])
def test_lost_calls_are_said_by_their_offsets(caplog: pytest.LogCaptureFixture, fails: set[int], lines: int) -> None:
    """Neighbours share a line."""
    callback = NoRoom(fails)
    with not_entered():
        outcome = Outcome(5, callback)
        outcome.settle()
    assert sorted(callback.told + said(caplog)) == list(range(5))
    assert set(said(caplog)) == fails
    assert len(caplog.records) == lines
    assert outcome.raised == []


def test_of_a_batch_without_offsets_its_records_are_named(caplog: pytest.LogCaptureFixture) -> None:
    with not_entered():
        Outcome(3, NoRoom({1})).settle(-1)
    assert "of 1 record(s) of test-0: record(s) 1 to 1 of a batch without an offset" in caplog.text


def test_a_future_s_callback_too(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.send()
    future = world.send()
    with not_entered():
        future.add_done_callback(lambda _: NoRoom({0})(None))
        world.settle()
        assert said(caplog) == [1]
        future.add_done_callback(lambda _: NoRoom({0})(None))
    assert said(caplog) == [1, 1]


def test_an_error_that_cannot_be_copied_is_told_itself() -> None:
    class Uncopied(KafkaError):
        def __copy__(self) -> KafkaError:
            raise MemoryError

    told = Told()
    world = World(linger_ms=1000)
    world.send(on_delivery=told)
    (batch,) = world.accumulator.incomplete()
    error = Uncopied("of a test")
    batch.fail(error, None, print)
    assert [one for _, one in told] == [error] and batch.result.done
