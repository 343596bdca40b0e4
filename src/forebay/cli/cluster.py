"""``forebay topics``, ``tail`` and ``transactions``: what an AdminClient tells of a cluster, as tables or as JSON."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from heapq import merge
from typing import Any

from forebay.admin import AdminClient
from forebay.cli.failure import FAILED, CommandError, one_line, reason
from forebay.cli.report.progress import Display, LogLines
from forebay.config import ProducerConfig
from forebay.errors import KafkaTimeoutError
from forebay.errors._base import printable
from forebay.model import TailRecord, TopicDescription

Write = Callable[[str], object]
ONGOING = "Ongoing"
LONGEST = 200
"""Characters of a key or value in a table; JSON has all of them."""


@contextlib.contextmanager
def opened(config: ProducerConfig) -> Iterator[AdminClient]:
    """An AdminClient of a cluster that answers, whose log is not shown: what it cannot get over is the command's error.

    Raises:
        CommandError: no broker answers; while that is not known, the terminal says after a second what is in the way.
    """
    servers = ",".join(map(str, config.bootstrap))
    with LogLines(Display()) as logs, AdminClient(config) as admin:
        try:
            with logs.waiting_for(f"an answer of {servers}"):
                admin.transaction_version()
        except KafkaTimeoutError as error:
            why = one_line(str(error.__cause__ or "nothing was reached"))
            within = f"within {config['max.block.ms'] / 1000:g} s"
            raise CommandError(f"{servers} did not answer {within}: {why}", FAILED) from error
        yield admin


def topics(admin: AdminClient, topic: str | None, write: Write, *, as_json: bool) -> None:
    """All topics, or the partitions of one.

    Raises:
        CommandError: there is no such topic.
    """
    found = admin.describe_cluster(topic).topics
    if topic is not None:
        check(found[0], topic)
    if as_json:
        write(json_text([_document(each) for each in found]))
    elif topic is not None:
        rows = [
            (
                part.partition,
                "none" if part.leader is None else part.leader.id,
                ",".join(map(str, part.replicas)),
                ",".join(map(str, part.in_sync_replicas)),
            )
            for part in found[0].partitions
        ]
        _table(("partition", "leader", "replicas", "in sync"), rows, write)
    else:
        _table(("topic", "partitions", "replicas", "not in sync", "no leader"), [_row(each) for each in found], write)


def check(found: TopicDescription, topic: str) -> None:
    """Raises CommandError if the broker could not describe the topic."""
    if found.error is not None:
        raise CommandError(f"topic {topic!r}: {reason(found.error)}", FAILED)


def _row(topic: TopicDescription) -> tuple[object, ...]:
    parts = topic.partitions
    behind = sum(len(part.in_sync_replicas) < len(part.replicas) for part in parts)
    leaderless = sum(part.leader is None for part in parts)
    return topic.name, len(parts), max((len(part.replicas) for part in parts), default=0), behind, leaderless


def _document(topic: TopicDescription) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": part.partition,
                "leader": None if part.leader is None else part.leader.id,
                "replicas": part.replicas,
                "in_sync_replicas": part.in_sync_replicas,
            }
            for part in topic.partitions
        ],
        **({} if topic.error is None else {"error": reason(topic.error)}),
    }


def tail(
    admin: AdminClient,
    topic: str,
    write: Write,
    *,
    count: int,
    partition: int | None,
    isolation: str,
    as_json: bool,
) -> None:
    """The newest records of a topic, the oldest of them first.

    Raises:
        CommandError: there is no such topic or partition.
    """
    found = admin.describe_cluster(topic).topics[0]
    check(found, topic)
    numbers = [part.partition for part in found.partitions]
    if partition is not None and partition not in numbers:
        raise CommandError(f"partition {partition} of topic {topic!r}: it has {len(numbers)} partition(s)")
    found_in = [
        [(number, record) for record in admin.read_tail(topic, number, max_records=count, isolation=isolation)]
        for number in (numbers if partition is None else [partition])
    ]
    # By their time; records of a partition keep their order.
    newest = list(merge(*found_in, key=lambda pair: pair[1].timestamp))[-count:]
    if as_json:
        for number, record in newest:
            write(json_text(_record(number, record)))
        return
    rows = [
        (time_text(record.timestamp), number, record.offset, _shown(record.key), _shown(record.value))
        for number, record in newest
    ]
    _table(("time", "partition", "offset", "key", "value"), rows, write)


def _record(partition: int, record: TailRecord) -> dict[str, Any]:
    return {
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_cell("key", record.key),
        **_cell("value", record.value),
        "headers": [{"name": name, **_cell("value", value)} for name, value in record.headers],
    }


def _cell(name: str, data: bytes | None) -> dict[str, str | None]:
    """Text as it is; under another name, and in base64, what is not UTF-8."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def json_text(document: object, separators: tuple[str, str] | None = None) -> str:
    """JSON in which what a terminal would obey is escaped; inside of texts, which is all that it can be in."""
    text = json.dumps(document, ensure_ascii=False, separators=separators)
    return (
        text if text.isprintable() else "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in text)
    )


