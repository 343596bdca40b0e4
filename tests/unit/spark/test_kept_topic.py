"""Which control topics are refused, and what an error about one says."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.errors import (
    ConfigError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from forebay.model import TailRecord
from forebay.spark.exactly_once import protocol
from forebay.spark.exactly_once.protocol import State
from forebay.spark.exactly_once.settings import Settings
from forebay.spark.kept_topic import check, keeps, of_prefix, remedies

SETTINGS = Settings("p", "commits")


class Answering:
    """An AdminClient that knows one configuration, or fails."""

    def __init__(self, answer: dict[str, str | None] | KafkaError) -> None:
        self.answer = answer

    def topic_configs(self, topic: str, keys: tuple[str, ...]) -> dict[str, str | None]:
        if isinstance(self.answer, KafkaError):
            raise self.answer
        return {key: self.answer[key] for key in keys if key in self.answer}


@pytest.mark.parametrize(
    ("policy", "ms", "size", "kept"),
    [
        ("compact", "604800000", "-1", True),
        ("delete", "604800000", "-1", False),
        ("delete", "-1", "1000", False),
        ("delete", "-1", "-1", True),
        ("compact,delete", "604800000", "-1", False),
        ("delete,compact", "-1", "-1", True),
        ("", "604800000", "-1", True),
    ],
)
def test_a_topic_that_deletes_is_refused_with_the_command_that_mends_it(
    policy: str, ms: str, size: str, kept: bool
) -> None:
    found: dict[str, str | None] = {"cleanup.policy": policy, "retention.ms": ms, "retention.bytes": size}
    assert keeps(found) is kept
    admin: Any = Answering(found)
    if kept:
        check(admin, "commits")
        return
    command = rf"'commits' has cleanup.policy={policy}, .*--entity-name commits --add-config cleanup.policy=compact"
    with pytest.raises(ConfigError, match=command):
        check(admin, "commits")


@pytest.mark.parametrize("error", [TopicAuthorizationError, UnsupportedVersionError, KafkaTimeoutError])
def test_a_question_that_is_not_answered_is_one_warning(
    error: type[KafkaError], caplog: pytest.LogCaptureFixture
) -> None:
    admin: Any = Answering(error("not for you"))
    check(admin, "commits")
    (message,) = caplog.messages
    assert "control topic commits" in message and "not for you" in message and "has to be compact" in message


def test_a_record_of_somebody_else_names_the_topic_and_the_remedy() -> None:
    mine = TailRecord(7, -1, b"p", protocol.encode(State(None, (("q", 5),))))
    assert of_prefix("commits", "p", mine) == State(None, (("q", 5),))
    for other, words in ((mine._replace(key=b"eu"), "has the key b'eu'"), (mine._replace(value=b"x"), "none of this")):
        with pytest.raises(IllegalStateError, match=f"'commits', .*offset 7.*{words}.*give another with controlTopic"):
            of_prefix("commits", "p", other)


def lost(cause: KafkaError) -> KafkaTimeoutError:
    error = KafkaTimeoutError("read_tail was not done within 60 s")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TopicAuthorizationError("no"), "no. .*Read, Write and Describe on its control topic 'commits'"),
        (TransactionalIdAuthorizationError("no"), "no. .*transactional ids that begin with p-"),
        (lost(UnknownTopicOrPartitionError()), "within 60 s. .*control topic 'commits' that was deleted"),
        (lost(KafkaTimeoutError("slow")), "within 60 s$"),
        (KafkaError("another"), "^another$"),
    ],
)
def test_a_missing_right_or_topic_is_named_with_what_to_do(error: KafkaError, words: str) -> None:
    with pytest.raises(type(error), match=words), remedies(SETTINGS):
        raise error
