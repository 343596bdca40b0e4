"""cli.sending: a topic that is there, and an end that is bounded."""

from __future__ import annotations

import gc
import signal
import threading

import pytest

from forebay.cli import sending
from forebay.cli.failure import CommandError, Terminated
from forebay.cli.report.progress import Display, LogLines
from forebay.errors import DisconnectError, KafkaTimeoutError, TopicAuthorizationError
from tests.unit.cli.fakes import FakeProducer

LOGS = LogLines(Display())


def test_the_number_of_partitions_is_waited_for_as_long_as_the_command_says() -> None:
    producer = FakeProducer(7)
    assert sending.partitions_of(producer.typed(), "t", LOGS, 2.5) == 7
    assert producer.waits == [2.5]


def test_a_topic_that_cannot_be_had_is_told_with_the_connection_s_error() -> None:
    late = KafkaTimeoutError("Topic t not present in metadata after 5 ms.")
    late.__cause__ = DisconnectError("connection refused")
    for error, expected in (
        (late, "Topic t not present in metadata after 5 ms: connection refused"),
        (KafkaTimeoutError("Topic t is not there."), f"Topic t is not there: {sending.NO_ANSWER}"),
        (TopicAuthorizationError("not for you"), "not for you"),
    ):
        with pytest.raises(CommandError) as caught:
            sending.partitions_of(FakeProducer(unknown=error).typed(), "t", LOGS, 1)
        assert str(caught.value) == f"topic 't' on localhost:9092: {expected}"
        assert caught.value.exit_code == 1


def test_finish_waits_as_long_as_nobody_is_impatient() -> None:
    first, second = KeyboardInterrupt(), KeyboardInterrupt()
    calm = FakeProducer()
    assert sending.finish(calm.typed(), None) is None
    assert calm.closes == [None]
    lost = FakeProducer(closing=[KafkaTimeoutError("3 lost")])
    assert sending.finish(lost.typed(), first) is first
    assert lost.closes == [sending.INTERRUPTED_CLOSE_S]
    hasty = FakeProducer(closing=[first, second, KafkaTimeoutError("3 lost")])
    assert sending.finish(hasty.typed(), None) is first
    assert hasty.closes == [None, sending.INTERRUPTED_CLOSE_S, 0]


def test_waiting_ends_when_another_thread_is_ready() -> None:
    answers = [True, False, False]
    sending.wait_until(lambda: answers.pop())
    assert answers == []


def test_garbage_collections_are_rare_for_a_while() -> None:
    before = gc.get_threshold()
    with sending.rare_collections():
        assert gc.get_threshold()[0] == sending.COLLECT_AFTER
    assert gc.get_threshold() == before


def test_sigterm_ends_a_command_as_ctrl_c_does() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Terminated), sending.sigterm_as_interrupt():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_off_the_main_thread_signals_are_left_alone() -> None:
    seen: list[object] = []

    def work() -> None:
        with sending.sigterm_as_interrupt():
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
