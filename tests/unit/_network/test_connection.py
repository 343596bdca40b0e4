from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._network.broker_versions import BrokerVersions
from forebay._network.connection import Connection
from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._protocol.api_versions import ApiVersionsResponse
from forebay.errors import DisconnectError, ProtocolError, UnsupportedVersionError
from forebay.model import Node

NODE = Node(3, "broker.example", 9092)


def encode(connection: Connection, sent: ClientRequest, correlation_id: int) -> ClientRequest:
    """In flight and written in full."""
    connection.encode(sent, correlation_id, 5.0)
    sent.release(True)
    return sent


def request(api_key: int = 0, version: int = 8, **kwargs: object) -> ClientRequest:
    options = {"timeout_ms": 1000, "on_complete": lambda response: None, **kwargs}
    return ClientRequest(
        3,
        api_key,
        version,
        version,
        lambda chosen: [b"body"],
        lambda chosen, data: bytes(data),
        **options,  # type: ignore[arg-type]
    )


def answer(correlation_id: int, payload: bytes, *, flexible: bool = False) -> bytes:
    body = struct.pack(">i", correlation_id) + (b"\0" if flexible else b"") + payload
    return struct.pack(">i", len(body)) + body


def connected(*correlation_ids: int) -> Connection:
    connection = Connection(NODE, "me")
    for correlation_id in correlation_ids:
        encode(connection, request(), correlation_id)
    return connection


def receive(connection: Connection, data: bytes) -> tuple[int, list[ClientResponse]]:
    completed: list[ClientResponse] = []
    return connection.receive(memoryview(data), 20.0, completed), completed


def test_request_bytes() -> None:
    connection = Connection(NODE, "me")
    sent = request()
    data = b"".join(connection.encode(sent, 77, 5.0))
    assert data == b"\0\0\0\x10" + struct.pack(">hhih", 0, 8, 77, 2) + b"me" + b"body"
    assert (sent.version, sent.correlation_id, sent.sent, sent.deadline) == (8, 77, 5.0, 1005.0)
    assert connection.in_flight.count == 1


def test_nothing_is_in_flight_after_a_refusal() -> None:
    connection = Connection(NODE, "me")
    connection.versions = BrokerVersions(ApiVersionsResponse(0, {0: (0, 2)}))
    with pytest.raises(UnsupportedVersionError, match=r"versions 0 to 2 only; versions 8 to 8.*broker\.example:9092"):
        connection.encode(request(), 1, 5.0)
    assert connection.in_flight.count == 0


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=6), st.data())
def test_answers_cut_anywhere(payloads: list[bytes], data: st.DataObject) -> None:
    connection = connected(*range(len(payloads)))
    stream = b"".join(answer(number, payload) for number, payload in enumerate(payloads))
    kept = b""
    completed: list[ClientResponse] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        kept, stream = kept + stream[:size], stream[size:]
        used = connection.receive(memoryview(kept), 20.0, completed)
        kept = kept[used:]
    assert [response.body for response in completed] == payloads
    assert [response.size for response in completed] == [8 + len(payload) for payload in payloads]
    assert kept == b""
    assert connection.in_flight.count == 0


def test_flexible_header() -> None:
    connection = Connection(NODE, "me")
    encode(connection, request(version=9), 1)
    _used, completed = receive(connection, answer(1, b"x", flexible=True))
    assert completed[0].body == b"x"


@pytest.mark.parametrize("size", [-1, 0, 3, 100 * 1024 * 1024 + 1, 2**31 - 1])
def test_frame_sizes_that_cannot_be(size: int) -> None:
    with pytest.raises(ProtocolError, match=r"broker\.example:9092.*does not speak the Kafka protocol"):
        receive(connected(1), struct.pack(">i", size) + b"whatever")


def test_wrong_correlation_id() -> None:
    with pytest.raises(ProtocolError, match=r"correlation id 2, the oldest request waiting has 1 \(Produce\)"):
        receive(connected(1), answer(2, b""))


