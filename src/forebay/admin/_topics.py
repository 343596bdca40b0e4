"""Topics, made, deleted and described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from forebay._protocol.create_topics import BROKER_DEFAULT, decode_create_topics, encode_create_topics
from forebay._protocol.delete_topics import decode_delete_topics, encode_delete_topics
from forebay._protocol.describe_configs import decode_describe_configs, encode_describe_configs
from forebay._protocol.metadata import NOT_TOLD, MetadataResponse, decode_metadata, encode_metadata
from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay.admin._session import AdminSession, Deadline, Question, raise_for
from forebay.errors import error_for
from forebay.model import ClusterDescription, PartitionInfo, TopicDescription

_UNKNOWN_TOPIC, _TOPIC_ALREADY_EXISTS = 3, 36
# Kafka's AclOperation, by its code.
_OPERATIONS = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
    *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
)
# The first version with defaults of the broker.
_WITH_DEFAULTS = 4
# The first version that asks without making the topic.
_WITHOUT_CREATION = 4


def create_topic(
    session: AdminSession,
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

    return _ask_controller(session, name, question, _TOPIC_ALREADY_EXISTS, deadline)


def delete_topic(session: AdminSession, name: str, deadline: Deadline) -> bool:
    """True if the controller deleted the topic, False if there is none of that name."""
    question = Question(
        ApiKey.DELETE_TOPICS,
        lambda version: encode_delete_topics(version, name, timeout_ms=int(session.request_timeout_ms)),
        decode_delete_topics,
    )
    return _ask_controller(session, name, question, _UNKNOWN_TOPIC, deadline)


def _ask_controller(session: AdminSession, name: str, question: Question, needless: int, deadline: Deadline) -> bool:
    """Whether the controller did it; ``needless`` is the code that says that it is so already."""
    stale = False

    def attempt() -> bool:
        nonlocal stale
        if stale:
            session.refresh(deadline)
        # Whatever fails in a way that passes, the controller may be another one by then.
        stale = True
        node = session.controller(deadline)
        answer = session.ask(node, question, deadline)
        if answer.error_code == needless:
            return False
        raise_for(answer.error_code, answer.error_message, topic=name, node=node.id)
        return True

    return session.retry(deadline, attempt)


def topic_configs(session: AdminSession, name: str, keys: Sequence[str], deadline: Deadline) -> dict[str, str | None]:
    """Some keys of a topic's configuration, as any broker has it."""
    question = Question(
        ApiKey.DESCRIBE_CONFIGS, lambda version: encode_describe_configs(version, name, keys), decode_describe_configs
    )

    def attempt() -> dict[str, str | None]:
        answer = session.ask(session.any_node(deadline), question, deadline)
        raise_for(answer.error_code, answer.error_message, topic=name)
        return dict(answer.configs)

    return session.retry(deadline, attempt)


def describe_topics(
    session: AdminSession, name: str | None, deadline: Deadline, *, create: bool = True
) -> MetadataResponse:
    """The brokers, and one topic or (None) all of them; a topic that does not exist has an error code.

    Args:
        create: a topic that is named may be made, where the brokers' ``auto.create.topics.enable`` says so.
    """
    oldest, newest = SUPPORTED[ApiKey.METADATA]
    names = None if name is None else [name]
    question = Question(
        ApiKey.METADATA,
        lambda version: encode_metadata(
            version, names, allow_auto_topic_creation=create, topic_operations=name is not None
        ),
        decode_metadata,
        (oldest if create else max(oldest, _WITHOUT_CREATION), newest),
    )
    answer: MetadataResponse = session.retry(
        deadline, lambda: session.ask(session.any_node(deadline), question, deadline)
    )
    return answer


def described(answer: MetadataResponse) -> ClusterDescription:
    """The values of a Metadata answer, topics by their names."""
    nodes = {node.id: node for node in answer.brokers}
    topics = [
        TopicDescription(
            topic.name or "",
            tuple(
                PartitionInfo(
                    topic.name or "",
                    one.partition,
                    nodes.get(one.leader_id),
                    one.leader_epoch,
                    one.replicas,
                    one.in_sync_replicas,
                    one.offline_replicas,
                )
                for one in sorted(topic.partitions, key=attrgetter("partition"))
            ),
            topic.is_internal,
            error_for(topic.error_code, topic=topic.name),
            _operations(topic.operations),
        )
        for topic in answer.topics
    ]
    return ClusterDescription(
        answer.cluster_id,
        nodes.get(answer.controller_id),
        tuple(sorted(answer.brokers)),
        tuple(sorted(topics, key=attrgetter("name"))),
    )


def _operations(bits: int) -> frozenset[str] | None:
    if bits == NOT_TOLD:
        return None
    return frozenset(name for code, name in enumerate(_OPERATIONS) if bits >> code & 1)
