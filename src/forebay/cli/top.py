"""``forebay top``: the inside of running producers, which they show on the sockets of ``describe.socket``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from forebay._insight.server import SUFFIX, ask
from forebay._insight.text import as_text, node_name
from forebay._insight.values import NodeDescription, PartitionDescription, ProducerDescription
from forebay.cli import sending
from forebay.cli.failure import FAILED, OK, CommandError, Terminated

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

VARIABLE = "FOREBAY_DESCRIBE_SOCKET"
WIDE = 120
"""Columns of a terminal from which on tables have all columns.  On narrower ones errors stand below the tables."""
MOST_TOPICS, MOST_ERRORS = 5, 4
FRAME = 19
"""Lines of the view that are no rows of tables and no errors."""
LAST = "last error"
"""The column that takes what room is left."""
Wait = Callable[[float], object]


@dataclass(frozen=True, slots=True)
class Producer:
    """What one socket said, or why it said nothing."""

    path: Path
    seen: ProducerDescription | None
    before: ProducerDescription | None = None
    """At the look before, for rates."""


def sockets(where: str | None) -> list[Path]:
    """The sockets that are meant: one, or all of a folder.

    Raises:
        CommandError: there is none, or nothing is named.
    """
    named = where or os.environ.get(VARIABLE)
    if not named:
        raise CommandError(
            f"name a socket or the folder of the option describe.socket, as an argument or by {VARIABLE}"
        )
    path = Path(named)
    if path.is_socket():
        return [path]
    found = sorted(each for each in path.glob(f"forebay-*{SUFFIX}") if each.is_socket()) if path.is_dir() else []
    if not found:
        raise CommandError(f"{named}: no producer shows itself there; start it with describe.socket={path.absolute()}")
    return found


def run(where: str | None, interval_ms: float, *, once: bool, write: Callable[[str], object], wait: Wait) -> int:
    """Shows producers until Ctrl-C, which is a good end; once, as text, if asked to or if stdout is no terminal.

    Args:
        where: a socket or a folder; None for that of the variable.
        wait: for so many ms.

    Raises:
        CommandError: no producer shows itself there.
    """
    producers = look(sockets(where), [])
    if once or not sys.stdout.isatty():
        for each in producers:
            write(f"{each.path}: nobody answers" if each.seen is None else as_text(each.seen))
        return OK if any(each.seen for each in producers) else FAILED
    try:
        with sending.sigterm_as_interrupt():  # which gives the terminal back
            _watch(where, producers, interval_ms, wait)
    except Terminated:
        raise
    except KeyboardInterrupt:
        return OK


def _watch(where: str | None, producers: list[Producer], interval_ms: float, wait: Wait) -> NoReturn:
    from rich.console import Console
    from rich.live import Live

    # A client id may hold brackets, as an IPv6 address does.
    console = Console(markup=False, emoji=False)
    with Live(view(producers, console), console=console, screen=True, auto_refresh=False) as live:
        while True:
            wait(interval_ms)
            try:
                found = sockets(where)
            except CommandError:  # all have ended; others may come
                found = [each.path for each in producers]
            producers = look(found, producers)
            live.update(view(producers, console), refresh=True)


def look(paths: Sequence[Path], before: Sequence[Producer]) -> list[Producer]:
    """Asks each socket; of one that does not answer, nothing is known."""
    earlier = {each.path: each.seen for each in before}
    found = []
    for path in paths:
        try:
            seen = ProducerDescription.from_json(ask(str(path)))
        except (OSError, ValueError):
            seen = None
        found.append(Producer(path, seen, earlier.get(path)))
    return found


def view(producers: Sequence[Producer], console: Console) -> RenderableType:
    """All of one producer, or a line for each of several."""
    from rich.console import Group
    from rich.text import Text

    living = [each for each in producers if each.seen is not None]
    gone = [Text(f"{each.path}: nobody answers; has it ended?", "red") for each in producers if each.seen is None]
    if len(living) == 1 and living[0].seen is not None:
        return Group(*gone, *_one(living[0].seen, living[0].before, console))
    return Group(*gone, _several(living))


def _several(producers: Sequence[Producer]) -> Table:
    table = _table("producer", "process", "state", ">unfinished", ">records/s", ">errors", ">free", "waiting")
    for each in producers:
        seen = each.seen
        if seen is not None:
            free = f"{100 * seen.memory.available / seen.memory.total:.0f} %"
            rate = _rate("record-send-total", seen, each.before)
            errors = f"{seen.metrics.get('record-error-total', 0):,.0f}"
            table.add_row(
                seen.client_id, str(seen.process), seen.state, f"{seen.unfinished:,}", rate, errors, free,
                str(len(seen.memory.waiting) or ""),
            )  # fmt: skip
    table.caption = "forebay top SOCKET shows one of them"
    return table


def _one(seen: ProducerDescription, before: ProducerDescription | None, console: Console) -> Iterator[RenderableType]:
    wide = console.width >= WIDE
    yield _head(seen, before)
    yield _memory(seen, console.width)
    errors = [] if wide else _errors(seen)
    topics = _table("topic", ">acknowledged", ">failed", ">retried", ">bytes", ">p50 ms", ">p99 ms")
    for topic in seen.topics[:MOST_TOPICS]:
        topics.add_row(
            topic.topic, f"{topic.acknowledged:,}", _alarm(topic.failed), _alarm(topic.retried, "yellow"),
            size(topic.bytes), _ms(topic.p50_ms), _ms(topic.p99_ms),
        )  # fmt: skip
    nodes = _table("broker", "address", "state", ">in flight", *([">throttled", LAST] if wide else []))
    for node in seen.nodes:
        nodes.add_row(*_node_cells(node, wide))
    if seen.topics:
        yield topics
    yield nodes
    used = len(seen.nodes) + min(len(seen.topics), MOST_TOPICS) + 2 * len(errors)
    yield _partitions(seen, wide, room=max(3, console.height - used - FRAME))
    yield from errors


def _errors(seen: ProducerDescription) -> Sequence[RenderableType]:
    """The last errors of brokers and partitions, each in one line or more."""
    from rich.text import Text

    found = [(node_name(node.id), node.last_error) for node in seen.nodes if node.id >= 0]
    found += [(f"{each.topic}-{each.partition}", each.last_error) for each in seen.partitions]
    return [Text(f"{where}: {error}", "red") for where, error in found if error][:MOST_ERRORS]


def _head(seen: ProducerDescription, before: ProducerDescription | None) -> RenderableType:
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(seen.client_id, "bold")
    text.append(f"  process {seen.process}  {seen.state}  {seen.uptime_ms / 1000:,.0f} s")
    if seen.identity is not None:
        text.append(f"  producer id {seen.identity.producer_id}, epoch {seen.identity.epoch}, {seen.identity.state}")
        if seen.identity.transactional_id is not None:
            text.append(f", {seen.identity.transactional_id}")
        if seen.identity.error:
            text.append(f"\n{seen.identity.error}", "red")
    text.append(f"\n{_rate('record-send-total', seen, before)} records/s  ")
    text.append(f"{_rate('outgoing-byte-total', seen, before, size)}/s  ")
    text.append(f"{_rate('request-total', seen, before)} requests/s  ")
    text.append(f"{seen.unfinished:,} unfinished  ")
    errors = seen.metrics.get("record-error-total", 0)
    text.append(f"{errors:,.0f} failed", "bold red" if errors else "")
    return text


def _memory(seen: ProducerDescription, width: int) -> RenderableType:
    from rich.text import Text

    memory = seen.memory
    used = min(1.0, max(0.0, 1 - memory.available / memory.total))
    room = min(40, width // 2)
    filled = round(used * room)
    text = Text("memory ", no_wrap=True, overflow="ellipsis")
    text.append("█" * filled, "red" if memory.waiting else "yellow" if used > 0.8 else "green")
    text.append("░" * (room - filled), "dim")
    text.append(f" {100 * used:.0f} % of {size(memory.total)}")
    if memory.waiting:
        wanted = size(sum(each for _, each in memory.waiting))
        text.append(f"\n{len(memory.waiting)} thread(s) wait in send for {wanted}", "red")
    if memory.held:
        text.append("\nheld: " + ", ".join(f"{node_name(node)} {size(held)}" for node, held in memory.held))
    return text


def _node_cells(node: NodeDescription, wide: bool) -> list[Any]:
    from rich.text import Text

    style = "green" if node.state == "READY" else "red" if node.failed_attempts else "yellow"
    name = str(node.id) if node.id >= 0 else f"bootstrap {-node.id}"
    cells = [name, node.address, Text(node.state, style), str(node.in_flight or "")]
    if not wide:
        return cells
    error = Text(node.last_error or "", "red" if node.state != "READY" else "dim")
    return [*cells, f"{node.throttled_ms:.0f} ms" if node.throttled_ms else "", error]


def _partitions(seen: ProducerDescription, wide: bool, room: int) -> Table:
    more = [">bytes", ">fill", ">tries", LAST] if wide else []
    table = _table("partition", ">leader", ">batches", ">records", ">in flight", ">oldest ms", *more)
    for each in seen.partitions[:room]:
        table.add_row(*_partition_cells(each, wide))
    left = len(seen.partitions) - room
    table.caption = f"{seen.idle_partitions} idle" + (f", {left} more with records" if left > 0 else "")
    return table


def _partition_cells(each: PartitionDescription, wide: bool) -> list[Any]:
    from rich.text import Text

    leader = str(each.leader) if each.leader >= 0 else Text("none", "red")
    more: list[Any] = [size(each.bytes), f"{100 * each.fill:.0f} %", str(each.attempts or "")] if wide else []
    more += [Text(each.last_error or "", "red")] if wide else []
    return [
        f"{each.topic}-{each.partition}", leader, str(each.batches), f"{each.records:,}", str(each.in_flight),
        f"{each.age_ms:,.0f}", *more,
    ]  # fmt: skip


def _table(*columns: str) -> Table:
    """An empty table; a column whose name begins with ``>`` is flush right, and that of errors gives way."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, expand=LAST in columns, pad_edge=False, padding=(0, 1, 0, 0))
    table.caption_justify = "left"
    for column in columns:
        table.add_column(
            column.removeprefix(">"),
            justify="right" if column.startswith(">") else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if column == LAST else None,
        )
    return table


def _rate(
    name: str, seen: ProducerDescription, before: ProducerDescription | None, form: Callable[[float], str] | None = None
) -> str:
    """How much a total grew a second since the look before; at the first look since the producer's start."""
    total, ms = seen.metrics.get(name, 0.0), seen.uptime_ms
    if before is not None and before.process == seen.process and seen.uptime_ms > before.uptime_ms:
        total, ms = total - before.metrics.get(name, 0.0), seen.uptime_ms - before.uptime_ms
    rate = total / max(ms, 1.0) * 1000
    return f"{rate:,.0f}" if form is None else form(rate)


def _alarm(number: int, style: str = "bold red") -> Any:
    from rich.text import Text

    return Text(f"{number:,}", style if number else "")


def _ms(value: float | None) -> str:
    return "" if value is None else f"≤ {value:g}"


def size(number: float) -> str:
    """Bytes in the largest unit that leaves a digit before the point."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(number) < 1024 or unit == "GiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