def test_answers_before_the_bad_one_count() -> None:
    connection = connected(1, 2)
    completed: list[ClientResponse] = []
    with pytest.raises(ProtocolError):
        connection.receive(answer(1, b"good") + answer(9, b"bad"), 20.0, completed)
    assert [response.body for response in completed] == [b"good"]
    assert connection.in_flight.count == 1


def test_unasked_for() -> None:
    with pytest.raises(ProtocolError, match="nothing was asked for"):
        receive(Connection(NODE, "me"), answer(1, b""))


def test_what_can_be_no_answer_is_refused_before_the_rest_of_it_is_there() -> None:
    """A frame of up to 100 MiB would be waited for, and kept, until the request times out."""
    begun = struct.pack(">ii", 90 << 20, 2)
    with pytest.raises(ProtocolError, match="nothing was asked for"):
        receive(Connection(NODE, "me"), begun[:4])
    with pytest.raises(ProtocolError, match=r"correlation id 2, the oldest request waiting has 1 \(Produce\)"):
        receive(connected(1), begun + b"some of it")
    assert receive(connected(2), begun + b"some of it") == (0, [])
    assert receive(connected(1), begun[:7]) == (0, [])


@pytest.mark.parametrize("released", [False, True])
def test_an_answer_before_the_whole_request_was_written(released: bool) -> None:
    """It would give back buffers that the socket still reads; ``released``: the connection ended meanwhile."""
    connection = connected(1)
    early = request()
    connection.encode(early, 2, 5.0)
    if released:
        early.release(False)
    completed: list[ClientResponse] = []
    with pytest.raises(ProtocolError, match=r"broker\.example:9092.* answered before its Produce request was written"):
        connection.receive(answer(1, b"good") + answer(2, b"early"), 20.0, completed)
    assert [response.body for response in completed] == [b"good"]
    assert connection.in_flight.first() is early


def test_unreadable_answer_stays_in_flight() -> None:
    def parse(version: int, data: object) -> object:
        raise IndexError("boom")

    connection = Connection(NODE, "me")
    bad = ClientRequest(3, 0, 8, 8, lambda v: [], parse, timeout_ms=1, on_complete=lambda r: None)
    encode(connection, bad, 1)
    with pytest.raises(ProtocolError, match="cannot read its Produce v8 answer"):
        receive(connection, answer(1, b""))
    assert connection.in_flight.count == 1


def test_no_answer_expected_completes_when_written() -> None:
    connection = connected(1)
    silent = request(expect_response=False)
    connection.encode(silent, 2, 5.0)
    completed: list[ClientResponse] = []
    connection.take_written(20.0, completed)
    assert completed == []
    silent.release(True)
    connection.take_written(20.0, completed)
    connection.take_written(20.0, completed)
    assert [response.request for response in completed] == [silent]
    assert connection.in_flight.count == 1


def test_several_that_expect_no_answer_complete_as_they_are_written() -> None:
    connection = connected(1)
    silent = [request(expect_response=False) for _ in range(3)]
    for number, one in enumerate(silent):
        connection.encode(one, 2 + number, 5.0)
    asked = request()
    connection.encode(asked, 5, 5.0)
    completed: list[ClientResponse] = []
    for one in silent[:2]:
        one.release(True)
    connection.take_written(20.0, completed)
    assert [response.request for response in completed] == silent[:2]
    silent[2].release(True)
    connection.take_written(20.0, completed)
    assert [response.request for response in completed] == silent
    assert connection.in_flight.waiting()[-1] is asked and connection.in_flight.count == 2
    connection.take_written(20.0, completed)
    assert len(completed) == 3


def test_abort_in_the_order_of_sending() -> None:
    connection = connected(1, 2, 3)
    error = DisconnectError("gone")
    aborted = connection.abort(20.0, error, True)
    assert [response.request.correlation_id for response in aborted] == [1, 2, 3]
    assert all(response.disconnected and response.timed_out and response.error is error for response in aborted)
    assert connection.in_flight.count == 0