def _shown(data: bytes | None) -> str:
    if data is None:
        return "null"
    text = printable(data.decode(errors="backslashreplace"), None)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(data)} bytes)"


def list_transactions(
    admin: AdminClient,
    write: Write,
    *,
    states: Sequence[str],
    producer_ids: Sequence[int],
    prefix: str | None,
    as_json: bool,
) -> None:
    """The transactional ids that the cluster knows."""
    found = admin.list_transactions(states=states, producer_ids=producer_ids, prefix=prefix)
    if as_json:
        write(json_text([each._asdict() for each in found]))
    else:
        _table(("transactional id", "producer id", "state"), found, write)


def describe_transactions(admin: AdminClient, ids: Sequence[str], write: Write, *, as_json: bool) -> None:
    """What the coordinators know of some transactional ids.

    Raises:
        CommandError: they do not know one; after the others were written.
    """
    found = admin.describe_transactions(ids)
    known = {name: each for name, each in found.items() if each is not None}
    if as_json:
        documents = [
            {"transactional_id": name, **each._asdict(), "partitions": [str(where) for where in each.partitions]}
            for name, each in known.items()
        ]
        write(json_text(documents))
    else:
        head = ("transactional id", "state", "producer id", "epoch", "timeout ms", "begun", "coordinator", "partitions")
        rows = [
            (
                name,
                each.state,
                each.producer_id,
                each.producer_epoch,
                each.timeout_ms,
                time_text(each.start_time_ms),
                each.coordinator,
                " ".join(map(str, each.partitions)) or "-",
            )
            for name, each in known.items()
        ]
        _table(head, rows, write)
    unknown = [name for name, each in found.items() if each is None]
    if unknown:
        raise CommandError(f"no coordinator knows the transactional id {', '.join(map(repr, unknown))}", FAILED)


def abort_transaction(admin: AdminClient, transactional_id: str, write: Write, *, sure: Callable[[str], bool]) -> None:
    """Aborts what is open under an id, and fences its producer (InitProducerId, as Kafka's own tool does it).

    Args:
        sure: asked before anything is done.

    Raises:
        CommandError: nothing is open, or the answer was no.
    """
    found = admin.describe_transaction(transactional_id)
    if found.state != ONGOING:
        raise CommandError(f"{transactional_id!r} has no open transaction: its state is {found.state}", FAILED)
    where = " ".join(map(str, found.partitions)) or "no partition"
    begun = time_text(found.start_time_ms)
    question = (
        f"Abort the transaction of {transactional_id!r}, begun {begun}, on {where}, and fence its producer "
        f"{found.producer_id} (epoch {found.producer_epoch})?"
    )
    if not sure(question):
        raise CommandError("nothing was aborted", FAILED)
    admin.init_producer_id(transactional_id, transaction_timeout_ms=found.timeout_ms)
    write(f"aborted the transaction of {transactional_id!r}")


def time_text(ms: int) -> str:
    """A time of Kafka's in UTC; ``-`` for none."""
    if ms < 0:
        return "-"
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return str(ms)  # beyond the year 9999


def _table(head: Sequence[str], rows: Sequence[Sequence[object]], write: Write) -> None:
    """Columns as wide as their widest cell; the last one is not filled up."""
    cells = [[printable(str(cell), None) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
