"""Whether a control topic keeps its records, and whose they are; each refusal names the topic and the remedy."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from forebay.errors import (
    AuthorizationError,
    ConfigError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    TransactionalIdAuthorizationError,
    UnknownTopicOrPartitionError,
)
from forebay.model import TailRecord
from forebay.spark.exactly_once import protocol
from forebay.spark.exactly_once.protocol import State
from forebay.spark.exactly_once.settings import Settings

if TYPE_CHECKING:
    from forebay.admin import AdminClient

logger: logging.Logger = logging.getLogger("forebay.spark")

POLICY, FOREVER = "cleanup.policy", ("retention.ms", "retention.bytes")
ANEW = (
    "The control topic %s was made, although transactionalIdPrefix=%s has been used before. If somebody deleted it, "
    "nobody knows any more what was written: a write that is repeated now is there twice"
)


def check(admin: AdminClient, topic: str) -> None:
    """Asks whether the topic keeps its last record.

    Raises:
        ConfigError: it deletes old records.
    """
    try:
        found = admin.topic_configs(topic, (POLICY, *FOREVER))
    except KafkaError as error:
        logger.warning(
            "Whether the control topic %s keeps its last record could not be asked (%s). Its %s has to be compact",
            topic,
            error,
            POLICY,
        )
        return
    if not keeps(found):
        raise ConfigError(
            f"The control topic {topic!r} has {POLICY}={found[POLICY]}, so Kafka deletes the decisions by which a "
            "repeated write is known. Mend it with: kafka-configs.sh --bootstrap-server BROKER --alter --entity-type "
            f"topics --entity-name {topic} --add-config {POLICY}=compact"
        )


def keeps(configs: Mapping[str, str | None]) -> bool:
    """Whether a topic with this configuration keeps the last record of each key for ever."""
    deletes = "delete" in (configs.get(POLICY) or "")
    return not deletes or all(configs.get(key) == "-1" for key in FOREVER)


def of_prefix(topic: str, prefix: str, record: TailRecord) -> State:
    """What the topic's last record says.

    Raises:
        IllegalStateError: it is of somebody else.
    """
    remedy = f"A control topic belongs to one transactionalIdPrefix, here {prefix}; give another with controlTopic"
    if record.key != prefix.encode():
        raise IllegalStateError(
            f"The last record of the control topic {topic!r}, offset {record.offset}, has the key {record.key!r}. "
            f"{remedy}"
        )
    try:
        return protocol.decode(record.value)
    except IllegalStateError as error:
        raise IllegalStateError(f"Control topic {topic!r}, offset {record.offset}: {error}. {remedy}") from error


@contextmanager
def remedies(settings: Settings) -> Iterator[None]:
    """Errors of missing rights, and of a topic that is gone, leave with the names and with what to do."""
    topic, prefix = settings.control_topic, settings.prefix
    try:
        yield
    except TransactionalIdAuthorizationError as error:
        raise type(error)(
            f"{error}. An exactly-once write needs Write and Describe on transactional ids that begin with {prefix}-"
        ) from error
    except AuthorizationError as error:
        raise type(error)(
            f"{error}. An exactly-once write needs Read, Write and Describe on its control topic {topic!r}, Create if "
            "it has to be made, and DescribeConfigs to check it"
        ) from error
    except KafkaTimeoutError as error:
        if not isinstance(error.__cause__, UnknownTopicOrPartitionError):
            raise
        raise KafkaTimeoutError(
            f"{error}. If it is the control topic {topic!r} that was deleted, nobody knows any more what was written: "
            "end the job, see what its last write has left, and start it again; the topic is made anew then"
        ) from error
