"""The file of a question, in TOML: the load, the cluster, the goal, and the settings that run today.

Here its tables are read, and keys that nobody knows are refused with the nearest name.  What the values mean is in
``workload``, ``brokers`` and ``goal``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from forebay._runtime.files import NoTextError
from forebay.config import ProducerConfig, is_option
from forebay.config._door import kafka_name
from forebay.errors import ConfigError
from forebay.spark.jobs.table import Table, known, read_text
from forebay.tune._checks import TuneError

T = TypeVar("T")

STREAM = (
    "rate",
    "sizes",
    "arrivals",
    "burst",
    "keys",
    "key_sizes",
    "partitions",
    "topic",
    "threads",
    "callers",
    "think_ms",
    "callbacks",
    "batch_rows",
)
BROKER = (
    "rtt_ms",
    "fixed_ms",
    "per_mib_ms",
    "bandwidth",
    "handlers",
    "jitter",
    "replication_ms",
    "quota",
    "others",
)
ALLOWED: Mapping[str, tuple[str, ...] | None] = {
    "load": (*STREAM, "topics", "producers", "compression", "trace", "stream"),
    "cluster": (*BROKER, "nodes", "node", "outage", "file", "measured"),
    "goal": ("least", "p50_ms", "p99_ms", "memory", "lost", "hold_ms"),
    "client": ("stalls", "beside"),
    "settings": None,
}
LISTS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("load", "stream"): STREAM,
    ("cluster", "node"): ("node", *BROKER),
    ("cluster", "outage"): ("node", "seconds", "kind", "election_ms"),
}
"""Tables of which a file may have several, ``[[cluster.outage]]``, and their keys."""

TEMPLATE = """\
# What comes to the producer, and what it writes to.  `forebay tune predict FILE` says what the settings give.

[load]
rate = 2000                  # records a second; steps: [[0, 500], [60, 8000]]
sizes = 1000                 # bytes of a value; a mix: {5000 = 0.5, 12000 = 0.5}; in turn: [5000, 12000]
topics = {orders = 12}       # partitions by topic
# keys = {count = 10000, zipf = 1.0}
# burst = {on_ms = 200, off_ms = 800}
# producers = 1
# threads = 1                # that send
# batch_rows = 1000          # they hand over tables of so many rows, with send_batch
# compression = {ratio = 0.3}

[cluster]
nodes = 3
rtt_ms = 1.0                 # the way there and back
fixed_ms = 0.5               # a request's work at the broker
per_mib_ms = 3.0             # and more for each MiB
# [[cluster.node]]           # a node that differs
# node = 3
# fixed_ms = 8.0
# [[cluster.outage]]
# node = 2
# seconds = [20, 50]
# kind = "silent"            # or refused, or not_leader

[goal]
least = "requests"           # or latency, memory, cpu, bytes
# p99_ms = 50
# memory = "64 MiB"
# lost = 0

# [client]
# stalls = "stalls.json"     # of the producer's machine; forebay tune stalls writes it
# beside = "computing"       # a thread of the producer's process computes

