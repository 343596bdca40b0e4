"""Errors under aiokafka's names: codes, flags, and what is left out."""

from __future__ import annotations

import pickle

import pytest
from aiokafka import errors as original

from forebay.compat.aiokafka import errors

BROKERS = [name for name in errors.__all__ if issubclass(getattr(errors, name), errors.BrokerResponseError)]


@pytest.mark.parametrize("name", errors.__all__)
def test_each_is_the_originals(name: str) -> None:
    ours, theirs = getattr(errors, name), getattr(original, name)
    names = {base.__name__ for base in theirs.__mro__} - {"object"}
    assert {base.__name__ for base in ours.__mro__} - {"object"} == names
    if name not in ("BrokerResponseError", "CommitFailedError"):  # these have no code, or a long text, there
        assert str(ours("text")) == str(theirs("text"))


@pytest.mark.parametrize("name", [name for name in BROKERS if name != "BrokerResponseError"])
def test_codes_are_the_originals(name: str) -> None:
    ours, theirs = getattr(errors, name), getattr(original, name)
    assert ours.errno == theirs.errno and ours.message and ours.description
    assert str(ours("why")) == f"[Error {theirs.errno}] {theirs.__name__}: why"
    assert ours.retriable or not theirs.retriable


def test_what_consumers_alone_raise_is_not_here() -> None:
    """A consumer is the original's, and these classes would never match what it raises."""
    for name in ("ConsumerStoppedError", "NoOffsetForPartitionError", "OffsetOutOfRangeError", "RecordTooLargeError"):
        assert hasattr(original, name) and not hasattr(errors, name)


def test_they_pickle() -> None:
    error = errors.NotLeaderForPartitionError("text")
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is type(error) and copied.args == error.args and copied.native is None
