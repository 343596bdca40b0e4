"""cli.cluster: a cluster's topics, newest records and transactions as tables and as JSON."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from forebay.admin import AdminClient
from forebay.cli import cluster
from forebay.cli.failure import CommandError
from forebay.errors import UnknownTopicOrPartitionError
from forebay.model import (
    ClusterDescription,
    Node,
    PartitionInfo,
    TailRecord,
    TopicDescription,
    TopicPartition,
    TransactionDescription,
    TransactionListing,
)

NODE = Node(1, "a", 9092)
ORDERS = TopicDescription(
    "orders",
    (PartitionInfo("orders", 0, NODE, 1, (1, 2), (1,)), PartitionInfo("orders", 1, None, 1, (2, 1), (2, 1))),
    False,
    None,
)
OPEN = TransactionDescription("Ongoing", 7, 3, 60_000, 1_700_000_000_000, (TopicPartition("orders", 1),), 2)
IDLE = TransactionDescription("Empty", 8, 0, 60_000, -1, (), 1)


class FakeControl:
    """A cluster with one topic."""

    def __init__(self) -> None:
        self.records: dict[int, list[TailRecord]] = {0: [], 1: []}
        self.fenced: list[tuple[str, int]] = []
        self.asked: list[Any] = []

    def typed(self) -> AdminClient:
        return cast(AdminClient, self)

    def describe_cluster(self, topic: str | None = None) -> ClusterDescription:
        gone = TopicDescription("gone", (), False, UnknownTopicOrPartitionError("not there"))
        found = (ORDERS,) if topic is None else (ORDERS if topic == "orders" else gone,)
        return ClusterDescription("id", NODE, (NODE,), found)

    def read_tail(self, topic: str, partition: int, *, max_records: int, isolation: str) -> list[TailRecord]:
        self.asked.append((topic, partition, isolation))
        return self.records[partition][-max_records:]

    def list_transactions(self, **wanted: Any) -> list[TransactionListing]:
        self.asked.append(wanted)
        return [TransactionListing("x", 7, "Ongoing")]

    def describe_transactions(self, ids: Any) -> dict[str, TransactionDescription | None]:
        known = {"x": OPEN, "idle": IDLE}
        return {name: known.get(name) for name in ids}

    def describe_transaction(self, name: str) -> TransactionDescription:
        return {"x": OPEN, "idle": IDLE}[name]

    def init_producer_id(self, name: str, *, transaction_timeout_ms: int) -> None:
        self.fenced.append((name, transaction_timeout_ms))


def test_topics_as_a_table_and_the_partitions_of_one() -> None:
    lines: list[str] = []
    cluster.topics(FakeControl().typed(), None, lines.append, as_json=False)
    assert lines == [
        "topic   partitions  replicas  not in sync  no leader",
        "orders  2           2         1            1",
    ]
    lines.clear()
    cluster.topics(FakeControl().typed(), "orders", lines.append, as_json=False)
    assert lines == [
        "partition  leader  replicas  in sync",
        "0          1       1,2       1",
        "1          none    2,1       2,1",
    ]
    lines.clear()
    cluster.topics(FakeControl().typed(), "orders", lines.append, as_json=True)
    (found,) = json.loads(lines[0])
    assert (found["topic"], found["internal"]) == ("orders", False)
    assert found["partitions"][1] == {"partition": 1, "leader": None, "replicas": [2, 1], "in_sync_replicas": [2, 1]}
    for call in (cluster.topics, cluster.tail):
        more: dict[str, Any] = {} if call is cluster.topics else {"count": 1, "partition": None, "isolation": "x"}
        with pytest.raises(CommandError, match="^topic 'gone': not there$") as caught:
            call(FakeControl().typed(), "gone", lines.append, as_json=False, **more)
        assert caught.value.exit_code == 1


def tail(admin: FakeControl, *, as_json: bool = False, partition: int | None = None, count: int = 3) -> list[str]:
    lines: list[str] = []
    typed = admin.typed()
    settings: dict[str, Any] = {"count": count, "partition": partition, "isolation": "read_committed"}
    cluster.tail(typed, "orders", lines.append, as_json=as_json, **settings)
    return lines


def test_the_newest_records_of_all_partitions_by_their_time() -> None:
    admin = FakeControl()
    admin.records[0] = [TailRecord(4, 1000, b"k", b"old"), TailRecord(5, 3000, None, b"a\tb\xff")]
    admin.records[1] = [TailRecord(9, 2000, b"", None), TailRecord(10, 4000, b"k", b"x" * 300)]
    assert tail(admin) == [
        "time                      partition  offset  key   value",
        "1970-01-01T00:00:02.000Z  1          9             null",
        "1970-01-01T00:00:03.000Z  0          5       null  a\\tb\\xff",
        f"1970-01-01T00:00:04.000Z  1          10      k     {'x' * 200}... (300 bytes)",
    ]
    assert len(tail(admin, count=1)) == 2
    assert admin.asked[-1] == ("orders", 1, "read_committed")
    assert [line.split()[2] for line in tail(admin, partition=0)[1:]] == ["4", "5"]
    with pytest.raises(CommandError, match=r"partition 2 of topic 'orders': it has 2 partition\(s\)"):
        tail(admin, partition=2)


def test_records_of_a_partition_keep_their_order_whatever_their_times() -> None:
    admin = FakeControl()
    admin.records[0] = [TailRecord(at, time, None, None) for at, time in ((4, 3000), (5, 1000), (6, 2000))]
    assert [line.split()[2] for line in tail(admin)[1:]] == ["4", "5", "6"]
    assert [line.split()[2] for line in tail(admin, partition=0, count=1)[1:]] == ["6"]


def test_records_as_lines_of_json() -> None:
    admin = FakeControl()
    admin.records[0] = [TailRecord(5, -1, None, b"\xff", (("h", b"1"), ("n", None)))]
    (line,) = tail(admin, as_json=True)
    assert json.loads(line) == {
        "partition": 0,
        "offset": 5,
        "timestamp": -1,
        "key": None,
        "value_base64": "/w==",
        "headers": [{"name": "h", "value": "1"}, {"name": "n", "value": None}],
    }


def test_times() -> None:
    assert cluster.time_text(-1) == "-"
    assert cluster.time_text(1_700_000_000_005) == "2023-11-14T22:13:20.005Z"
    assert cluster.time_text(2**62) == str(2**62)


def test_transactions_are_listed_and_described() -> None:
    admin, lines = FakeControl(), list[str]()
    wanted: dict[str, Any] = {"states": ["Ongoing"], "producer_ids": [7], "prefix": "x"}
    cluster.list_transactions(admin.typed(), lines.append, as_json=False, **wanted)
    assert admin.asked == [wanted]
    assert lines == ["transactional id  producer id  state", "x                 7            Ongoing"]
    cluster.list_transactions(admin.typed(), lines.append, as_json=True, **wanted)
    assert json.loads(lines[-1]) == [{"transactional_id": "x", "producer_id": 7, "state": "Ongoing"}]
    lines.clear()
    cluster.describe_transactions(admin.typed(), ["x", "idle"], lines.append, as_json=False)
    assert [line.split()[-3:] for line in lines[1:]] == [
        ["2023-11-14T22:13:20.000Z", "2", "orders-1"],
        ["-", "1", "-"],
    ]
    with pytest.raises(CommandError, match="no coordinator knows the transactional id 'y', 'z'"):
        cluster.describe_transactions(admin.typed(), ["x", "y", "z"], lines.append, as_json=True)
    (found,) = json.loads(lines[-1])
    assert (found["transactional_id"], found["state"], found["partitions"]) == ("x", "Ongoing", ["orders-1"])


def test_what_a_terminal_would_obey_is_escaped() -> None:
    class Hostile(FakeControl):
        def list_transactions(self, **wanted: Any) -> list[TransactionListing]:
            return [TransactionListing("\x1b[2Jx", 7, "Ongoing")]

    lines: list[str] = []
    wanted: dict[str, Any] = {"states": [], "producer_ids": [], "prefix": None}
    cluster.list_transactions(Hostile().typed(), lines.append, as_json=False, **wanted)
    assert lines[1].startswith("\\x1b[2Jx  ")


def test_an_open_transaction_is_aborted_if_that_is_sure() -> None:
    admin, lines, asked = FakeControl(), list[str](), list[str]()

    def no(question: str) -> bool:
        asked.append(question)
        return False

    with pytest.raises(CommandError, match="nothing was aborted"):
        cluster.abort_transaction(admin.typed(), "x", lines.append, sure=no)
    assert "begun 2023-11-14T22:13:20.000Z, on orders-1, and fence its producer 7 (epoch 3)?" in asked[0]
    with pytest.raises(CommandError, match="'idle' has no open transaction: its state is Empty"):
        cluster.abort_transaction(admin.typed(), "idle", lines.append, sure=lambda question: True)
    assert (admin.fenced, lines) == ([], [])
    cluster.abort_transaction(admin.typed(), "x", lines.append, sure=lambda question: True)
    assert (admin.fenced, lines) == ([("x", 60_000)], ["aborted the transaction of 'x'"])
