"""Three real brokers that move, die, freeze and restart under load: everything acknowledged once, in order, in time.

The load and the checker are those of the random run (tests/soak); here each fault comes alone, and since it is over
long before delivery.timeout.ms no record may fail either.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from forebay import KafkaProducer
from tests.integration.test_exactly_once_steps import BEFORE_THE_SECOND_END, EXPECTED, Sink
from tests.soak.checker import Promise, check, summary
from tests.soak.journal import ACKNOWLEDGED, Journal
from tests.soak.load import Load, Plan, SendLoad
from tests.soak.transactions import TransactionLoad
from tests.spark.committed import assert_exactly
from tests.support.admin import coordinator_of, move_leader, view, wait_until_healthy
from tests.support.fixtures import ProxyFactory, TopicFactory
from tests.support.pace import HANG_S, until, within, within_ms
from tests.support.readback import read_all
from tests.support.three import NODES
from tools.kafka import RealKafka, dump_log

PARTITIONS = 3
DELIVERY_S = within(60)
REQUEST_TIMEOUT_S = within(1.5)
#: Longer than a broker may be silent before the controller gives its partitions to others.
SESSION_S = within(3)
SETTINGS: dict[str, Any] = {
    "request.timeout.ms": int(1000 * REQUEST_TIMEOUT_S),
    "delivery.timeout.ms": int(1000 * DELIVERY_S),
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "batch.size": 4000,
}
PROMISE = Promise(told_within_s=DELIVERY_S + within(1))
PLAN = Plan("load", SETTINGS, PROMISE, seed="three", senders=3)


@pytest.fixture
def name(three_kafka: RealKafka, topic: TopicFactory) -> str:
    """A topic with three replicas of each partition."""
    found = topic(three_kafka, PARTITIONS, replication=3)
    wait_until_healthy(three_kafka)
    return found


@contextlib.contextmanager
def under(load: Load, kafka: RealKafka, topic: str) -> Iterator[Load]:
    """The load runs while the block does; then every record is looked at, and none may have failed."""
    try:
        load.begin(topic)
        try:
            until_more(load)
            yield load
            until_more(load)
        finally:
            load.end()
        load.settle()
        wait_until_healthy(kafka)
        findings = check(PROMISE, load.journal, read_all(kafka.bootstrap_servers, topic))
        assert (load.trouble, summary(findings)) == ([], "nothing found")
    finally:
        load.close()


@contextlib.contextmanager
def loaded(kafka: RealKafka, topic: str) -> Iterator[SendLoad]:
    """An idempotent producer and three threads that send through it."""
    load = SendLoad(PLAN, kafka.bootstrap_servers)
    with under(load, kafka, topic):
        yield load
    assert Counter(entry.told for entry in load.journal.entries()) == {ACKNOWLEDGED: load.journal.count()}


def until_more(load: Load, count: int = 200) -> None:
    """Waits until so many of the records that are sent from now on were acknowledged."""
    journal: Journal = load.journal
    begun = journal.count()

    def later() -> int:
        return sum(entry.told == ACKNOWLEDGED for entry in journal.entries()[begun:])

    until(lambda: later() >= count, f"{count} more records acknowledged")


def acknowledged(load: Load) -> int:
    """How many records were, so far."""
    return sum(entry.told == ACKNOWLEDGED for entry in load.journal.entries())


def leader(kafka: RealKafka, topic: str, partition: int = 0) -> int:
    """Who leads, as a broker sees it that has an answer."""
    for node in kafka.node_ids:
        with contextlib.suppress(OSError):
            return view(kafka.address(node)).partitions[topic, partition].leader
    return -1


def until_led(kafka: RealKafka, topic: str, partition: int, by: int) -> None:
    until(lambda: leader(kafka, topic, partition) == by, f"node {by} leads {topic}-{partition}")


def until_led_by_another(kafka: RealKafka, topic: str, before: int) -> None:
    until(lambda: others_say(kafka, topic, before) not in (-1, before), f"{topic}-0 gets another leader")


def others_say(kafka: RealKafka, topic: str, silent: int) -> int:
    """Who leads, as a node other than ``silent`` sees it."""
    asked = next(node for node in kafka.node_ids if node != silent)
    return view(kafka.address(asked)).partitions[topic, 0].leader


# -- leaders --------------------------------------------------------------------------------------------------


def test_leaders_move_back_and_forth(three_kafka: RealKafka, name: str) -> None:
    with loaded(three_kafka, name) as load:
        for turn in range(3 * PARTITIONS):
            partition = turn % PARTITIONS
            now = leader(three_kafka, name, partition)
            move_leader(three_kafka.address(0), name, partition, (now + 1) % 3)
            until_led(three_kafka, name, partition, (now + 1) % 3)
            until_more(load, 50)


def test_leaders_are_moved_by_kafkas_own_tools(three_kafka: RealKafka, name: str, tmp_path: Path) -> None:
    before = leader(three_kafka, name)
    order = [(before + 1) % 3, (before + 2) % 3, before]
    plan = tmp_path / "plan.json"
    moved = [{"topic": name, "partition": partition, "replicas": order} for partition in range(PARTITIONS)]
    plan.write_text(json.dumps({"version": 1, "partitions": moved}))
    server = ("--bootstrap-server", three_kafka.bootstrap_servers)
    with loaded(three_kafka, name):
        tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
        three_kafka.run_tool(tool, *server, "--reassignment-json-file", str(plan), "--execute")
        tool = "org.apache.kafka.tools.LeaderElectionCommand"
        three_kafka.run_tool(tool, *server, "--election-type", "preferred", "--all-topic-partitions")
        for partition in range(PARTITIONS):
            until_led(three_kafka, name, partition, order[0])


# -- one broker -----------------------------------------------------------------------------------------------


def test_the_leader_is_killed_and_started_again(three_kafka: RealKafka, name: str) -> None:
    with loaded(three_kafka, name) as load:
        killed = leader(three_kafka, name)
        three_kafka.kill_node(killed)
        until_led_by_another(three_kafka, name, killed)
        # The two that are left are min.insync.replicas: it goes on without the third.
        until_more(load)
        three_kafka.start_node(killed)
        wait_until_healthy(three_kafka)
    check_dumps(three_kafka, name)


def check_dumps(kafka: RealKafka, topic: str) -> None:
    """Every node's disk has the same bytes, in which Kafka's own tool sees no sequence missing and none repeated."""
    for partition in range(PARTITIONS):
        logs = [log_bytes(kafka, topic, partition, node) for node in kafka.node_ids]
        assert logs[0] and logs[0] == logs[1] == logs[2]
        batches = dump_log(kafka, topic, partition)
        assert batches and all(batch.valid for batch in batches)
        expected: dict[tuple[int, int], int] = defaultdict(int)
        for batch in batches:
            line = (batch.producer_id, batch.producer_epoch)
            assert batch.base_sequence == expected[line], (partition, batch.base_offset)
            expected[line] = batch.last_sequence + 1


def log_bytes(kafka: RealKafka, topic: str, partition: int, node: int) -> dict[str, bytes]:
    """The segments of a partition on a node's disk; replicas are copies to the byte."""
    folder = kafka.data_folder(node) / f"{topic}-{partition}"
    return {path.name: path.read_bytes() for path in folder.glob("*.log")}