[settings]                   # what runs today
"linger.ms" = 5
"""
"""What ``forebay tune init`` writes."""

USERS_CODE = ("key.serializer", "value.serializer", "interceptor.classes", "config.providers")
OF_CONNECTIONS = (
    "bootstrap.servers",
    "security.protocol",
    "describe.socket",
    "enable.metrics.push",
    "client.dns.lookup",
    "broker.address.map",
    "broker.address.family",
    "proxy.url",
)
OF_CONNECTIONS_BEGIN = ("ssl.", "sasl.", "enable.ssl.", "enable.sasl.")
SIMULATED = {"bootstrap.servers": "127.0.0.1:9092"}


class Document(NamedTuple):
    """The tables of a file; their keys are known, and nothing is said of the values yet."""

    load: Mapping[str, Any]
    cluster: Mapping[str, Any]
    goal: Mapping[str, Any]
    settings: Mapping[str, Any]
    client: Mapping[str, Any]


def read(path: str | os.PathLike[str]) -> Document:
    """Reads a file; what it says of settings is checked, too.

    Raises:
        ConfigError: no such file, no TOML, or an unknown key; its text begins with the file.
    """
    return in_file(path, lambda: _document(Path(path)))


def in_file(path: str | os.PathLike[str], make: Callable[[], T]) -> T:
    """What ``make`` gives; a refusal names the file.

    Raises:
        ConfigError: from ``make``.
    """
    try:
        return make()
    except ConfigError as error:
        text = error.message if error.message.startswith(f"{path}: ") else f"{path}: {error.message}"
        raise TuneError(text) from None


def _document(path: Path) -> Document:
    values = _toml(path)
    known(values, tuple(ALLOWED), "the file")
    tables = {name: _table(values, name, path.parent) for name in ALLOWED if name != "settings"}
    if "load" not in values:
        raise TuneError("no [load]: add it with a rate, such as rate = 2000, and topics, such as {orders = 12}")
    trace = tables["load"].get("trace")
    if isinstance(trace, str):
        tables["load"]["trace"] = str(path.parent / trace)
    if isinstance(tables["client"].get("stalls"), str):
        tables["client"]["stalls"] = str(path.parent / tables["client"]["stalls"])
    settings = Table(values.get("settings", {}), "settings", None, path.parent).options()
    return Document(
        load=tables["load"],
        cluster=_cluster(tables["cluster"], path),
        goal=tables["goal"],
        settings=checked_settings(settings),
        client=tables["client"],
    )


def read_cluster(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """The table ``[cluster]`` of a file, which need not describe a load.

    Raises:
        ConfigError: no such file, no TOML, or an unknown key; its text begins with the file.
    """

    def cluster() -> Mapping[str, Any]:
        file = Path(path)
        values = _toml(file)
        known(values, tuple(ALLOWED), "the file")
        return _cluster(_table(values, "cluster", file.parent), file)

    return in_file(path, cluster)


def _cluster(table: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The cluster as the file says it, over what the file that it names says."""
    if "file" not in table:
        return table
    name = table["file"]
    if not isinstance(name, str):
        raise TuneError(f"[cluster] file is {name!r}; it must be the name of a file with a table [cluster]")
    other = path.parent / name
    values = _toml(other)
    known(values, ("cluster",), str(other))
    below = _table(values, "cluster", other.parent)
    if "file" in below:
        raise TuneError(f"{other}: [cluster] file cannot name a further file")
    return {**below, **{key: value for key, value in table.items() if key != "file"}}


def _toml(path: Path) -> dict[str, Any]:
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise TuneError(f"{path}: no such file (forebay tune init writes one)") from None
    except OSError as error:
        raise TuneError(f"{path}: it cannot be read: {error.strerror}") from None
    except NoTextError as error:
        raise TuneError(f"{path}: it {error}") from None
    except ValueError as error:  # no name of a file
        raise TuneError(f"{path}: it cannot be read: {error}") from None
    try:
        return tomllib.loads(text)
    except ValueError as error:  # a number with too many digits is no TOMLDecodeError
        raise TuneError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise TuneError(f"{path}: not TOML that can be read: it is nested too deeply") from None


def _table(values: Mapping[str, Any], name: str, folder: Path) -> dict[str, Any]:
    given = values.get(name, {})
    Table(given, name, ALLOWED[name], folder)
    for (table, key), keys in LISTS.items():
        if table != name or key not in given:
            continue
        entries = given[key]
        if not isinstance(entries, list):
            raise TuneError(f"[{name}] {key} must be written [[{name}.{key}]]: there may be several")
        for entry in entries:
            Table(entry, f"[{name}.{key}]", None, folder)
            known(entry, keys, f"[[{name}.{key}]]")
    return dict(given)


def checked_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a producer by Kafka's names, without what says only how brokers are reached.

    Raises:
        ConfigError: an unknown option, a value that cannot be, or an option that is not simulated.
    """
    settings = {kafka_name(name): value for name, value in given.items()}
    if settings.get("transactional.id") is not None:
        raise TuneError(
            "transactional.id: transactions are not simulated; leave it out to see the same records without"
        )
    for name in USERS_CODE:
        if settings.get(name):
            raise TuneError(f"{name}: a simulation runs no code of yours; leave it out")
    left = {
        name: value
        for name, value in settings.items()
        if not is_option(name) or not (name in OF_CONNECTIONS or name.startswith(OF_CONNECTIONS_BEGIN))
    }
    if callable(left.get("partitioner.class")):
        raise TuneError("partitioner.class: a simulation runs no code of yours; give the shares of partitions instead")
    found = ProducerConfig({**left, **SIMULATED}).originals()
    return {name: value for name, value in found.items() if name not in SIMULATED}
