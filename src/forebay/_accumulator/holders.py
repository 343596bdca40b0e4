"""Who holds the memory, in the words of the error for a send that got none in time."""

from __future__ import annotations

from typing import Any


def share_used_up(pool: Any, leader: int) -> str:
    """Whose share of the memory is used up, and how much that is, for the message."""
    who = f"Node {leader}" if leader >= 0 else "What waits for partitions without a leader"
    held = dict(pool.holders()).get(leader, 0)
    return (
        f"{who} holds {held} bytes, and its share is {pool.owner_limit} (buffer.memory.max.node.share); sending to "
        "other nodes goes on. "
    )


def held_by(pool: Any) -> str:
    """Who holds most of the memory, for the message."""
    named = [
        f"{size} for {f'node {owner}' if owner >= 0 else 'partitions without a leader'}"
        for owner, size in pool.holders()[:3]
    ]
    return f"; held: {', '.join(named)}" if named else ""
