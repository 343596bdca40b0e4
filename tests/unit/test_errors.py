"""errors: every code has a class, every class its flags, and all of them pickle."""

from __future__ import annotations

import builtins
import copy
import pickle
from pathlib import Path

import pytest

import forebay
from forebay import errors
from forebay.errors._base import judged
from forebay.errors._others import CLASSES

RETRIABLE = {
    2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84, 88, 89, 100, 103, 106,
    122, 123, 133,
}  # fmt: skip
INVALID_METADATA = {3, 5, 6, 9, 13, 56, 72, 74, 80, 83, 84, 100, 103}
FATAL = {31, 35, 53, 90}


@pytest.mark.parametrize("code", [code for code in range(-1, 134) if code != 0])
def test_code(code: int) -> None:
    """2 errors: class, flags and text of each code a broker can send."""
    kind = errors.for_code(code)
    assert kind is not None
    assert kind.code == code
    assert kind.__module__ == "forebay.errors"
    assert getattr(errors, kind.__name__) is kind
    assert kind.retriable == (code in RETRIABLE)
    assert kind.invalid_metadata == (code in INVALID_METADATA)
    assert kind.fatal == (code in FATAL)
    assert kind.txn_requires_abort == (code == 120)
    assert issubclass(kind, errors.ApiError)
    assert kind.name.isupper()
    assert str(kind()).endswith(".") or code == -1


def test_names_follow_kafka() -> None:
    assert errors.NotLeaderOrFollowerError.name == "NOT_LEADER_OR_FOLLOWER"
    assert errors.TopicAuthorizationError.name == "TOPIC_AUTHORIZATION_FAILED"
    assert errors.RecordTooLargeError.name == "MESSAGE_TOO_LARGE"
    assert errors.ConfigError.name == "ConfigError"


def test_no_code() -> None:
    assert errors.for_code(0) is None
    assert errors.error_for(0) is None


def test_unknown_code_is_unknown_server_error_and_says_which() -> None:
    error = errors.error_for(999, node=3)
    assert type(error) is errors.UnknownServerError
    assert error.context == {"broker_code": 999, "node": 3}
    assert "broker_code=999" in str(error)


def test_broker_message_replaces_the_default() -> None:
    error = errors.error_for(87, "null key")
    assert isinstance(error, errors.InvalidRecordError)
    assert str(error) == "null key"


def test_subclasses_do_not_take_over_a_code() -> None:
    assert errors.BufferExhaustedError.code is None
    assert errors.BufferExhaustedError.name == "BufferExhaustedError"
    assert errors.DisconnectError.code is None
    assert errors.DisconnectError.invalid_metadata


@pytest.mark.parametrize(
    ("kind", "parents"),
    [
        (errors.KafkaTimeoutError, (errors.RetriableError, builtins.TimeoutError)),
        (errors.KafkaTimeoutError, (errors.KafkaTimeoutError,)),
        (errors.BufferExhaustedError, (errors.KafkaTimeoutError, BufferError)),
        (errors.ConfigError, (errors.KafkaError, ValueError)),
        (errors.IllegalArgumentError, (errors.KafkaError, ValueError)),
        (errors.IllegalStateError, (errors.KafkaError, RuntimeError)),
        (errors.ProducerClosedError, (errors.IllegalStateError,)),
        (errors.ForkedProducerError, (errors.IllegalStateError,)),
        (errors.UnserializableTypeError, (errors.SerializationError, TypeError)),
        (errors.UnknownProducerIdError, (errors.OutOfOrderSequenceError,)),
        (errors.DisconnectError, (errors.NetworkError, errors.InvalidMetadataError)),
        (errors.SaslAuthenticationError, (errors.AuthenticationError,)),
    ],
)
def test_parents(kind: type, parents: tuple[type, ...]) -> None:
    assert all(issubclass(kind, parent) for parent in parents)


@pytest.mark.parametrize("outside", [errors.ConfigError, errors.SerializationError, errors.IllegalStateError])
def test_errors_of_the_call_are_no_api_errors(outside: type) -> None:
    assert issubclass(outside, errors.KafkaError)
    assert not issubclass(outside, errors.ApiError)


