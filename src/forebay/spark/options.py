"""The sink's options: Spark's strings in, one frozen value out, everything checked before any task starts.

Spark hands keys over in lower case; Kafka's own option names are lower case anyway.  What is not known is
refused with the nearest name, because a misspelt ``kafka.acks`` that is ignored loses data in silence.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forebay.config._door import door
from forebay.config._secret import shown_name
from forebay.errors import ConfigError
from forebay.model._wire import shown, topic_fault
from forebay.spark.exactly_once import settings
from forebay.spark.exactly_once.settings import Settings
from forebay.spark.secrets import ALLOW_INLINE_KEY

PREFIX = "kafka."
TOPIC = "topic"
METRICS_PATH = "metrics.path"
BOOTSTRAP = "kafka.bootstrap.servers"

OURS = (TOPIC, "includeHeaders", METRICS_PATH, ALLOW_INLINE_KEY, *settings.NAMES)
"""As they are written; Spark hands them over in lower case."""
_OURS = frozenset(name.lower() for name in OURS)
# Spark adds these to a stream's options by itself; they mean nothing here.
SPARKS = ("checkpointlocation", "queryname")

OF_THE_SOURCE = frozenset(
    (
        *("subscribe", "subscribepattern", "assign", "failondataloss", "groupidprefix", "minpartitions"),
        *("startingoffsets", "startingoffsetsbytimestamp", "startingoffsetsbytimestampstrategy", "startingtimestamp"),
        *("endingoffsets", "endingoffsetsbytimestamp", "endingtimestamp", "maxrecordsperpartition"),
        *("maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay"),
        *("kafkaconsumer.polltimeoutms", "fetchoffset.numretries", "fetchoffset.retryintervalms"),
        *("kafka.allow.auto.create.topics", "kafka.auto.commit.interval.ms", "kafka.auto.offset.reset"),
        *("kafka.check.crcs", "kafka.client.rack", "kafka.default.api.timeout.ms", "kafka.enable.auto.commit"),
        *("kafka.exclude.internal.topics", "kafka.fetch.max.bytes", "kafka.fetch.max.wait.ms", "kafka.fetch.min.bytes"),
        *("kafka.group.id", "kafka.group.instance.id", "kafka.group.protocol", "kafka.group.remote.assignor"),
        *("kafka.heartbeat.interval.ms", "kafka.isolation.level", "kafka.key.deserializer"),
        *("kafka.max.partition.fetch.bytes", "kafka.max.poll.interval.ms", "kafka.max.poll.records"),
        *("kafka.partition.assignment.strategy", "kafka.session.timeout.ms", "kafka.value.deserializer"),
    )
)
"""Options of Spark's Kafka source, and those that only a consumer has: a dict may serve a reader, too."""

REFUSED = {
    "repartition": "a Python data source gets its rows as Spark split them and cannot move them to other tasks; "
    "write forebay.spark.repartition(df, options) instead of df, or set repartition = true in a job file's [sink]",
    "kafka.key.serializer": "keys go out as the column's bytes; cast or encode the key column instead",
    "kafka.value.serializer": "values go out as the column's bytes; cast or encode the value column instead",
    "kafka.transactional.id": "each task needs one of its own; set deliveryGuarantee=exactly-once and give the "
    "beginning of all of them as transactionalIdPrefix",
    "kafka.interceptor.classes": "rows go from Arrow memory into batches, no record object is made for an interceptor",
}

LEAST_TIMEOUT_MS = 5_000
EXACTLY_ONCE_NEEDS: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "acks": ("all", lambda given: given not in ("all", "-1")),
    "enable.idempotence": ("true", lambda given: given != "true"),
    "retries": ("above 0", lambda given: given == "0"),
    "max.in.flight.requests.per.connection": ("at most 5", lambda given: given.isdigit() and int(given) > 5),
    settings.TIMEOUT: (
        f"at least {LEAST_TIMEOUT_MS}, because a write has to end within it",
        lambda given: given.isdigit() and int(given) < LEAST_TIMEOUT_MS,
    ),
}
"""What each of these has to be, and whether it is not; what is no value at all, the producer's own check refuses."""

ProducerCheck = Callable[[Mapping[str, str]], None]


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What a task needs to know; picklable and hashable, so that a worker can keep a producer for it."""

    producer: tuple[tuple[str, str], ...]
    """The producer's options without their prefix, in order of name."""
    topic: str | None = None
    """Where every row goes, whatever its topic column says."""
    metrics_path: str | None = None
    """File on the driver's host that gets the counters at each commit."""
    exactly_once: Settings | None = None
    """None: at least once."""

    def __repr__(self) -> str:
        # Passwords are among the values: names only.
        names = ", ".join(name for name, _ in self.producer)
        return (
            f"<SinkOptions topic={self.topic} producer=({names}) metrics_path={self.metrics_path} {self.exactly_once}>"
        )


