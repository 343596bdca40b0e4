"""Questions to one broker and orders to the controller, by hand, with messages made by kio.

A client library would ask whichever broker it likes and wait while one is away; here a test says whom to ask and hears
at once that there is nobody.
"""

from __future__ import annotations

import socket
import struct
import time
from io import BytesIO
from typing import Any, NamedTuple

from kio.schema.alter_partition_reassignments.v0 import request as reassign
from kio.schema.alter_partition_reassignments.v0 import response as reassigned
from kio.schema.elect_leaders.v2 import request as elect
from kio.schema.elect_leaders.v2 import response as elected
from kio.schema.find_coordinator.v4 import request as coordinator
from kio.schema.find_coordinator.v4 import response as coordinators
from kio.schema.metadata.v12 import request as metadata
from kio.schema.metadata.v12 import response as described
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i8, i32

from tests.support.pace import HANG_S, within
from tests.support.rewrite import Address
from tools.kafka import KafkaFailed, RealKafka

ANSWER_TIMEOUT_S = within(5)
"""A broker that is frozen takes a connection and does not answer."""
POLL_S = 0.1
CORRELATION = 7
TRANSACTION = 1
ELECTION_NOT_NEEDED = 84


class Replicas(NamedTuple):
    """A partition as one broker sees it; the first of ``all`` is the preferred leader."""

    leader: int
    all: tuple[int, ...]
    in_sync: tuple[int, ...]


class View(NamedTuple):
    """The cluster as one broker sees it."""

    brokers: frozenset[int]
    partitions: dict[tuple[str, int], Replicas]


def ask(address: Address, request: Any, answer: type[Any], client_id: str = "test") -> Any:
    """The broker's answer to ``request``; OSError when it is away, does not answer, or hangs up."""
    header = type(request).__header_schema__(
        request_api_key=type(request).__api_key__,
        request_api_version=type(request).__version__,
        correlation_id=i32(CORRELATION),
        client_id=client_id,
    )
    buffer = BytesIO()
    entity_writer(type(header))(buffer, header)
    entity_writer(type(request))(buffer, request)
    with socket.create_connection(address, ANSWER_TIMEOUT_S) as connection:
        connection.settimeout(ANSWER_TIMEOUT_S)
        connection.sendall(struct.pack(">i", buffer.tell()) + buffer.getvalue())
        (size,) = struct.unpack(">i", _exactly(connection, 4))
        frame = _exactly(connection, size)
    # The correlation id and the empty tags of a flexible version's header: all that is asked here is flexible.
    value, _ = entity_reader(answer)(frame, 5)
    return value


def view(address: Address) -> View:
    """What this broker knows of brokers and partitions, internal topics included."""
    request = metadata.MetadataRequest(
        topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    answer = ask(address, request, described.MetadataResponse)
    partitions = {
        (str(topic.name), int(one.partition_index)): Replicas(
            int(one.leader_id), tuple(map(int, one.replica_nodes)), tuple(map(int, one.isr_nodes))
        )
        for topic in answer.topics
        for one in topic.partitions
    }
    return View(frozenset(int(broker.node_id) for broker in answer.brokers), partitions)


def coordinator_of(address: Address, transactional_id: str) -> int | None:
    """The node that coordinates this id's transactions; None while there is none."""
    request = coordinator.FindCoordinatorRequest(key_type=i8(TRANSACTION), coordinator_keys=(transactional_id,))
    (found,) = ask(address, request, coordinators.FindCoordinatorResponse).coordinators
    return int(found.node_id) if int(found.error_code.value) == 0 else None


def move_leader(address: Address, topic: str, partition: int, leader: int) -> None:
    """Puts ``leader`` first among a partition's replicas and has the preferred leader elected.

    Raises KafkaFailed when the controller refuses it, for instance since that replica is not in sync.
    """
    before = view(address).partitions[topic, partition].all
    order = (leader, *(node for node in before if node != leader))
    wanted = reassign.ReassignablePartition(
        partition_index=i32(partition), replicas=tuple(BrokerId(node) for node in order)
    )
    topics = (reassign.ReassignableTopic(name=TopicName(topic), partitions=(wanted,)),)
    answer = ask(
        address,
        reassign.AlterPartitionReassignmentsRequest(topics=topics),
        reassigned.AlterPartitionReassignmentsResponse,
    )
    _check(answer.error_code, f"reassign {topic}-{partition} to {order}")
    _check(answer.responses[0].partitions[0].error_code, f"reassign {topic}-{partition} to {order}")
    election = elect.ElectLeadersRequest(
        election_type=i8(0),
        topic_partitions=(elect.TopicPartitions(topic=TopicName(topic), partitions=(i32(partition),)),),
    )
    answer = ask(address, election, elected.ElectLeadersResponse)
    _check(answer.error_code, f"elect a leader of {topic}-{partition}")
    for result in answer.replica_election_results:
        _check(result.partition_result[0].error_code, f"elect {leader} as leader of {topic}-{partition}")


def wait_until_healthy(kafka: RealKafka) -> None:
    """Returns when every broker answers and sees every broker, and every partition led and with all replicas in sync.

    Raises KafkaFailed with what is still missing, or with the log's end of a node that ended by itself.
    """
    deadline = time.monotonic() + HANG_S
    for node in kafka.node_ids:
        while (missing := _missing(kafka, node)) is not None:
            kafka.check_running()
            if time.monotonic() > deadline:
                raise KafkaFailed(f"not healthy after {HANG_S:g} s: node {node}: {missing}")
            time.sleep(POLL_S)


def _missing(kafka: RealKafka, node: int) -> str | None:
    try:
        seen = view(kafka.address(node))
    except OSError as error:
        return f"does not answer ({error})"
    if seen.brokers != set(kafka.node_ids):
        return f"sees the brokers {sorted(seen.brokers)} only"
    for (topic, partition), replicas in seen.partitions.items():
        if replicas.leader < 0 or set(replicas.all) != set(replicas.in_sync):
            return f"{topic}-{partition} is {replicas}"
    return None


def _check(code: Any, what: str) -> None:
    if int(code.value) not in (0, ELECTION_NOT_NEEDED):
        raise KafkaFailed(f"{what}: {code!r}")


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        part = connection.recv(count - len(received))
        if not part:
            raise ConnectionResetError("closed within an answer")
        received += part
    return received