@pytest.mark.parametrize("long", [False, True], ids=["shortly", "for long"])
def test_the_leader_freezes_and_goes_on(three_kafka: RealKafka, name: str, long: bool) -> None:
    with loaded(three_kafka, name) as load:
        frozen = leader(three_kafka, name)
        three_kafka.freeze_node(frozen)
        try:
            if long:
                until_led_by_another(three_kafka, name, frozen)
                until_more(load)
            else:
                time.sleep(REQUEST_TIMEOUT_S / 3)
        finally:
            three_kafka.thaw_node(frozen)
        wait_until_healthy(three_kafka)


def test_each_broker_restarts_in_turn(three_kafka: RealKafka, name: str) -> None:
    with loaded(three_kafka, name) as load:
        for node in three_kafka.node_ids:
            three_kafka.stop_node(node)
            until_more(load)
            three_kafka.start_node(node)
            wait_until_healthy(three_kafka)


# -- all of them ----------------------------------------------------------------------------------------------


def test_all_brokers_freeze_for_a_while(three_kafka: RealKafka, name: str) -> None:
    with loaded(three_kafka, name) as load:
        for node in three_kafka.node_ids:
            three_kafka.freeze_node(node)
        # What was answered before is on its way for a moment.
        time.sleep(within(0.5))
        before = acknowledged(load)
        time.sleep(2 * REQUEST_TIMEOUT_S)
        assert acknowledged(load) == before
        three_kafka.heal()


def test_all_brokers_are_killed_and_come_back(three_kafka: RealKafka, name: str) -> None:
    with loaded(three_kafka, name):
        for node in three_kafka.node_ids:
            three_kafka.kill_node(node)
        time.sleep(1.0)
        three_kafka.heal()
        wait_until_healthy(three_kafka)