def check_producer_options(options: Mapping[str, str]) -> None:
    """Lets the producer's own configuration judge ``options``."""
    from forebay.config import ProducerConfig

    ProducerConfig(options)


@door(wrap=False)
def parse(
    options: Mapping[str, str], *, streaming: bool = False, check: ProducerCheck = check_producer_options
) -> SinkOptions:
    """Reads the options of one sink.

    Args:
        streaming: whether they are of a stream's writer.

    Raises:
        ConfigError: unknown, refused or missing, or the producer's own refusal; names the option as it was given.
    """
    given = {key.lower(): value for key, value in options.items() if key.lower() not in OF_THE_SOURCE}
    for key in sorted(given):
        _refuse(key)
    if not given.get(BOOTSTRAP, "").strip():
        raise ConfigError(
            f"Option '{BOOTSTRAP}' must be specified for writing to Kafka: host:port[,host:port...]{_of_table(given)}"
        )
    producer = {key.removeprefix(PREFIX): value for key, value in given.items() if key.startswith(PREFIX)}
    exactly_once = settings.parse(given, streaming=streaming)
    extra = {}
    if exactly_once is not None:
        _check_needs(producer)
        producer.setdefault(settings.TIMEOUT, str(settings.TIMEOUT_MS))
        extra["transactional.id"] = exactly_once.prefix
    try:
        check(producer | extra)
    except ConfigError as error:
        # Its hint may be of an option that a producer has and the sink has not.
        for key, reason in REFUSED.items():
            if key.removeprefix(PREFIX) in error.message:
                raise ConfigError(f"{error.message}; but '{key}' is not supported: {reason}") from error
        raise
    return SinkOptions(tuple(sorted(producer.items())), _topic(given), _metrics_path(given), exactly_once)


def _of_table(given: Mapping[str, str]) -> str:
    if any(key.startswith(PREFIX) or key == TOPIC for key in given):
        return ""
    return (
        ". Spark hands the options of a table to no sink in Python, so SQL's INSERT INTO cannot work: use "
        'df.write.format("forebay")'
    )


def ignored(options: Mapping[str, str]) -> list[str]:
    """The names, as they are written, of options that only a source has; Spark's own sink passes over them, too."""
    return sorted(key for key in options if key.lower() in OF_THE_SOURCE)


def _check_needs(producer: Mapping[str, str]) -> None:
    """In the words of the option that the user wrote; the producer itself would speak of a transactional.id."""
    for name, (allowed, is_wrong) in EXACTLY_ONCE_NEEDS.items():
        given = producer.get(name, "").strip().lower()
        if given and is_wrong(given):
            raise ConfigError(
                f"{settings.GUARANTEE}={settings.EXACTLY_ONCE} needs '{PREFIX}{name}' to be {allowed}, not "
                f"{producer[name]!r}"
            )


def _refuse(key: str) -> None:
    if key in REFUSED:
        raise ConfigError(f"Option '{key}' is not supported: {REFUSED[key]}")
    if key.startswith(PREFIX) or key in _OURS or key in SPARKS:
        return
    near = _nearest(key)
    hint = "."
    if near:
        from forebay.config import unavailable

        hint = f"; did you mean '{near}'?{unavailable(near.removeprefix(PREFIX))}"
    shown = key if near else shown_name(key, key).strip("'")
    raise ConfigError(f"Unknown option '{shown}'{hint} Known: {PREFIX}<producer option>, {', '.join(OURS)}")


def _nearest(key: str) -> str | None:
    from forebay.config import table

    names = [*OURS, *(PREFIX + option.name for option in table() if PREFIX + option.name not in REFUSED)]
    if PREFIX + key in names:
        return PREFIX + key
    near = difflib.get_close_matches(key, [name.lower() for name in names], n=1, cutoff=0.6)
    return next((name for name in names if name.lower() in near), None)


def _topic(given: Mapping[str, str]) -> str | None:
    if TOPIC not in given:
        return None
    topic = given[TOPIC].strip()
    if not topic:
        raise ConfigError("Option 'topic' is empty: name a topic, or leave the option out and give a topic column")
    fault = topic_fault(topic)
    if fault is not None:
        raise ConfigError(f"Option 'topic' names no topic that can be, '{shown(topic)}': {fault}")
    return topic


def _metrics_path(given: Mapping[str, str]) -> str | None:
    path = given.get(METRICS_PATH)
    if path is None:
        return None
    folder = os.path.dirname(os.path.abspath(path))
    if not path.strip() or os.path.isdir(path):
        raise ConfigError(f"Option '{METRICS_PATH}' must name a file, not {path!r}")
    if not os.path.isdir(folder):
        raise ConfigError(f"Option '{METRICS_PATH}': folder {folder!r} does not exist on the driver's host")
    return path
