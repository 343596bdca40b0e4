"""The function for ``foreachBatch``, on a frame that notes what is asked of it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from forebay.errors import ConfigError
from forebay.spark import write_batches

NEEDED = {"kafka.bootstrap.servers": "b:1", "topic": "t"}
EXACTLY = NEEDED | {"deliveryGuarantee": "exactly-once", "transactionalIdPrefix": "p"}


class Frame:
    """A DataFrame, its session and its writer in one."""

    def __init__(self, query: str | None = "query-7") -> None:
        self.written: dict[str, Any] = {}
        self._query = query
        if query is not None:
            self._sc = self

    @property
    def sparkSession(self) -> Frame:
        return self

    write = sparkSession

    def getLocalProperty(self, name: str) -> str | None:
        return self._query if name == "sql.streaming.queryId" else None

    def format(self, name: str) -> Frame:
        self.written["format"] = name
        return self

    def mode(self, name: str) -> Frame:
        self.written["mode"] = name
        return self

    def options(self, **options: str) -> Frame:
        self.written["options"] = options
        return self

    def save(self) -> None:
        self.written["saved"] = True


def written(options: dict[str, str], frame: Frame | None = None) -> dict[str, Any]:
    frame = frame or Frame()
    given: Any = frame
    pickle.loads(pickle.dumps(write_batches(options)))(given, 12)
    assert (frame.written["format"], frame.written["mode"], frame.written["saved"]) == ("forebay", "append", True)
    return frame.written["options"]  # type: ignore[no-any-return]


def test_at_least_once_the_options_go_on_as_they_are() -> None:
    assert written(NEEDED) == NEEDED


def test_exactly_once_by_the_querys_id_and_the_micro_batch() -> None:
    assert written(EXACTLY) == EXACTLY | {"txnAppId": "query-7", "txnVersion": "12"}


def test_an_id_of_the_users_comes_first() -> None:
    assert written(EXACTLY | {"txnappid": "mine"}, Frame(None)) == EXACTLY | {"txnappid": "mine", "txnVersion": "12"}


def test_without_a_query_an_id_is_asked_for() -> None:
    with pytest.raises(ConfigError, match="give the option 'txnAppId'"):
        written(EXACTLY, Frame(None))


def test_options_are_judged_when_it_is_made_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="'txnVersion' is the micro-batch's number here"):
        write_batches(EXACTLY | {"txnVersion": "3"})
    with pytest.raises(ConfigError, match="needs the option 'transactionalIdPrefix'"):
        write_batches(NEEDED | {"deliveryGuarantee": "exactly-once"})
    with pytest.raises(ConfigError, match="did you mean 'topic'"):
        write_batches(NEEDED | {"topics": "t"})
    assert repr(write_batches(NEEDED)) == "write_batches(kafka.bootstrap.servers, topic)"