ALL = sorted(
    {
        value
        for value in (*vars(errors).values(), *CLASSES.values())
        if isinstance(value, type) and issubclass(value, errors.KafkaError)
    },
    key=repr,
)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: str(kind.__name__))
def test_pickle_and_copy_keep_everything(kind: type[errors.KafkaError]) -> None:
    error = kind("text", node=4, age_ms=1.5)
    error.txn_requires_abort = True
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is kind
        assert str(twin) == str(error) == "text (node=4, age_ms=1.5)"
        assert twin.args == ("text",)
        assert twin.context == {"node": 4, "age_ms": 1.5}
        assert twin.txn_requires_abort


def test_pickle_keeps_a_cause_of_ours() -> None:
    error = errors.KafkaTimeoutError("late")
    error.__cause__ = errors.NotLeaderOrFollowerError(node=1)
    twin = pickle.loads(pickle.dumps(error))
    assert isinstance(twin.__cause__, errors.NotLeaderOrFollowerError)
    assert twin.__cause__.context == {"node": 1}


class SpecialError(errors.KafkaError):
    """With a constructor of its own."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first}+{second}")
        self.second = second


def test_pickle_of_another_constructor() -> None:
    twin = pickle.loads(pickle.dumps(SpecialError(1, 2)))
    assert (str(twin), twin.second) == ("1+2", 2)


def test_with_context_adds_and_keeps_the_first() -> None:
    error = errors.KafkaTimeoutError("late", node=1)
    assert error.with_context(node=2, attempts=3) is error
    assert str(error) == "late (node=1, attempts=3)"
    assert error.message == "late"


def test_all_names_exist_and_table_classes_are_reachable() -> None:
    assert all(hasattr(errors, name) for name in errors.__all__)
    assert errors.GroupIdNotFoundError.code == 69  # type: ignore[attr-defined]


def test_closed_producer_message() -> None:
    assert str(errors.ProducerClosedError()) == "Cannot perform operation after producer has been closed"


def test_what_an_error_means_in_its_place_is_its_own() -> None:
    """One lost connection is the error of many batches, so those outside a transaction keep theirs as it is."""
    shared = errors.NetworkError("lost", node=1)
    own = judged(shared, requires_abort=True)
    assert (own.fatal, own.txn_requires_abort, own.retriable) == (False, True, False)
    assert (shared.fatal, shared.txn_requires_abort, shared.retriable) == (False, False, True)
    assert type(own) is errors.NetworkError and str(own) == str(shared)
    assert judged(own, requires_abort=True) is own
    for twin in (pickle.loads(pickle.dumps(own)), copy.copy(own)):
        assert (twin.fatal, twin.txn_requires_abort, twin.retriable) == (False, True, False)
    fatal_no_more = judged(errors.ClusterAuthorizationError())
    assert not fatal_no_more.fatal and errors.ClusterAuthorizationError().fatal


def test_what_is_no_text_is_kept_as_it_is() -> None:
    error = errors.KafkaError(b"\x1b")  # type: ignore[arg-type]
    assert error.args == (b"\x1b",) and "\x1b" not in str(error)


def test_those_that_a_program_branches_on_are_at_the_top_and_in_the_picture_of_the_tree() -> None:
    """The page's picture has each of them, and each below the class that stands above it there."""
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text()
    picture = page.partition("```text\n")[2].partition("```")[0].splitlines()
    above: list[type[BaseException]] = []
    for line in picture:
        name = line.lstrip("│├└─ ").split()[0]
        depth = (len(line) - len(line.lstrip("│├└─ "))) // 4
        kind = getattr(forebay, name)
        assert depth == 0 or issubclass(kind, above[depth - 1]), name
        above[depth:] = [kind]
    shown = {line.lstrip("│├└─ ").split()[0] for line in picture}
    assert shown == {name for name in forebay.__all__ if name.endswith("Error")}
    assert all(getattr(forebay, name) is getattr(errors, name) for name in shown)
