"""``forebay kcat``: kcat's command line for what it writes (-P) and lists (-L).

Options are librdkafka's, read as ``forebay.compat`` reads them, so keys go to the same partitions as with kcat.  What
kcat does on the way is done here, too: empty lines are no messages, and a file without -l is one message.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from forebay._runtime.files import NoTextError, text_of
from forebay.cli.cluster import json_text
from forebay.cli.failure import OK, CommandError
from forebay.cli.flags import header_pairs
from forebay.cli.input.blocks import Block
from forebay.cli.input.files import STDIN, Layout, is_typed
from forebay.cli.input.lines import LineFormat
from forebay.cli.input.rows import unescape
from forebay.cli.produce import ProduceJob
from forebay.cli.properties import BROKERS, pairs
from forebay.cli.report.progress import Display, LogLines
from forebay.compat._librdkafka_config import LibrdkafkaOptions, read_options
from forebay.compat._librdkafka_errors import KafkaException
from forebay.compat._librdkafka_partitioner import PARTITIONERS, hash_partition
from forebay.config import ProducerConfig
from forebay.config._secret import shown_value
from forebay.errors import KafkaError
from forebay.errors._base import printable
from forebay.model import ClusterDescription, TopicDescription
from forebay.model._wire import shown, topic_fault

PORT = 9092
METADATA_S = 5.0
"""kcat's own limit for metadata and transactional calls; -m changes it."""
FILES = (".config/kcat.conf", ".config/kafkacat.conf")
READING = {"consume": "-C", "group": "-G", "query": "-Q", "deserializer": "-s", "registry": "-r"}
"""Flags of kcat that ask for a reading mode or need one, by their names here.  Of the others that only those modes
have (-e, -f, -o, -O, -u), kcat takes no notice where it writes or lists."""
NO_FILE = ("-", "none")
"""In the place of a configuration file."""
ASKS = {"list": "list", "help": "list", "dump": "dump"}
"""What -X may ask for."""
NO_LEADER = 5
ERRORS = {
    3: "Unknown topic or partition",
    NO_LEADER: "Leader not available",
    9: "Replica not available",
    17: "Invalid topic",
    29: "Topic authorization failed",
}
"""librdkafka's words for what a broker says of a topic or partition."""
OF_CONSUMERS = re.compile(
    r"group\.|fetch\.|(auto\.)?offset\.|queued\.|enable\.auto\.|auto\.commit\.|session\.timeout|heartbeat\.|"
    r"partition\.assignment|coordinator\.query|isolation\.level|enable\.partition\.eof|check\.crcs|max\.partition\.fetch"
)
"""Options that a file for kcat may have for its consumer."""
_BROKER = re.compile(r"(?:(?P<protocol>\w+)://)?(?P<host>\[[^\[\]]+\]|[^:\[\]]+)(?::(?P<port>\d+))?")


class Options(NamedTuple):
    """librdkafka's options of a command line, and what is asked about them."""

    values: dict[str, str]
    origins: dict[str, str]
    """The line of those that come from a file."""
    ask: str
    """``list`` or ``dump`` (-X), or nothing."""


def run(
    values: Mapping[str, Any],
    paths: Sequence[str],
    *,
    produce: Callable[[ProduceJob], int],
    describe: Callable[[ProducerConfig, str | None], ClusterDescription],
    write: Callable[[str], object],
    environment: Mapping[str, str] = os.environ,
) -> int:
    """Does what the flags say; returns the exit code.

    Args:
        produce: sends a job.
        describe: asks a cluster for one topic, or for all.

    Raises:
        CommandError: the flags are for reading, or make no sense.
    """
    options = options_of(values, environment)
    if options.ask == "list":
        from forebay.cli.config import render

        write(render())
        return OK
    mode = mode_of(values, paths)
    if mode == "-P" and values["topic"] is None:
        raise CommandError("-t is missing: name the topic")
    if (fault := None if values["topic"] is None else topic_fault(values["topic"])) is not None:
        raise CommandError(f"-t '{shown(values['topic'])}' names no topic that can be: {fault}")
    read = _read(options)
    # With -E a broker that is away is waited for until the messages are too old.
    wait_ms = read.native["max.block.ms"] if values["go_on"] and mode == "-P" else values["metadata_s"] * 1000
    with LogLines(Display(), verbosity_of(values)):
        config = read.native.replace({"max.block.ms": round(wait_ms), "partitioner.ignore.keys": True})
    if options.ask == "dump":
        write(config.describe())
        return OK
    if mode == "-L":
        found = describe(config, values["topic"])
        write(as_json(found, config, values["topic"]) if values["as_json"] else listing(found, config, values["topic"]))
        return OK
    return produce(job_of(values, paths, config, PARTITIONERS[read.partitioner]))


