"""A description as lines of text, for the log and for those who have no terminal."""

from __future__ import annotations

from collections.abc import Iterator

from forebay._insight.values import (
    IdentityDescription,
    MemoryDescription,
    NodeDescription,
    PartitionDescription,
    ProducerDescription,
)

MOST_PARTITIONS = 10
"""How many partitions the text has."""


def as_text(what: ProducerDescription) -> str:
    """Several lines, the most telling first."""
    return "\n".join(_lines(what))


def _lines(what: ProducerDescription) -> Iterator[str]:
    yield (
        f"Producer {what.client_id} (process {what.process}), {what.state}, {what.uptime_ms / 1000:.0f} s old: "
        f"{what.unfinished} record(s) without an outcome in {len(what.partitions)} partition(s), "
        f"{what.idle_partitions} idle"
    )
    for partition in what.partitions[:MOST_PARTITIONS]:
        yield "  " + partition_line(partition)
    if len(what.partitions) > MOST_PARTITIONS:
        yield f"  and {len(what.partitions) - MOST_PARTITIONS} more partition(s)"
    yield "  " + memory_line(what.memory)
    for node in what.nodes:
        yield "  " + node_line(node)
    if what.identity is not None:
        yield "  " + identity_line(what.identity)


def partition_line(each: PartitionDescription) -> str:
    """A partition in one line."""
    leader = f"leader {each.leader}" if each.leader >= 0 else "no leader known"
    text = f"{each.topic}-{each.partition} ({leader}): {each.batches} batch(es) wait"
    if each.batches:
        text += f" with {each.records} record(s), {each.bytes} bytes, the oldest {each.age_ms:.0f} ms old"
    text += f"; {each.in_flight} in flight"
    if each.attempts:
        text += f"; sent {each.attempts} time(s)"
    return text + (f"; last error: {each.last_error}" if each.last_error else "")


def memory_line(memory: MemoryDescription) -> str:
    """The memory in one line."""
    text = f"memory: {memory.available} of {memory.total} bytes available, {len(memory.waiting)} thread(s) wait"
    if memory.waiting:
        text += f" for {sum(size for _, size in memory.waiting)} bytes"
    held = ", ".join(f"{node_name(node)} {size}" for node, size in memory.held)
    return text + (f"; held: {held}" if held else "")


def node_name(node: int) -> str:
    """A node whose batches hold memory."""
    return f"node {node}" if node >= 0 else "partitions without a leader"


def node_line(node: NodeDescription) -> str:
    """A broker in one line."""
    name = f"node {node.id}" if node.id >= 0 else f"bootstrap server {-node.id}"
    text = f"{name} at {node.address}: {node.state}, {node.in_flight} request(s) in flight"
    if node.throttled_ms:
        text += f", throttled for {node.throttled_ms:.0f} ms"
    if node.failed_attempts:
        text += f", {node.failed_attempts} failed attempt(s) to connect"
    return text + (f"; last error: {node.last_error}" if node.last_error else "")


def identity_line(identity: IdentityDescription) -> str:
    """Producer id and transaction in one line."""
    text = f"producer id {identity.producer_id}, epoch {identity.epoch}, {identity.state}"
    if identity.transactional_id is not None:
        text += f", transactional.id {identity.transactional_id}"
    return text + (f"; error: {identity.error}" if identity.error else "")
