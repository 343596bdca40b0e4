"""The options of exactly-once writes: which there are, what they need of each other, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from forebay.errors import ConfigError
from forebay.model._wire import topic_fault

GUARANTEE = "deliveryGuarantee"
PREFIX = "transactionalIdPrefix"
APP = "txnAppId"
VERSION = "txnVersion"
CONTROL_TOPIC = "controlTopic"
ABANDON = "abandonUnfinished"
REWRITE = "rewriteUnfinished"
NAMES = (GUARANTEE, PREFIX, APP, VERSION, CONTROL_TOPIC, ABANDON, REWRITE)

AT_LEAST_ONCE, EXACTLY_ONCE = "at-least-once", "exactly-once"
TIMEOUT = "transaction.timeout.ms"
TIMEOUT_MS = 900_000
"""Default of ``kafka.transaction.timeout.ms``: as long as a broker with default settings allows."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,180}")
"""Of topics too, because the control topic's name is made of it."""


class Settings(NamedTuple):
    """What an exactly-once write needs to know beside the producer's options."""

    prefix: str
    """Of every transactional.id; one query or job at a time uses it in a cluster."""
    control_topic: str
    app: str | None = None
    """With ``version`` the id of a batch write; a stream's is the query's."""
    version: int | None = None
    abandon: str | None = None
    """The write, as app/version, whose unfinished rows stay as they are."""
    rewrite: str | None = None
    """The write whose unknown rows are written once more."""


def parse(given: Mapping[str, str], *, streaming: bool) -> Settings | None:
    """Reads the options; None means at least once.

    Args:
        given: all options of the sink, keys in lower case as Spark hands them over.
        streaming: whether they are of a stream's writer.

    Raises:
        ConfigError: names what is missing, contradictory or not allowed, and the remedy.
    """
    found = {name: given[name.lower()].strip() for name in NAMES if name.lower() in given}
    guarantee = found.pop(GUARANTEE, AT_LEAST_ONCE)
    if guarantee not in (AT_LEAST_ONCE, EXACTLY_ONCE):
        raise ConfigError(f"Option '{GUARANTEE}' must be '{AT_LEAST_ONCE}' or '{EXACTLY_ONCE}', not {guarantee!r}")
    if guarantee == AT_LEAST_ONCE:
        if found:
            raise ConfigError(f"Option '{next(iter(found))}' needs the option {GUARANTEE}={EXACTLY_ONCE}")
        return None
    prefix = _named(PREFIX, found.get(PREFIX))
    topic = _named(CONTROL_TOPIC, found.get(CONTROL_TOPIC, f"__{prefix}_spark_commits"))
    fault = topic_fault(topic)
    if fault is not None:
        raise ConfigError(f"Option '{CONTROL_TOPIC}' names no topic that can be, {topic!r}: {fault}")
    app, version = _write_of(found, streaming)
    if ABANDON in found and REWRITE in found:
        raise ConfigError(f"Options '{ABANDON}' and '{REWRITE}' are two answers to one question; give one of them")
    return Settings(prefix, topic, app, version, found.get(ABANDON), found.get(REWRITE))


def _named(option: str, value: str | None) -> str:
    if value is None:
        raise ConfigError(
            f"{GUARANTEE}={EXACTLY_ONCE} needs the option '{option}': a name of this query or job alone that stays the "
            "same when it is started again"
        )
    if not _NAME.fullmatch(value):
        raise ConfigError(f"Option '{option}' must be 1 to 180 letters, digits, '.', '_' or '-', not {value!r}")
    return value


def _write_of(found: Mapping[str, str], streaming: bool) -> tuple[str | None, int | None]:
    app, version = found.get(APP), found.get(VERSION)
    if streaming and (app is not None or version is not None):
        name = APP if app is not None else VERSION
        raise ConfigError(f"Option '{name}' is for batch writes; a stream has its query's id and Spark's batch ids")
    if (app is None) != (version is None):
        missing, there = (APP, VERSION) if app is None else (VERSION, APP)
        raise ConfigError(
            f"Option '{there}' needs the option '{missing}': together they tell a repeated write from a new one"
        )
    if version is None:
        return None, None
    if not app:
        raise ConfigError(f"Option '{APP}' is empty")
    if not version.isascii() or not version.isdigit():
        raise ConfigError(f"Option '{VERSION}' must be a whole number from 0 on that grows, not {version!r}")
    return app, int(version)