def mode_of(values: Mapping[str, Any], paths: Sequence[str]) -> str:
    """``-P`` or ``-L``.

    Raises:
        CommandError: another mode, several, or none where kcat would read.
    """
    reading = [flag for name, flag in READING.items() if values[name] not in (None, False, ())]
    if reading:
        raise CommandError(
            f"{reading[0]} is for reading, which forebay does not: use kcat, or look with `forebay tail`"
        )
    if values["mock"] is not None:
        raise CommandError("-M runs a mock cluster, which `forebay broker --nodes` does here")
    if values["produce"] and values["metadata"]:
        raise CommandError("-P and -L exclude each other")
    if values["metadata"]:
        return "-L"
    if not values["produce"] and not paths and is_typed():
        raise CommandError("without -P kcat would read here, which forebay does not: give -P to write what you type")
    return "-P"


def options_of(values: Mapping[str, Any], environment: Mapping[str, str]) -> Options:
    """From a file (-F, KCAT_CONFIG or in the home folder), then -X, then the flags for single options."""
    lines = file_options(values["config_file"], environment)
    found = {name: value for _, name, value in lines}
    asks = [ASKS[text] for text in values["options"] if text in ASKS]
    given = pairs([text for text in values["options"] if text not in ASKS], "-X")
    found.update((name.removeprefix("topic."), value) for name, value in given.items())
    if values["codec"] is not None:
        found.pop("compression.type", None)
        found["compression.codec"] = values["codec"]
    brokers = values["brokers"] or found.pop("metadata.broker.list", None) or found.get("bootstrap.servers")
    brokers = brokers or environment.get(BROKERS)
    if brokers:
        found["bootstrap.servers"] = with_ports(brokers, found.get("security.protocol", "plaintext"))
    elif asks != ["list"]:
        raise CommandError(f"-b is missing: name a broker, or set {BROKERS}")
    origins = {name: place for place, name, value in lines if found.get(name) == value}
    return Options(found, origins, asks[0] if asks else "")


