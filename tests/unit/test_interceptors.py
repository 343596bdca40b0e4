"""interceptors: chained, skipped when they raise, told of every end."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from forebay.errors import ConfigError, CorruptRecordError, KafkaError
from forebay.interceptors import ProducerInterceptor
from forebay.interceptors._chain import ProducerInterceptors, make_interceptors
from forebay.model import ProducerRecord, RecordMetadata, TopicPartition


class Appending:
    """Appends a word to the value; raises when told to."""

    def __init__(self, word: str = "") -> None:
        self.word = word
        self.fail = False
        self.sends = 0
        self.ends: list[tuple[RecordMetadata | None, BaseException | None]] = []
        self.closed = 0

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self.sends += 1
        if self.fail:
            raise ValueError("on_send")
        return replace(record, value=record.value + self.word)

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: BaseException | None) -> None:
        self.ends.append((metadata, error))
        if self.fail:
            raise ValueError("on_acknowledgement")

    def close(self) -> None:
        self.closed += 1
        if self.fail:
            raise ValueError("close")


def chain() -> tuple[Appending, Appending, ProducerInterceptors]:
    one, two = Appending("One"), Appending("Two")
    return one, two, ProducerInterceptors([one, two])


RECORD = ProducerRecord("test", "value", "key", partition=0)


def test_on_send_chain(caplog: pytest.LogCaptureFixture) -> None:
    """I testOnSendChain."""
    one, two, interceptors = chain()
    assert interceptors.on_send(RECORD).value == "valueOneTwo"
    assert interceptors.on_send(RECORD).value == "valueOneTwo"
    assert (one.sends, two.sends) == (2, 2)
    assert not caplog.records
    one.fail = True
    assert interceptors.on_send(RECORD).value == "valueTwo"
    two.fail = True
    assert interceptors.on_send(RECORD) is RECORD
    assert one.sends + two.sends == 8
    assert [record.name for record in caplog.records] == ["forebay.interceptors"] * 3
    assert "Interceptor 2 (Appending) failed in on_send for topic test (failure 1)" in caplog.text


def test_on_send_that_returns_no_record_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    class Forgetful:
        def on_send(self, record: ProducerRecord) -> Any:
            return None

    assert ProducerInterceptors([Forgetful(), Appending("Two")]).on_send(RECORD).value == "valueTwo"
    assert "failed in on_send for topic test" in caplog.text
    assert "on_send returned NoneType, not a ProducerRecord" in caplog.text


def test_failures_are_logged_ever_more_rarely(caplog: pytest.LogCaptureFixture) -> None:
    one, _, interceptors = chain()
    one.fail = True
    for _ in range(100):
        interceptors.on_send(RECORD)
    interceptors.on_acknowledgement(None, None)
    numbers = [str(record.getMessage()).rpartition("failure ")[2] for record in caplog.records]
    assert numbers == ["1)", "2)", "4)", "8)", "16)", "32)", "64)", "1)"]


def test_on_acknowledgement_chain() -> None:
    """I testOnAcknowledgementChain: 2, 4, 6."""
    one, two, interceptors = chain()
    metadata = RecordMetadata("test", 0, 0, 0, 0, 0)
    for ended, (first, second) in enumerate([(False, False), (True, False), (True, True)], start=1):
        one.fail, two.fail = first, second
        interceptors.on_acknowledgement(metadata, None)
        assert len(one.ends) + len(two.ends) == 2 * ended
    assert set(one.ends) == {(metadata, None)}


class Name(str):
    """A topic's name as users may give it, too: an enumeration's member."""


@pytest.mark.parametrize(
    ("record", "where", "expected"),
    [
        (RECORD, TopicPartition("test", 3), ("test", 3)),
        (RECORD, None, ("test", 0)),
        (ProducerRecord("test"), None, ("test", -1)),
        (ProducerRecord("test"), TopicPartition("test", 7), ("test", 7)),
        (None, TopicPartition("test", 7), ("test", 7)),
        (ProducerRecord("test", partition=2**31), None, ("test", -1)),
        (ProducerRecord("test", partition=2**70), None, ("test", -1)),
        (ProducerRecord(Name("test")), None, ("test", -1)),
        (None, TopicPartition(Name("test"), 7), ("test", 7)),
        (None, None, None),
    ],
)
def test_on_send_error(
    record: ProducerRecord | None, where: TopicPartition | None, expected: tuple[str, int] | None
) -> None:
    """I testOnAcknowledgementWithErrorChain."""
    one, two, interceptors = chain()
    error = CorruptRecordError("test")
    interceptors.on_send_error(record, where, error)
    wanted = None if expected is None else RecordMetadata(*expected, -1, -1, -1, -1)
    assert one.ends == two.ends == [(wanted, error)]


def test_empty_is_falsy_and_passes_everything() -> None:
    interceptors = ProducerInterceptors()
    assert not interceptors
    assert interceptors.on_send(RECORD) is RECORD
    interceptors.on_acknowledgement(None, None)
    interceptors.close()


def test_methods_may_be_missing() -> None:
    class Bare:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return replace(record, value="bare")

    interceptors = make_interceptors([Bare()], {})
    assert interceptors.on_send(RECORD).value == "bare"
    interceptors.on_acknowledgement(None, None)
    interceptors.close()
    assert isinstance(type("Full", (Appending,), {"configure": print})(), ProducerInterceptor)


def test_close_is_once_for_each_and_raises_the_first() -> None:
    """H testInterceptorConstructClose: created and closed once."""
    one, two, interceptors = chain()
    one.fail = True
    with pytest.raises(KafkaError, match="Failed to close an interceptor: close") as caught:
        interceptors.close()
    assert isinstance(caught.value.__cause__, ValueError)
    interceptors.close()
    assert (one.closed, two.closed) == (1, 1)


class Configured(Appending):
    """Notes what it was configured with; the third of its kind fails."""

    made: list[Configured] = []

    def __init__(self) -> None:
        super().__init__()
        self.made.append(self)
        self.configured: Mapping[str, Any] | None = None

    def configure(self, configs: Mapping[str, Any]) -> None:
        self.configured = configs
        if len(self.made) == 3:
            raise KafkaError("third")


def test_failing_configure_closes_all_that_were_made() -> None:
    """H testInterceptorConstructorConfigurationWithExceptionShouldCloseRemainingInstances."""

    class Fresh(Configured):
        made: list[Configured] = []

    with pytest.raises(KafkaError, match="third"):
        make_interceptors([Fresh, Fresh, Fresh, Fresh], {"client.id": "me"})
    assert [made.closed for made in Fresh.made] == [1, 1, 1]
    assert [made.configured for made in Fresh.made] == [{"client.id": "me"}] * 3


def test_what_is_no_interceptor() -> None:
    with pytest.raises(ConfigError, match=r"interceptor\.classes: dict has neither"):
        make_interceptors([{}], {})


def test_failing_close_during_a_failing_start_does_not_hide_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    first = Appending()
    first.fail = True
    with caplog.at_level(logging.ERROR), pytest.raises(ConfigError, match="neither"):
        make_interceptors([first, 5], {})
    assert first.closed == 1
    assert "failed in close" in caplog.text


class Tracing:
    """Takes the headers, too."""

    def __init__(self) -> None:
        self.ends: list[tuple[Any, Any, Any]] = []

    def on_acknowledgement(self, metadata: Any, error: Any, headers: Any = ()) -> None:
        self.ends.append((metadata, error, headers))


def test_headers_go_to_those_who_take_them() -> None:
    """KIP-512: a method of two parameters is called as before."""
    old, new = Appending(), Tracing()
    interceptors = ProducerInterceptors([old, new])
    headers = [("a", b"1"), ("b", None)]
    interceptors.on_acknowledgement(None, None, headers)
    headers.clear()
    assert old.ends == [(None, None)]
    assert new.ends == [(None, None, (("a", b"1"), ("b", None)))]
    assert interceptors.takes_headers
    assert not ProducerInterceptors([old]).takes_headers


def test_headers_of_a_record_that_send_refused() -> None:
    new = Tracing()
    interceptors = ProducerInterceptors([new])
    error = CorruptRecordError("test")
    for record in (replace(RECORD, headers=[("a", b"1")]), None, replace(RECORD, headers=5)):  # type: ignore[arg-type]
        interceptors.on_send_error(record, None, error)
    assert [headers for _, _, headers in new.ends] == [(("a", b"1"),), (), ()]


def test_which_methods_take_headers() -> None:
    class Star:
        def on_acknowledgement(self, *arguments: Any) -> None:
            assert len(arguments) == 2, "as before there were headers"

    class Keyword:
        def on_acknowledgement(self, metadata: Any, error: Any, *, log: Any = None) -> None:
            assert log is None

    class Short:
        on_acknowledgement = staticmethod(print)

    interceptors = ProducerInterceptors([Star(), Keyword()])
    assert not interceptors.takes_headers
    interceptors.on_acknowledgement(None, None, [("a", b"1")])
    assert interceptors._failures == {}
    assert not ProducerInterceptors([Short()]).takes_headers
