"""Topics, made on demand."""

from __future__ import annotations

from collections.abc import Mapping

from forebay._control.session import ControlSession, Deadline, Question, raise_for
from forebay._protocol.create_topics import BROKER_DEFAULT, decode_create_topics, encode_create_topics
from forebay._protocol.metadata import MetadataResponse, decode_metadata, encode_metadata
from forebay._protocol.versions import SUPPORTED, ApiKey

_TOPIC_ALREADY_EXISTS = 36
# The first version with defaults of the broker.
_WITH_DEFAULTS = 4


def create_topic(
    session: ControlSession,
    name: str,
    partitions: int,
    replication_factor: int,
    *,
    configs: Mapping[str, str | None],
    deadline: Deadline,
) -> bool:
    """True if the controller made the topic, False if there is one of that name."""
    oldest, newest = SUPPORTED[ApiKey.CREATE_TOPICS]
    question = Question(
        ApiKey.CREATE_TOPICS,
        lambda version: encode_create_topics(
            version,
            name,
            partitions,
            replication_factor,
            configs=configs,
            timeout_ms=int(session.request_timeout_ms),
        ),
        decode_create_topics,
        (_WITH_DEFAULTS if BROKER_DEFAULT in (partitions, replication_factor) else oldest, newest),
    )

    stale = False

    def attempt() -> bool:
        nonlocal stale
        if stale:
            session.refresh(deadline)
        # Whatever fails in a way that passes, the controller may be another one by then.
        stale = True
        node = session.controller(deadline)
        answer = session.ask(node, question, deadline)
        if answer.error_code == _TOPIC_ALREADY_EXISTS:
            return False
        raise_for(answer.error_code, answer.error_message, topic=name, node=node.id)
        return True

    return session.retry(deadline, attempt)


def describe_topics(session: ControlSession, name: str | None, deadline: Deadline) -> MetadataResponse:
    """The brokers, and one topic or (None) all of them; a topic that does not exist has an error code.

    A topic that is named may be made, where the brokers' ``auto.create.topics.enable`` says so.
    """
    question = Question(
        ApiKey.METADATA,
        lambda version: encode_metadata(version, None if name is None else [name]),
        decode_metadata,
        SUPPORTED[ApiKey.METADATA],
    )
    answer: MetadataResponse = session.retry(
        deadline, lambda: session.ask(session.any_node(deadline), question, deadline)
    )
    return answer
