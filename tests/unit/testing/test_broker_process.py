"""The control channel's other end: lines in, answers out, and nothing that a line says ends it."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from forebay.testing._broker_process import Library, MockCluster, answer, listen_on_ipv6
from forebay.testing.broker import library_path
from tests.support.pace import HANG_S


class Calls:
    """Stands in for a cluster: answers what it was called with."""

    def echo(self, *values: Any) -> list[Any]:
        return list(values)

    def fail(self) -> None:
        raise RuntimeError("no such node")

    def _hidden(self) -> None:
        raise AssertionError("a hidden method was called")


@pytest.fixture
def cluster() -> Any:
    return Calls()


def test_a_call_is_answered_with_its_value(cluster: Any) -> None:
    assert answer(cluster, json.dumps({"call": "echo", "args": [1, "a", [2]]}).encode()) == {"ok": [1, "a", [2]]}


def test_a_failed_call_is_answered_with_its_reason(cluster: Any) -> None:
    assert answer(cluster, b'{"call": "fail", "args": []}') == {"error": "no such node"}


def test_an_answer_has_its_call_s_number(cluster: Any) -> None:
    assert answer(cluster, b'{"call": "echo", "args": [], "number": 7}') == {"ok": [], "number": 7}
    assert answer(cluster, b'{"call": "fail", "args": [], "number": 8}') == {"error": "no such node", "number": 8}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"call": "_hidden", "args": []}', "_hidden is not a call"),
        (b'{"call": "nothing", "args": []}', "has no attribute 'nothing'"),
        (b'{"args": []}', "call"),
        (b"\xff", "decode"),
    ],
)
def test_a_line_that_is_no_call_is_an_error(cluster: Any, line: bytes, reason: str) -> None:
    assert reason in answer(cluster, line)["error"]


def test_a_function_that_the_library_lacks_asks_for_a_newer_one() -> None:
    # The interpreter's own symbols stand in for a library without any mock functions.
    library = Library(None)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="has no rd_kafka_mock_cluster_new: a newer confluent-kafka is needed"):
        library.rd_kafka_mock_cluster_new(None, 1)


def test_a_mock_cluster_describes_itself() -> None:
    described = MockCluster(str(library_path()), 2).describe()
    assert described["bootstrap"].count("127.0.0.1:") == 2
    assert described["librdkafka"][0].isdecimal()


def test_where_ipv6_cannot_be_listened_on_the_other_nodes_go_on() -> None:
    """The machine may have no IPv6, or the port may be taken there: that is no error."""
    with (
        socket.create_server(("127.0.0.1", 0)) as first,
        socket.create_server(("127.0.0.1", 0)) as second,
        socket.create_server(("::1", first.getsockname()[1]), family=socket.AF_INET6) as taken,
    ):
        ports = [node.getsockname()[1] for node in (first, second)]
        forwarders = listen_on_ipv6(",".join(f"127.0.0.1:{port}" for port in ports))
        for port, reached in zip(ports, (taken, second), strict=True):
            reached.settimeout(HANG_S)
            with socket.create_connection(("::1", port), HANG_S):
                reached.accept()[0].close()
        for forwarder in forwarders:
            forwarder.close()
        assert [forwarder.port for forwarder in forwarders] == ports[1:]