def file_options(path: str | None, environment: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Place, name and value of each option in the file that kcat would read; those of consumers are left out."""
    if path in NO_FILE:
        return []
    path = path or environment.get("KCAT_CONFIG") or environment.get("KAFKACAT_CONFIG")
    if path is None:
        home = Path(environment.get("HOME") or "/nonexistent")
        path = next((str(home / name) for name in FILES if (home / name).is_file()), None)
        if path is None:
            return []
    try:
        lines = text_of(Path(path).read_bytes()).splitlines()
    except OSError as error:
        raise CommandError(f"configuration file {path!r} cannot be read: {error.strerror}") from None
    except NoTextError as error:
        raise CommandError(f"configuration file {path!r} {error}") from None
    found: dict[str, tuple[str, str, str]] = {}
    for number, line in enumerate(lines, 1):
        name, equals, value = line.strip().partition("=")
        if not name or name.startswith("#"):
            continue
        if not equals:
            raise CommandError(f"{path}:{number}: write property=value")
        name = name.strip().removeprefix("topic.")
        found[name] = (f"{path}:{number}", name, value.strip())
    return [line for name, line in found.items() if not OF_CONSUMERS.match(name)]


def with_ports(brokers: str, protocol: str = "plaintext") -> str:
    """``[protocol://]host[:port],...`` as ``host:port,...``, with librdkafka's default port.

    Raises:
        CommandError: an entry that is none, or that has another protocol than ``security.protocol``.
    """
    found = []
    for entry in filter(None, map(str.strip, brokers.split(","))):
        match = _BROKER.fullmatch(entry)
        if match is None:
            raise CommandError(f"-b {shown_value(entry)}: write host or host:port, an IPv6 address in brackets")
        if match["protocol"] is not None and match["protocol"].lower() != protocol.lower():
            raise CommandError(f"-b {shown_value(entry)}: give -X security.protocol={match['protocol'].lower()} too")
        found.append(f"{match['host']}:{match['port'] or PORT}")
    return ",".join(found)


def _read(options: Options) -> LibrdkafkaOptions:
    try:
        with LogLines(Display()):  # it is logged where the whole configuration is made
            return read_options(options.values)
    except KafkaException as error:
        text = error.args[0].str()
        words = re.findall(r"[a-z0-9_.]*[a-z0-9]", text)
        places = dict.fromkeys(options.origins[word] for word in words if word in options.origins)
        raise CommandError(f"{', '.join(places)}: {text}" if places else text) from None


def verbosity_of(values: Mapping[str, Any]) -> int:
    """How much of the producer's log is shown."""
    return 0 if values["quiet"] else max(0, values["verbose"] - 1, 2 * bool(values["debug"]))


def job_of(values: Mapping[str, Any], paths: Sequence[str], config: ProducerConfig, partitioner: int) -> ProduceJob:
    """What is sent: lines of standard input or (-l) of files, or each file as one message."""
    key_delimiter = None if values["key_delimiter"] is None else unescape(values["key_delimiter"], "-K")
    lines = LineFormat(unescape(values["delimiter"], "-D"), key_delimiter, skip_empty=True)
    by_line = values["by_line"] or not paths
    key, partition = values["key"], values["partition"]
    return ProduceJob(
        config=config,
        topic=values["topic"],
        wait_s=config["max.block.ms"] / 1000,
        paths=tuple(paths) or (STDIN,),
        # A key is split off lines alone.
        layout=Layout("lines", lines, decompress=False, limit=config["max.request.size"])
        if by_line
        else Layout("whole", decompress=False, limit=config["max.request.size"]),
        key=None if key is None else os.fsencode(key),
        headers=header_pairs(values["headers"]),
        partition=None if partition in (None, -1) else partition,
        empty_is_null=values["empty_is_null"],
        skip_bad=values["go_on"],
        skip_flag="-E",
        # As there: 0 and less are no limit, and files as a whole are not counted.
        count=values["count"] if by_line and (values["count"] or 0) > 0 else None,
        partitioner=partial(hash_partition_of, partitioner),
        tee=partial(copy_out, key_delimiter or b"", sys.stdout.buffer) if values["tee"] and by_line else None,
        quiet=values["quiet"] or not values["verbose"],
        verbosity=verbosity_of(values),
    )


def hash_partition_of(kind: int, key: bytes | None, count: int) -> int | None:
    """librdkafka's choice; None where it is a random one."""
    chosen: int = hash_partition(kind, key, count)
    return None if chosen < 0 else chosen


def copy_out(delimiter: bytes, stream: Any, block: Block) -> None:
    """Writes the lines as they were read, one after the other without their ends, as kcat does."""
    parts = []
    for row, value in enumerate(block.values):
        key = None if block.keys is None else block.keys[row]
        parts.append(value if key is None else key + delimiter + value)
    stream.write(b"".join(parts))
    stream.flush()


# -L


def listing(found: ClusterDescription, config: ProducerConfig, topic: str | None) -> str:
    """The cluster as kcat lists it."""
    number, name = originating(found, config)
    lines = [f"Metadata for {topic or 'all topics'} (from broker {number}: {name}):"]
    lines.append(f" {len(found.nodes)} brokers:")
    for node in found.nodes:
        controller = " (controller)" if found.controller is not None and node.id == found.controller.id else ""
        lines.append(f"  broker {node.id} at {node.host}:{node.port}{controller}")
    lines.append(f" {len(found.topics)} topics:")
    for one in found.topics:
        lines += _topic_lines(one)
    return "\n".join(printable(line, None) for line in lines)


def originating(found: ClusterDescription, config: ProducerConfig) -> tuple[int, str]:
    """Number and name of the broker that was asked, as librdkafka has them: -1 if it is none of the cluster's."""
    for address in config.bootstrap:
        for node in found.nodes:
            if (node.host, node.port) == (address.host, address.port):
                return node.id, f"{node.host}:{node.port}/{node.id}"
    return -1, f"{config.bootstrap[0]}/bootstrap"


def error_text(error: KafkaError) -> str:
    """librdkafka's words; for what it does not say of topics, Kafka's own."""
    code = getattr(error, "code", None)
    return f"Broker: {ERRORS[code]}" if code in ERRORS else f"Broker: {error.message}"


def _topic_lines(topic: TopicDescription) -> list[str]:
    wrong = "" if topic.error is None else f" {error_text(topic.error)}"
    if getattr(topic.error, "code", None) == NO_LEADER:
        wrong += " (try again)"
    lines = [f'  topic "{topic.name}" with {len(topic.partitions)} partitions:{wrong}']
    for one in topic.partitions:
        leader = -1 if one.leader is None else one.leader.id
        replicas, in_sync = (",".join(map(str, ids)) for ids in (one.replicas, one.in_sync_replicas))
        lost = "" if one.leader is not None else f", Broker: {ERRORS[NO_LEADER]}"
        lines.append(f"    partition {one.partition}, leader {leader}, replicas: {replicas}, isrs: {in_sync}{lost}")
    return lines


def as_json(found: ClusterDescription, config: ProducerConfig, topic: str | None) -> str:
    """The same as kcat's JSON."""
    topics = []
    for one in found.topics:
        partitions = [
            {
                "partition": part.partition,
                **({} if part.leader is not None else {"error": f"Broker: {ERRORS[NO_LEADER]}"}),
                "leader": -1 if part.leader is None else part.leader.id,
                "replicas": [{"id": number} for number in part.replicas],
                "isrs": [{"id": number} for number in part.in_sync_replicas],
            }
            for part in one.partitions
        ]
        wrong = {} if one.error is None else {"error": error_text(one.error)}
        topics.append({"topic": one.name, **wrong, "partitions": partitions})
    number, name = originating(found, config)
    document = {
        "originating_broker": {"id": number, "name": name},
        "query": {"topic": topic or "*"},
        "controllerid": -1 if found.controller is None else found.controller.id,
        "brokers": [{"id": node.id, "name": f"{node.host}:{node.port}"} for node in found.nodes],
        "topics": topics,
    }
    return json_text(document, (",", ":"))