def test_brokers_that_came_back_know_only_the_last_batch_of_those_in_flight(
    three_kafka: RealKafka, name: str, proxied: ProxyFactory
) -> None:
    """Four are written and not acknowledged when all brokers are killed; none of them is written again.

    Without asking for the last one the first would be OUT_OF_ORDER_SEQUENCE_NUMBER, and written anew under another
    epoch: seen with 4.x.
    """
    proxy = proxied(three_kafka)
    with KafkaProducer({"bootstrap.servers": proxy.bootstrap_servers, **SETTINGS, "linger.ms": 0}) as ours:
        ours.send(name, b"0", partition=0).result(HANG_S)
        proxy.stall()
        futures = []
        for number in range(1, 5):
            futures.append(ours.send(name, b"%d" % number, partition=0))
            until_written(three_kafka, name, number + 1)
        for node in three_kafka.node_ids:
            three_kafka.kill_node(node)
        proxy.cut()
        proxy.resume()
        three_kafka.heal()
        assert [future.exception(DELIVERY_S) for future in futures] == [None] * 4
    wait_until_healthy(three_kafka)
    read = read_all(three_kafka.bootstrap_servers, name)
    assert [record.value for record in read if record.partition == 0] == [b"0", b"1", b"2", b"3", b"4"]
    assert {batch.producer_epoch for batch in dump_log(three_kafka, name, 0)} == {0}


def until_written(kafka: RealKafka, topic: str, batches: int) -> None:
    until(lambda: written(kafka, topic) == batches, f"{batches} batches on every disk")


def written(kafka: RealKafka, topic: str) -> int:
    """How many batches of the first partition are on every node's disk."""
    return min(count_batches(b"".join(log_bytes(kafka, topic, 0, node).values())) for node in kafka.node_ids)


def count_batches(log: bytes) -> int:
    """Whole batches in a segment: an offset, the length of what follows, and that."""
    count = at = 0
    while at + 12 <= len(log) and (size := int.from_bytes(log[at + 8 : at + 12])) > 0:
        at += 12 + size
        count += at <= len(log)
    return count


def test_while_two_of_three_are_away_nothing_is_acknowledged(three_kafka: RealKafka, name: str) -> None:
    with loaded(three_kafka, name) as load:
        left = leader(three_kafka, name)
        for node in three_kafka.node_ids:
            if node != left:
                three_kafka.freeze_node(node)
        time.sleep(SESSION_S)
        before = acknowledged(load)
        time.sleep(within(0.5))
        assert acknowledged(load) == before
        three_kafka.heal()
        wait_until_healthy(three_kafka)


# -- transactions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [RealKafka.kill_node, RealKafka.freeze_node])
def test_the_coordinator_goes_and_transactions_stay_whole(
    three_kafka: RealKafka, name: str, fault: Callable[[RealKafka, int], None]
) -> None:
    """They go on with the coordinator that takes its place, and after it has come back."""
    settings = {**SETTINGS, "transactional.id": name, "max.block.ms": within_ms(20_000)}
    load = TransactionLoad(Plan("load", settings, PROMISE, seed="three"), three_kafka.bootstrap_servers)
    with under(load, three_kafka, name):
        coordinator = coordinator_of(three_kafka.address(0), name)
        assert coordinator is not None
        fault(three_kafka, coordinator)
        other = next(node for node in three_kafka.node_ids if node != coordinator)
        until(
            lambda: coordinator_of(three_kafka.address(other), name) not in (None, coordinator),
            f"{name} gets another coordinator",
        )
        until_more(load)
        three_kafka.heal()
        wait_until_healthy(three_kafka)
        until_more(load)
    ends = Counter(load.journal.transactions.values())
    assert ends["committed"] > 0 and ends["aborted"] > 0


@pytest.mark.parametrize("node", range(NODES))
@pytest.mark.parametrize("fault", [RealKafka.kill_node, RealKafka.freeze_node])
def test_a_broker_goes_between_two_ends_of_an_exactly_once_write(
    three_kafka: RealKafka, name: str, fault: Callable[[RealKafka, int], None], node: int
) -> None:
    """Whichever it is: the coordinator of the next end, or a leader of the control topic or of the partitions."""
    more = {"kafka.request.timeout.ms": str(int(1000 * REQUEST_TIMEOUT_S))}
    sink = Sink(three_kafka.bootstrap_servers, name, int(1000 * DELIVERY_S), **more)
    sink.faults[BEFORE_THE_SECOND_END] = lambda: fault(three_kafka, node)
    try:
        sink.run()
        sink.faults.clear()
        three_kafka.heal()
        wait_until_healthy(three_kafka)
        sink.run()
    finally:
        sink.close()
    assert_exactly(three_kafka.bootstrap_servers, name, EXPECTED)
