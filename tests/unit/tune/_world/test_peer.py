"""The answers of simulated brokers, read by the producer's own decoders, and its requests, by theirs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from forebay._network.connection import Connection
from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._protocol.api_versions import decode_api_versions, encode_api_versions
from forebay._protocol.init_producer_id import decode_init_producer_id, encode_init_producer_id
from forebay._protocol.metadata import decode_metadata, encode_metadata
from forebay._protocol.produce import PartitionRecords, encode_produce
from forebay._protocol.produce_response import decode_produce
from forebay._protocol.versions import ApiKey
from forebay.model import Node
from forebay.tune._world import peer

ORDERS, OTHERS = bytes(15) + b"\1", bytes(15) + b"\2"


def exchange(
    api_key: int, encode: Any, decode: Any, body_of: Any, *, version: int | None = None
) -> tuple[peer.Request, Any]:
    """A request as brokers read it, and the answer as the producer does."""
    version = peer.VERSIONS[api_key] if version is None else version
    connection = Connection(Node(1, "host", 9001), "client")
    done: list[ClientResponse] = []
    request = ClientRequest(
        node_id=1,
        api_key=api_key,
        min_version=version,
        max_version=version,
        build=encode,
        parse=decode,
        timeout_ms=1000,
        on_complete=done.append,
    )
    data = b"".join(connection.encode(request, 77, 0.0))
    request.release(True)
    (received,) = peer.requests_in(data)
    connection.receive(peer.answer(received, body_of(received)), 1.0, done)
    return received, done[0].body


def batch(size: int, records: int) -> list[bytes]:
    header = bytearray(61)
    header[57:61] = records.to_bytes(4, "big")
    return [bytes(header), bytes(size - 61)]


def test_versions() -> None:
    received, body = exchange(
        ApiKey.API_VERSIONS,
        lambda version: encode_api_versions(version, "forebay", "1"),
        decode_api_versions,
        lambda request: peer.api_versions(),
    )
    assert (received.api_key, received.correlation_id) == (ApiKey.API_VERSIONS, 77)
    assert body.api_versions == {api_key: (version, version) for api_key, version in peer.VERSIONS.items()}


def test_producer_ids() -> None:
    _received, body = exchange(
        ApiKey.INIT_PRODUCER_ID,
        encode_init_producer_id,
        decode_init_producer_id,
        lambda request: peer.init_producer_id(42),
    )
    assert (body.error_code, body.producer_id, body.producer_epoch) == (0, 42, 0)


def test_metadata_of_a_topic_that_is_there_and_one_that_is_not() -> None:
    nodes = [Node(1, "127.0.0.1", 9001), Node(2, "127.0.0.1", 9002)]
    topic = peer.TopicAnswer("orders", ORDERS, [(1, 0), (2, 5)])
    received, body = exchange(
        ApiKey.METADATA,
        lambda version: encode_metadata(version, ["orders", "none"]),
        decode_metadata,
        lambda request: peer.metadata(nodes, [topic, "none"]),
    )
    assert peer.topics_asked_for(received) == ["orders", "none"]
    assert body.brokers == tuple(nodes)
    known, unknown = body.topics
    assert (known.error_code, known.name, known.topic_id) == (0, "orders", ORDERS)
    assert [(part.leader_id, part.leader_epoch) for part in known.partitions] == [(1, 0), (2, 5)]
    assert (unknown.error_code, unknown.name, unknown.partitions) == (peer.UNKNOWN_TOPIC, "none", ())


def test_a_request_for_all_topics() -> None:
    received, body = exchange(
        ApiKey.METADATA,
        lambda version: encode_metadata(version, None),
        decode_metadata,
        lambda request: peer.metadata([], []),
    )
    assert peer.topics_asked_for(received) is None
    assert (body.brokers, body.topics) == ((), ())


def entries() -> list[PartitionRecords]:
    wanted: Sequence[tuple[str, int, bytes, int, int]] = (
        ("orders", 3, ORDERS, 100, 2),
        ("others", 0, OTHERS, 20_000, 300),
        ("orders", 4, ORDERS, 61, 1),
    )
    return [
        PartitionRecords(topic, partition, header, [rest], size, topic_id)
        for topic, partition, topic_id, size, records in wanted
        for header, rest in [batch(size, records)]
    ]


def test_produce() -> None:
    seen: list[Any] = []

    def answer(request: peer.Request) -> bytes:
        acks, parts = peer.parts_of(request)
        seen.extend((acks, parts))
        return peer.produced([peer.PartAnswer(part, 6 if part.partition == 0 else 0, 9) for part in parts], 25)

    received, body = exchange(
        ApiKey.PRODUCE, lambda version: encode_produce(version, None, -1, 1000, entries()), decode_produce, answer
    )
    assert seen == [
        -1,
        [peer.Part(ORDERS, 3, 100, 2), peer.Part(ORDERS, 4, 61, 1), peer.Part(OTHERS, 0, 20_000, 300)],
    ]
    assert received.size > 20_161
    assert body.throttle_time_ms == 25
    found = [(part.topic_id, part.partition, part.error_code, part.base_offset) for part in body.partitions]
    assert found == [(ORDERS, 3, 0, 9), (ORDERS, 4, 0, 9), (OTHERS, 0, 6, 9)]


def _given(body: list[bytes], version: int) -> list[bytes]:
    return body


def test_requests_behind_each_other() -> None:
    bodies = [encode_init_producer_id(5), encode_init_producer_id(5)]
    connection = Connection(Node(1, "host", 9001), "client")
    data = b""
    for number, body in enumerate(bodies):
        request = ClientRequest(
            node_id=1,
            api_key=ApiKey.INIT_PRODUCER_ID,
            min_version=5,
            max_version=5,
            build=partial(_given, body),
            parse=decode_init_producer_id,
            timeout_ms=1000,
            on_complete=print,
        )
        data += b"".join(connection.encode(request, number, 0.0))
    found = peer.requests_in(data)
    assert [request.correlation_id for request in found] == [0, 1]
    assert sum(request.size for request in found) == len(data)
